"""The exercises: what they accept, and their numbers, recomputed from what the question says.

The losses are those of torch's cross_entropy and binary_cross_entropy, the divergence, cosine and
z-score those of scipy.
"""

import math
import re
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cosine
from scipy.stats import entropy, zscore
from torch.nn.functional import binary_cross_entropy, cross_entropy

from fillmask_ui.errors import OptionError
from fillmask_ui.lessons import chapters
from fillmask_ui.lessons.exercises import (
    COURSE_SEED,
    EXERCISES,
    MOST_SEED,
    Choice,
    Numeric,
    Ordering,
    exercises_of,
)
from fillmask_ui.lessons.exercises.exercise import Item, Option, Slip, written

pytestmark = pytest.mark.quick

SEEDS = range(1, 1001)
drawn_once = cache(exercises_of)
EACH_CHAPTER = pytest.mark.parametrize("chapter", EXERCISES)


def drawn(chapter, number):
    """One exercise of a chapter for every seed, with the numbers of its question."""
    for seed in SEEDS:
        exercise = drawn_once(chapter, seed)[number - 1]
        yield exercise, numbers_of(exercise.text)


def numbers_of(text):
    found = re.findall(r"(?<![\w.])[-−]?\d+(?:\.\d+)?", text)
    return [float(number.replace("−", "-")) for number in found]


def column(exercise, place=1):
    """A column of the table as numbers."""
    return [numbers_of(row[place])[0] for row in exercise.table[1:]]


def true_word(exercise):
    return re.search(r"true word (?:is )?“(\w+)”", exercise.text)[1]


def row_of(exercise, word):
    return next(numbers_of(row[1])[0] for row in exercise.table[1:] if row[0] == word)


def torch_loss(probability):
    return -torch.log(torch.tensor(probability, dtype=torch.float64)).item()


def test_every_chapter_has_one_to_three():
    assert list(EXERCISES) == [chapter.name for chapter in chapters()]
    counts = [len(exercises_of(chapter, COURSE_SEED)) for chapter in EXERCISES]
    assert min(counts) >= 1 and max(counts) <= 3
    kinds = {exercise.kind for chapter in EXERCISES for exercise in exercises_of(chapter, 5)}
    assert kinds == {"numeric", "choice", "ordering"}


@EACH_CHAPTER
def test_a_seed_always_gives_the_same_and_another_one_others(chapter):
    assert exercises_of(chapter, 7) == exercises_of(chapter, 7)
    first, *others = (drawn_once(chapter, seed) for seed in SEEDS)
    for number, exercise in enumerate(first):
        found = {other[number].text + str(other[number].table) for other in others}
        assert all(other[number].kind == exercise.kind for other in others)
        if exercise.text.startswith("Which of these tokens"):
            continue  # its numbers are the tokens to choose from
        assert len(found) > 4


@EACH_CHAPTER
def test_a_right_response_is_accepted_and_the_explanation_says_the_answer(chapter):
    for seed in SEEDS:
        for exercise in drawn_once(chapter, seed):
            feedback = exercise.check(exercise.right_response)
            assert feedback.right is True
            assert exercise.solution in feedback.text
            if exercise.kind == "numeric":
                digits = exercise.right_response.replace("-", "−").rstrip("0").rstrip(".")
                assert digits in exercise.explanation


@EACH_CHAPTER
def test_numeric_answers_hold_within_their_tolerance_and_no_slip_is_one(chapter):
    for seed in SEEDS:
        for exercise in drawn_once(chapter, seed):
            if not isinstance(exercise, Numeric):
                continue
            answer, near = exercise.answer, exercise.tolerance
            assert math.isfinite(answer) and abs(answer) > 2 * near
            rounded = f"{answer:.{exercise.decimals}f}"
            assert exercise.check(rounded.replace(".", ",")).right is True
            for wrong in (answer - 1.1 * near, answer + 1.1 * near):
                assert exercise.check(f"{wrong:.9f}").right is False
            assert exercise.slips
            for slip in exercise.slips:
                for digits in (exercise.decimals, exercise.decimals + 1, 9):
                    feedback = exercise.check(f"{slip.value:.{digits}f}")
                    assert feedback.right is False, (seed, exercise.text, slip)
                    assert any(f" {own.text}" in feedback.text for own in exercise.slips)
            first = exercise.slips[0]
            assert first.text in exercise.check(f"{first.value:.9f}").text


