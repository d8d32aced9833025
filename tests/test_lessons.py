"""The course: its chapters are complete, and every number that they state is right."""

import math
import re

import numpy as np
import pytest

from fillmask_ui.lessons import chapters
from fillmask_ui.scoring import nll_nats

pytestmark = pytest.mark.quick

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
    found = STATED.findall(text.replace("\\,", " ").replace("\\%", "%"))
    return [number.strip() for number in found if not re.fullmatch(r"\d", number.strip())]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_the_numbers_of_a_text_are_those_that_are_computed_or_have_a_source(chapter):
    texts = [f"{step.title}\n{step.text}\n{step.after}" for step in chapter.steps]
    said = {value_of(number)[0] for text in texts for number in stated(text)}
    listed = {value_of(number)[0] for number in [*chapter.numbers, *chapter.given]}
    assert said == listed


@pytest.mark.parametrize(
    ("written", "expression"), [item for chapter in CHAPTERS for item in chapter.numbers.items()]
)
def test_a_computed_number_is_what_its_expression_gives(written, expression):
    value, digits = value_of(written)
    percent = 100 if written.rstrip().endswith("%") else 1
    assert f"{percent * computed(expression):.{digits}f}" == f"{value:.{digits}f}"


def test_sizes_of_known_models_are_those_of_transformers():
    """The table of the last chapter: a network of its dimensions has so many parameters."""
    import torch
    from transformers import BertConfig, BertModel, XLMRobertaConfig, XLMRobertaModel

    text = CHAPTERS[-1].steps[-1].text
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
            made = network(
                config(
                    vocab_size=number["tokens of the vocabulary"],
                    max_position_embeddings=number["longest text in tokens"],
                    hidden_size=number["dimensions of a vector"],
                    intermediate_size=4 * number["dimensions of a vector"],
                    num_hidden_layers=number["layers"],
                    num_attention_heads=number["attention heads in each layer"],
                )
            )
        millions = sum(parameter.numel() for parameter in made.parameters()) / 1e6
        assert millions == pytest.approx(number["parameters"], rel=0.02)
