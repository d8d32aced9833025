"""The exercises: what they accept, and their answers, computed anew from the question alone.

The losses are those of torch's cross_entropy and binary_cross_entropy, the divergence, cosine and
z-score those of scipy.
"""

import math
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import torch
from features.course.lesson_figures import right_response
from scipy.spatial.distance import cosine
from scipy.stats import entropy, zscore
from torch.nn.functional import binary_cross_entropy, cross_entropy

from fillmask_ui.features.course.chapter import chapters
from fillmask_ui.features.course.exercises import EXERCISES, exercises_of
from fillmask_ui.features.course.exercises.exercise import (
    Choice,
    ChoiceOption,
    Item,
    Numeric,
    Ordering,
    Slip,
)
from fillmask_ui.features.course.exercises.generator import ask, read_tasks

SEEDS = range(1, 101)
drawn_once = cache(exercises_of)
quick = pytest.mark.quick
EACH_CHAPTER = pytest.mark.parametrize("chapter", EXERCISES)


@EACH_CHAPTER
def test_a_seed_always_gives_the_same_and_another_one_others(chapter):
    assert list(EXERCISES) == [own.name for own in chapters()]
    assert exercises_of(chapter, 7) == exercises_of(chapter, 7)
    first, *others = (drawn_once(chapter, seed) for seed in SEEDS)
    assert 1 <= len(first) <= 4
    for number, exercise in enumerate(first):
        assert {other[number].kind for other in others} == {exercise.kind}
        found = {str((own[number].text, own[number].table, own[number].solution)) for own in others}
        assert len(found) > 4 or (exercise.text.startswith("Which of these") and len(found) == 3)


@EACH_CHAPTER
def test_a_right_response_is_right_and_no_mistake_passes(chapter):
    """Over 250 seeds, as typed with few digits or many; its words are those of a slip."""
    for seed in range(1, 251):
        for exercise in exercises_of(chapter, seed):
            feedback = exercise.check(right_response(exercise))
            assert feedback.right is True and exercise.solution in feedback.text
            {"numeric": numeric, "choice": choice, "ordering": ordering}[exercise.kind](exercise)


def numeric(exercise):
    answer, near, digits = exercise.answer, 10.0**-exercise.decimals, exercise.decimals
    message = right_response(exercise).replace("-", "−").rstrip("0").rstrip(".")
    assert message in exercise.explanation and abs(answer) > 2 * near
    assert exercise.check(f"{answer:.{digits}f}".replace(".", ",")).right is True
    for wrong in (answer - 1.1 * near, answer + 1.1 * near):
        assert exercise.check(f"{wrong:.9f}").right is False
    message = {f"Not yet. {slip.text}" for slip in exercise.slips}
    for slip in exercise.slips:
        for typed in (f"{slip.value:.{digits}f}", f"{slip.value:.9f}"):
            feedback = exercise.check(typed)
            assert feedback.right is False and feedback.text in message, (exercise.text, slip)


def choice(exercise):
    assert len({option.text for option in exercise.options}) == len(exercise.options) >= 3
    for index, option in enumerate(exercise.options):
        feedback = exercise.check(str(index))
        assert feedback.right is (index == exercise.right) is not bool(option.why)
        assert option.why in feedback.text


def ordering(exercise):
    values = [exercise.items[index].value for index in exercise.order]
    assert all(after - before > 0.01 for before, after in pairwise(values))
    for wrong in ("0,1,2,3", ",".join(map(str, exercise.order[::-1]))):
        assert exercise.check(wrong).right is False


@quick
def test_a_new_exercise_is_data_alone():
    task = """
    - draw: {p: "hundredths(10, 90)", word: "choice(['tea', 'milk'])"}
      text: A model gives “{word}” a probability of {p}. What is its loss?
      answer: loss(p)
      slips:
        answer / ln(2):
        p: That is the probability of “{word}”; the loss is −ln of it.
      explanation: "{p|minus_ln} nats."
    """
    for seed in range(100):
        (exercise,) = ask(read_tasks(task), np.random.default_rng(seed))
        (p,) = numbers_of(exercise.text)
        assert exercise.answer == pytest.approx(torch_loss(p))
        numeric(exercise)
        word = re.search("“(.+)”", exercise.text)[0]
        assert "log2" in exercise.check(f"{-math.log2(p):.3f}").text
        if abs(p + math.log2(p)) > 0.03:  # else one number is both slips
            message = f"Not yet. That is the probability of {word}; the loss is −ln of it."
            assert exercise.check(str(p)).text == message
        assert exercise.explanation == f"−ln {p:g} = {torch_loss(p):.3f} nats."