@EACH_CHAPTER
def test_choices_are_distinct_and_one_is_right(chapter):
    for seed in SEEDS:
        for exercise in drawn_once(chapter, seed):
            if not isinstance(exercise, Choice):
                continue
            texts = [option.text for option in exercise.options]
            assert len(set(texts)) == len(texts) >= 3
            right = [exercise.check(str(index)).right for index in range(len(texts))]
            assert right.count(True) == 1 and right.count(False) == len(texts) - 1
            for index, option in enumerate(exercise.options):
                assert (index == exercise.right) or option.why in exercise.check(str(index)).text
                assert bool(option.why) == (index != exercise.right)


@EACH_CHAPTER
def test_orderings_are_strict_and_begin_out_of_order(chapter):
    for seed in SEEDS:
        for exercise in drawn_once(chapter, seed):
            if not isinstance(exercise, Ordering):
                continue
            values = [exercise.items[index].value for index in exercise.order]
            assert all(after - before > 0.01 for before, after in pairwise(values))
            assert exercise.check("0,1,2,3").right is False
            assert exercise.check(",".join(map(str, exercise.order[::-1]))).right is False


def test_what_cannot_be_read_is_not_wrong():
    numeric = Numeric(text="?", explanation="", answer=1.25, slips=(Slip(-1.25, "Sign."),))
    for response in ("", "  ", "ln 2", "1/2", "1.2.3", "--1", "-", ",", "nan", "1e3", "<b>"):
        assert numeric.check(response).right is None, response
    for response in ("1.25", "1,25", " +1.25 ", "1.25 nats", "1.259"):
        assert numeric.check(response).right is True, response
    assert numeric.check("−1,25").text == "Not yet. Sign."
    assert numeric.check("7").text == "Not yet: 7 is too large."
    chosen = Choice(text="?", explanation="", options=(Option("a"), Option("b", "No.")), right=0)
    for response in ("", "2", "-1", "a", "0 "):
        assert chosen.check(response).right is None, response
    items = (Item("A", "", 2.0, "two"), Item("B", "", 1.0, "one"))
    ordering = Ordering(text="?", explanation="", items=items)
    for response in ("", "0", "0,0", "0,1,2", "a,b"):
        assert ordering.check(response).right is None, response
    assert ordering.check("1,0").right is True
    assert ordering.check("0,1").text == "Not yet. A (two) stands before B (one)."


def test_unknown_chapters_and_seeds_are_refused():
    with pytest.raises(OptionError, match="known: accuracy, both-sides"):
        exercises_of("gess", 1)
    for seed in (0, MOST_SEED + 1):
        with pytest.raises(OptionError, match="between 1 and"):
            exercises_of("loss", seed)


def test_the_five_of_the_course_have_its_numbers():
    fox = exercises_of("loss", COURSE_SEED)[0]
    assert fox.table[1:] == (("fox", "0.7"), ("cat", "0.2"), ("dog", "0.1"))
    assert true_word(fox) == "fox" and fox.solution == "0.357 nats"
    lowest = exercises_of("guess", COURSE_SEED)[1]
    assert "The cat sat on the [MASK]." in lowest.text and true_word(lowest) == "mat"
    assert lowest.solution == "P(mat) = 0.70" and len(lowest.options) == 4
    river = exercises_of("accuracy", COURSE_SEED)[0]
    assert river.table[1:] == (
        ("river 0.3", "river 0.01"),
        ("stream 0.4", "mountain 0.95"),
        ("water 0.2", "sky 0.02"),
    )
    assert river.solution == "A 1.204, B 4.605 nats: A is better"
    two, empirical = exercises_of("cross-entropy", COURSE_SEED)[:2]
    assert "[0.1, 0.7, 0.1, 0.1]" in two.text and "−ln 0.7" in two.text
    assert two.solution == "[0, 1, 0, 0] and [0.1, 0.7, 0.1, 0.1]"
    assert "P(A) = 0.2, P(B) = 0.5, P(C) = 0.3; class B" in empirical.text
    assert empirical.solution == "[0, 1, 0]" and "−ln 0.5" in empirical.explanation


# ---- The numbers again, from the question alone


