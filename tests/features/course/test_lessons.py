"""The course: every number that it states is right, as are softmax and distributions."""

import math
import re

import numpy as np
import pytest
import torch
from scipy.stats import entropy

from fillmask_ui.features.course.chapter import chapters
from fillmask_ui.features.course.distributions import compare
from fillmask_ui.features.course.softmax import softmax_of
from fillmask_ui.scoring import nll_nats

CHAPTERS = chapters()
# What an expression of the front matter may use. Losses are those of the evaluator's code.
NAMES = {
    "ln": math.log,
    "log2": math.log2,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "nll": lambda target, *logits: nll_nats(np.array([logits], np.float32), np.array([target]))[0],
}
# A decimal, a percentage, or a whole number of two digits or more; smaller ones count things.
STATED = re.compile(r"(?<![\w.])\d(?:[\d,]*\d)?(?:\.\d+)?(?![\w])(?:\s?\\?%)?")


def computed(expression):
    return float(eval(expression, {"__builtins__": {}, **NAMES}))


def value_of(written):
    """A number as it is written: its value and its digits after the point."""
    digits = re.sub(r"[,\\%\s]", "", written)
    return float(digits), len(digits.partition(".")[2])


def stated(text):
    r"""The numbers that a text states, as it writes them, but for small whole ones."""
    numbers = STATED.findall(text.replace("\\,", " ").replace("\\%", "%"))
    return [number.strip() for number in numbers if not re.fullmatch(r"\d", number.strip())]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_the_numbers_of_a_text_are_those_that_are_computed_or_have_a_source(chapter):
    texts = [f"{step.title}\n{step.text}\n{step.after}" for step in chapter.steps]
    written = {value_of(number)[0] for text in texts for number in stated(text)}
    listed = {value_of(number)[0] for number in [*chapter.numbers, *chapter.sources]}
    assert written == listed


@pytest.mark.parametrize(
    ("written", "expression"), [item for chapter in CHAPTERS for item in chapter.numbers.items()]
)
def test_a_computed_number_is_what_its_expression_gives(written, expression):
    value, digits = value_of(written)
    percent = 100 if written.rstrip().endswith("%") else 1
    assert f"{percent * computed(expression):.{digits}f}" == f"{value:.{digits}f}"


def test_sizes_of_known_models_are_those_of_transformers():
    """Of the chapter on next sentences: a network of its dimensions has so many parameters."""
    import torch
    from transformers import BertConfig, BertModel, XLMRobertaConfig, XLMRobertaModel

    (chapter,) = (chapter for chapter in CHAPTERS if chapter.name == "next-sentence")
    (text,) = (step.text for step in chapter.steps if "| BERT-base |" in step.text)
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in text.splitlines()
        if "|" in line
    ]
    names, *table = [row for row in rows if "---" not in row[0]]
    assert names == ["model", "BERT-base", "XLM-R Large"]
    kinds = (BertConfig, BertModel), (XLMRobertaConfig, XLMRobertaModel)
    for column, (config, network) in enumerate(kinds, 1):
        number = {row[0]: int(value_of(stated(row[column])[0])[0]) for row in table[:-1]}
        with torch.device("meta"):
            model = network(
                config(
                    vocab_size=number["tokens of the vocabulary"],
                    max_position_embeddings=number["longest text in tokens"],
                    hidden_size=number["dimensions of a vector"],
                    intermediate_size=4 * number["dimensions of a vector"],
                    num_hidden_layers=number["layers"],
                    num_attention_heads=number["attention heads in each layer"],
                )
            )
        millions = sum(parameter.numel() for parameter in model.parameters()) / 1e6
        assert millions == pytest.approx(number["parameters"], rel=0.02)


TEXT = "the [MASK] sat on the mat."


@pytest.mark.parametrize("classes", [2, 3, 12])
def test_the_three_numbers_are_those_of_scipy_and_torch(classes):
    """The outside references: `scipy.stats.entropy`, and `cross_entropy` with either target."""
    p, q = np.random.default_rng(classes).dirichlet(np.ones(classes), 2)
    comparison = compare(p, q)
    assert comparison.entropy_nats == pytest.approx(entropy(p), rel=1e-12)
    assert comparison.kl_nats == pytest.approx(entropy(p, q), rel=1e-12)
    assert comparison.cross_entropy_nats > compare(p, p).cross_entropy_nats
    assert compare(p, p).kl_nats == pytest.approx(0, abs=1e-12)
    logits = torch.tensor(np.log(q)[None] + 3.0)  # a softmax of these is q
    soft = torch.nn.functional.cross_entropy(logits, torch.tensor(p[None]))
    assert comparison.cross_entropy_nats == pytest.approx(soft.item(), rel=1e-12)
    hard = torch.nn.functional.cross_entropy(logits, torch.tensor([1]))
    one_hot = compare(np.eye(classes)[1], q)
    assert one_hot.cross_entropy_nats == one_hot.kl_nats == pytest.approx(hard.item(), rel=1e-12)
    assert str(one_hot.entropy_nats) == "0.0"
    assert [term.nats > 0 for term in one_hot.terms] == [number == 1 for number in range(classes)]


def test_a_zero_in_q_is_infinite_where_the_class_can_be_true():
    comparison = compare([0.5, 0.5, 0], [1, 0, 0], ["a", "b"])
    assert comparison.cross_entropy_nats == comparison.kl_nats == math.inf
    assert comparison.impossible == ("b",)
    assert comparison.entropy_nats == pytest.approx(math.log(2))
    assert [term.name for term in comparison.terms] == ["a", "b", "class 3"]
    assert compare([1, 0], [1, 0]).cross_entropy_nats == 0  # 0 ln 0 adds nothing


@pytest.fixture
def logits():
    return np.random.default_rng(3).normal(size=500).astype(np.float32) * 4


@pytest.mark.parametrize("temperature", [0.05, 1, 100])
def test_probabilities_loss_and_entropy_are_those_of_torch(logits, temperature):
    softmax = softmax_of(logits, 7, [3, 7, 11], temperature=temperature)
    scaled = torch.from_numpy(logits).double() / temperature
    shares = torch.softmax(scaled, 0)[[3, 7, 11]]
    assert [row.probability for row in softmax.rows[:3]] == pytest.approx(shares.tolist())
    assert softmax.rows[-1].probability == pytest.approx(1 - shares.sum().item(), abs=1e-12)
    loss = torch.nn.functional.cross_entropy(scaled[None], torch.tensor([7])).item()
    assert softmax.nll_nats == pytest.approx(loss)
    of_torch = torch.distributions.Categorical(logits=scaled).entropy().item()
    assert softmax.entropy_nats == pytest.approx(of_torch, abs=1e-12)