@quick
def test_what_cannot_be_read_is_not_wrong():
    numeric = Numeric(text="?", explanation="", answer=1.25, slips=(Slip(-1.25, "Sign."),))
    chosen = Choice(
        text="?", explanation="", options=(ChoiceOption("a"), ChoiceOption("b", "No.")), right=0
    )
    items = (Item("A", "", 2.0, "two"), Item("B", "", 1.0, "one"))
    ordering = Ordering(text="?", explanation="", items=items)
    unread = {
        numeric: ("", "  ", "ln 2", "1/2", "1.2.3", "--1", "-", ",", "nan", "1e3", "<b>"),
        chosen: ("", "2", "-1", "a", "0 "),
        ordering: ("", "0", "0,0", "0,1,2", "a,b"),
    }
    for exercise, responses in unread.items():
        assert [exercise.check(typed).right for typed in responses] == [None] * len(responses)
    for response in ("1.25", "1,25", " +1.25 ", "1.25 nats", "1.259"):
        assert numeric.check(response).right is True, response
    assert numeric.check("−1,25").text == "Not yet. Sign."
    assert numeric.check("7").text == "Not yet: 7 is too large."
    # Of two slips within the tolerance of an answer the nearer one is meant.
    close = replace(numeric, slips=(Slip(2.000, "Far."), Slip(2.009, "Near.")))
    assert [close.check(typed).text for typed in ("2.008", "2.001")] == [
        "Not yet. Near.",
        "Not yet. Far.",
    ]
    assert ordering.check("0,1").text == "Not yet. A (two) comes before B (one)."


# ---- The answers again, from the question alone


def numbers_of(text):
    matches = re.findall(r"(?<![\w.])[-−]?\d+(?:\.\d+)?", text)
    return [float(number.replace("−", "-")) for number in matches]


def column(exercise, index=1):
    """A column of the table as numbers."""
    return [numbers_of(row[index])[0] for row in exercise.table[1:]]


def true_word(exercise):
    return re.search(r"true word (?:is )?“(\w+)”", exercise.text)[1]


def row_of(exercise, word):
    return next(numbers_of(row[1])[0] for row in exercise.table[1:] if row[0] == word)


def torch_loss(probability):
    return -torch.log(torch.tensor(probability, dtype=torch.float64)).item()


def loss_of_logits(exercise, temperature):
    words = [row[0] for row in exercise.table[1:]]
    logits = torch.tensor([column(exercise)]).double() / temperature
    return cross_entropy(logits, torch.tensor([words.index(true_word(exercise))])).item()


def attention_weight(exercise):
    word = re.search(r"“(\w+)”", exercise.text)[1]
    weights = torch.tensor(column(exercise)).double().softmax(0)
    return weights[[row[0] for row in exercise.table[1:]].index(word)].item()


def loss_of_a_pair(exercise, probability):
    follows = 0.0 if "does not follow" in exercise.text else 1.0
    tensors = torch.tensor([probability]).double(), torch.tensor([follows]).double()
    return binary_cross_entropy(*tensors).item()


def share_of_kind(exercise):
    shares = {"as [MASK]?": 0.8, "a random token?": 0.1, "unchanged?": 0.1}
    return next(share for kind, share in shares.items() if exercise.text.endswith(kind))