def test_losses_of_one_word():
    for exercise, _ in drawn("guess", 1):
        assert sum(column(exercise)) == 100
        truth = row_of(exercise, true_word(exercise)) / 100
        assert exercise.answer == pytest.approx(torch_loss(truth))
    for exercise, _ in drawn("guess", 2):
        best = max(numbers_of(option.text)[0] for option in exercise.options)
        assert numbers_of(exercise.solution) == [best]
    for exercise, _ in drawn("loss", 1):
        assert sum(column(exercise)) == pytest.approx(1)
        assert exercise.answer == pytest.approx(torch_loss(row_of(exercise, true_word(exercise))))
    for exercise, (probability,) in drawn("next-sentence", 1):
        follows = 0.0 if "does not follow" in exercise.text else 1.0
        tensors = torch.tensor([probability]).double(), torch.tensor([follows]).double()
        assert exercise.answer == pytest.approx(binary_cross_entropy(*tensors).item(), abs=1e-6)


def test_logits_at_a_temperature():
    for exercise, (temperature,) in drawn("loss", 2):
        words = [row[0] for row in exercise.table[1:]]
        logits = torch.tensor([column(exercise)]).double() / temperature
        target = torch.tensor([words.index(true_word(exercise))])
        assert exercise.answer == pytest.approx(cross_entropy(logits, target).item())


def test_bits_and_perplexity():
    for exercise, (nats,) in drawn("loss", 3):
        bits, perplexity = numbers_of(exercise.solution)
        assert 2**bits == pytest.approx(perplexity, rel=1e-3)
        assert math.exp(nats) == pytest.approx(perplexity, rel=1e-3)


def test_differences_of_losses():
    for exercise, _ in drawn("both-sides", 2):
        left, both = column(exercise)
        assert exercise.answer == pytest.approx(torch_loss(left) - torch_loss(both))
    for exercise, (high, low) in drawn("accuracy", 2):
        assert exercise.answer == pytest.approx(math.log(high / low))
        assert high < 50, "another word can be expected more"
    for exercise, _ in drawn("accuracy", 1):
        cells = [[numbers_of(cell)[0] for cell in row] for row in exercise.table[1:]]
        for of_model in zip(*cells, strict=True):
            assert sum(of_model) <= 1 and of_model[1] == max(of_model) > of_model[0]
        losses = [torch_loss(value) for value in cells[0]]
        better = "AB"[losses.index(min(losses))]
        said = f"A {losses[0]:.3f}, B {losses[1]:.3f} nats: {better} is better"
        assert exercise.solution == said


def test_models_in_order():
    for exercise, _ in drawn("accuracy", 3):
        given = {item.name: numbers_of(item.text) for item in exercise.items}
        assert all(sum(pair) < 1 for pair in given.values())
        ordered = sorted(given, key=lambda name: torch_loss(given[name][0]))
        assert exercise.solution == " → ".join(ordered)
        first_word_right = [name for name, (truth, rival) in given.items() if truth > rival]
        assert first_word_right == [ordered[1]]


def test_what_the_models_see():
    for exercise, _ in drawn("both-sides", 1):
        left, right = re.match(r"“(.+) ____ (.+)\.”", exercise.text).groups()
        both = f"“{left}” and “{right}”"
        assert exercise.solution == (f"“{left}” alone" if "causal" in exercise.text else both)
    for exercise, _ in drawn("both-sides", 3):
        left, right = re.match(r"“(.+) ____ (.+)\.”", exercise.text).groups()
        hidden = "" if "cut off" in exercise.text else " [MASK]" * len(right.split()) + " ."
        assert exercise.solution == f"[CLS] {left} [MASK]{hidden} [SEP]"


def test_counts_and_kinds_of_masking():
    shares = {"as [MASK]": 0.8, "a random token": 0.1, "unchanged": 0.1}
    for exercise, (tokens, *_) in drawn("masking", 1):
        share = next(share for kind, share in shares.items() if f"{kind}?" in exercise.text)
        assert exercise.answer == pytest.approx(0.15 * share * tokens)
    seen = set()
    for exercise, _ in drawn("masking", 2):
        word = re.search("“(.+)”", exercise.text)[1]
        shown, label = next(row[1:] for row in exercise.table[1:] if row[0] == word)
        kinds = {"[MASK]": "as [MASK]", word: "unchanged"}
        wanted = "not chosen" if label == "–" else kinds.get(shown, "a random token")
        assert exercise.solution.endswith(wanted)
        seen.add(wanted)
    assert len(seen) == 4
    for exercise, _ in drawn("masking", 3):
        special = [option.text for option in exercise.options if option.text[0] == "["]
        assert special == [exercise.solution]