ANSWERS = {
    "guess 1": lambda e, _: torch_loss(row_of(e, true_word(e)) / 100),
    "loss 1": lambda e, _: torch_loss(row_of(e, true_word(e))),
    "loss 2": lambda e, n: loss_of_logits(e, n[0]),
    "both-sides 2": lambda e, _: torch_loss(column(e)[0]) - torch_loss(column(e)[1]),
    "both-sides 4": lambda e, _: attention_weight(e),
    "masking 1": lambda e, n: 0.15 * share_of_kind(e) * n[0],
    "ledger 1": lambda e, _: sum(map(torch_loss, column(e))),
    "ledger 2": lambda _, n: np.mean(n[2:]),
    "cross-entropy 3": lambda e, _: entropy(column(e), column(e, 2)),
    "accuracy 2": lambda _, n: math.log(n[0] / n[1]),
    "certainty 1": lambda _, n: 100 * (n[1] - n[0]) / n[0],
    "certainty 3": lambda _, n: n[1] * math.sqrt(n[0] / n[2]),
    "senses 1": lambda _, n: 1 - cosine(n[:3], n[3:]),
    "senses 2": lambda _, n: zscore(n[:4])[n.index(n[-1])],
    "next-sentence 1": lambda e, n: loss_of_a_pair(e, n[0]),
    "heads 3": lambda _, n: 2 / (n[1] / n[2] + n[0] / n[2]),
    "heads 4": lambda e, _: attention_weight(e),
    "next-sentence 2": lambda _, n: np.mean(n[1:-1]) + torch_loss(n[-1]),
}


@quick
@pytest.mark.parametrize("name", ANSWERS)
def test_numbers(name):
    chapter, number = name.split()
    for seed in SEEDS:
        exercise = drawn_once(chapter, seed)[int(number) - 1]
        expected = ANSWERS[name](exercise, numbers_of(exercise.text))
        assert exercise.answer == pytest.approx(expected, abs=1e-6)


def bits_and_perplexity(exercise, numbers):
    perplexity = round(math.exp(numbers[0]))
    assert numbers[0] == pytest.approx(math.log(perplexity), abs=6e-4)
    return f"{math.log2(perplexity):.3f} bits, perplexity {perplexity:.2f}"


def sides(exercise):
    return re.match(r"“(.+) ____ (.+)\.”", exercise.text).groups()


def what_is_seen(exercise, _):
    left, right = sides(exercise)
    return f"“{left}” alone" if "causal" in exercise.text else f"“{left}” and “{right}”"


def cut_or_masked(exercise, _):
    left, right = sides(exercise)
    hidden = "" if "cut off" in exercise.text else " [MASK]" * len(right.split()) + " ."
    return f"[CLS] {left} [MASK]{hidden} [SEP]"


def kind_of_a_token(exercise, _):
    word = re.search("“(.+)”", exercise.text)[1]
    shown_word, label = next(row[1:] for row in exercise.table[1:] if row[0] == word)
    kinds = {"[MASK]": "as [MASK]", word: "unchanged"}
    chosen = f"It is chosen and shown {kinds.get(shown_word, 'as a random token')}"
    return "It is not chosen" if label == "–" else chosen


def flattered(exercise, numbers):
    hundred, mean, masked_mean = numbers
    counts, losses = column(exercise), column(exercise, 2)
    assert hundred == sum(counts) and masked_mean > mean
    assert mean == pytest.approx(np.average(losses, weights=counts), abs=0.0051)
    assert masked_mean == pytest.approx(np.average(losses[:2], weights=counts[:2]), abs=0.0051)
    return "The model sees the word itself, so it is nearly certain of it and its loss is small"


def one_hot_and_prediction(exercise, numbers):
    position = int(re.search(r"number (\d)", exercise.text)[1]) - 1
    truth, q = np.eye(4)[position], numbers[1:5]
    assert f"{entropy(truth) + entropy(truth, q):.3f} nats" in exercise.explanation
    return " and ".join(
        f"[{', '.join(f'{probability:g}' for probability in values)}]" for values in (truth, q)
    )


def empirical(exercise, _):
    name = re.search(r"class (\w) is true", exercise.text)[1]
    return f"[{', '.join(str(int(letter == name)) for letter in 'ABC')}]"


def better_of_two(exercise, _):
    cells = [[numbers_of(cell)[0] for cell in row] for row in exercise.table[1:]]
    for of_model in zip(*cells, strict=True):
        assert sum(of_model) <= 1 and of_model[1] == max(of_model) > of_model[0]
    a, b = map(torch_loss, cells[0])
    return f"A {a:.3f}, B {b:.3f} nats: {'A' if a < b else 'B'} is better"


def models_in_order(exercise, _):
    probabilities_by_name = {item.name: numbers_of(item.text) for item in exercise.items}
    assert all(sum(pair) < 1 for pair in probabilities_by_name.values())
    ordered = sorted(
        probabilities_by_name, key=lambda name: torch_loss(probabilities_by_name[name][0])
    )
    assert [name for name, (truth, rival) in probabilities_by_name.items() if truth > rival] == [
        ordered[1]
    ]
    return " → ".join(ordered)


def verdict(exercise, numbers):
    baseline, model, _, low, high = numbers
    assert (low + high) / 2 == pytest.approx(100 * (model / baseline - 1), abs=0.06)
    bands = {
        "PASS" if bound < 5 else "AT_RISK" if bound < 10 else "REGRESSION" for bound in (low, high)
    }
    return bands.pop() if len(bands) == 1 else "INCONCLUSIVE"


def nearest_sense(exercise, new):
    cosines = {}
    for sense, vectors in exercise.table[1:]:
        centroid = np.reshape(numbers_of(vectors), (2, 2)).mean(axis=0)
        cosines[sense] = 1 - cosine(new, centroid)
    return max(cosines, key=cosines.get)


def leads_from(exercise, _):
    truth = re.search("“(.+?)”", exercise.text)[1]
    numbers, words = zip(*exercise.table[1:], strict=True)
    assert [*map(int, numbers)] == [*range(7)] and words.count(truth) < 5
    first = max(layer for layer, word in enumerate(words) if word != truth) + 1
    layers = f"any of the layers from {first} to 6"
    return f"If the model ended after {layers}, it would also predict “{truth}”."


def bio_tags(exercise, _):
    """Tags by the brackets alone, character by character."""
    marked = exercise.text.split(": ")[1].split(" Which")[0]
    tags = []
    for part in re.findall(r"\[.+?\][A-Z]+|[^\[]+", marked):
        entity = part.rpartition("]")[2] if part[0] == "[" else ""
        words = (
            re.sub(r"([,.])(?=$|\s*$)", r" \1", part).split() if not entity else part[1:].split()
        )
        tags += [f"{'BI'[number > 0]}-{entity}" if entity else "O" for number in range(len(words))]
    return " ".join(tags)


SOLUTIONS = {
    "heads 1": bio_tags,
    "heads 2": lambda e, _: e.table[1][1],
    "guess 2": lambda e, _: max(option.text for option in e.options),
    "loss 3": bits_and_perplexity,
    "both-sides 1": what_is_seen,
    "both-sides 3": cut_or_masked,
    "masking 2": kind_of_a_token,
    "masking 3": lambda e, _: next(own.text for own in e.options if own.text[0] == "["),
    "ledger 3": flattered,
    "ledger 4": lambda _, n: (
        f"False: it is the mean over the {n[1]:g} tokens, which were chosen at random"
    ),
    "cross-entropy 1": one_hot_and_prediction,
    "cross-entropy 2": empirical,
    "accuracy 1": better_of_two,
    "accuracy 3": models_in_order,
    "certainty 2": verdict,
    "senses 3": nearest_sense,
    "senses 4": leads_from,
}


@quick
@pytest.mark.parametrize("name", SOLUTIONS)
def test_choices_and_orders(name):
    chapter, number = name.split()
    for seed in SEEDS:
        exercise = drawn_once(chapter, seed)[int(number) - 1]
        assert exercise.solution == SOLUTIONS[name](exercise, numbers_of(exercise.text))


def test_every_exercise_is_computed_anew():
    exercise_names = [
        f"{chapter} {number}"
        for chapter in EXERCISES
        for number in range(1, len(exercises_of(chapter, 1)) + 1)
    ]
    assert sorted(exercise_names) == sorted([*ANSWERS, *SOLUTIONS])