def test_sums_and_means_of_a_ledger():
    for exercise, _ in drawn("ledger", 1):
        assert exercise.answer == pytest.approx(sum(map(torch_loss, column(exercise))))
    for exercise, (tokens, chosen, *losses) in drawn("ledger", 2):
        assert tokens > chosen == len(losses)
        assert exercise.answer == pytest.approx(np.mean(losses))
    for exercise, (hundred, mean, kept) in drawn("ledger", 3):
        counts, losses = column(exercise), column(exercise, 2)
        assert hundred == sum(counts)
        assert mean == pytest.approx(np.average(losses, weights=counts), abs=0.005)
        assert kept == pytest.approx(np.average(losses[:2], weights=counts[:2]), abs=0.005)
        assert kept > mean


def test_distributions():
    for exercise, (_, *numbers) in drawn("cross-entropy", 1):
        place = int(re.search(r"number (\d)", exercise.text)[1]) - 1
        prediction = numbers[:4]
        assert sum(prediction) == pytest.approx(1)
        assert numbers[4] == prediction[place]
        truth = [float(index == place) for index in range(4)]
        assert numbers_of(exercise.solution) == truth + prediction
        assert f"{entropy(truth) + entropy(truth, prediction):.3f} nats" in exercise.explanation
    for exercise, prediction in drawn("cross-entropy", 2):
        assert sum(prediction) == pytest.approx(1)
        name = re.search(r"class (\w) is true", exercise.text)[1]
        assert numbers_of(exercise.solution) == [float(letter == name) for letter in "ABC"]
    for exercise, _ in drawn("cross-entropy", 3):
        p, q = column(exercise), column(exercise, 2)
        assert sum(p) == pytest.approx(1) and sum(q) == pytest.approx(1)
        assert exercise.answer == pytest.approx(entropy(p, q))


def test_changes_verdicts_and_intervals():
    for exercise, (baseline, model) in drawn("certainty", 1):
        assert exercise.answer == pytest.approx(100 * (model - baseline) / baseline)
    seen = set()
    for exercise, (baseline, model, _, low, high) in drawn("certainty", 2):
        assert (low + high) / 2 == pytest.approx(100 * (model / baseline - 1), abs=0.06)
        bands = {
            "PASS" if end < 5 else "AT_RISK" if end < 10 else "REGRESSION" for end in (low, high)
        }
        assert exercise.solution == (bands.pop() if len(bands) == 1 else "INCONCLUSIVE")
        seen.add(exercise.solution)
    assert len(seen) == 4
    for exercise, (texts, half, more) in drawn("certainty", 3):
        assert exercise.answer == pytest.approx(half * math.sqrt(texts / more))


def test_vectors():
    for exercise, numbers in drawn("senses", 1):
        a, b = numbers[:3], numbers[3:]
        assert exercise.answer == pytest.approx(1 - cosine(a, b))
        assert ("away from each other" in exercise.explanation) == (exercise.answer < 0)
    assert min(exercise.answer for exercise, _ in drawn("senses", 1)) < 0
    assert "−1 for opposite ones" in chapters()[8].steps[0].text
    for exercise, numbers in drawn("senses", 2):
        values, asked = numbers[:4], numbers[-1]
        assert exercise.answer == pytest.approx(zscore(values)[values.index(asked)])
    for exercise, new in drawn("senses", 3):
        cosines = {}
        for sense, vectors in exercise.table[1:]:
            centroid = np.reshape(numbers_of(vectors), (2, 2)).mean(axis=0)
            cosines[sense] = 1 - cosine(new, centroid)
        assert exercise.solution == max(cosines, key=cosines.get)


def test_both_losses_of_a_pair():
    for exercise, (count, *losses, is_next) in drawn("next-sentence", 2):
        assert len(losses) == count
        assert exercise.answer == pytest.approx(np.mean(losses) + torch_loss(is_next))


def test_numbers_are_written_with_a_true_minus():
    assert written(-1.5, 1) == "−1.5" and written(-1e-9) == "0.000"
