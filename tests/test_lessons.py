"""The course: its chapters are complete, and every number that they state is right."""

import re
from pathlib import Path

import pytest

import fillmask_ui
from fillmask_ui.lessons import chapters
from fillmask_ui.lessons.numbers import computed, stated, value_of

pytestmark = pytest.mark.quick

CHAPTERS = chapters()


def test_there_are_ten_chapters_in_order():
    assert [chapter.number for chapter in CHAPTERS] == [*range(1, 11)]
    assert len({chapter.name for chapter in CHAPTERS}) == 10


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_every_number_of_a_text_is_computed_or_has_a_source(chapter):
    known = {value_of(number)[0] for number in [*chapter.numbers, *chapter.given]}
    for step in chapter.steps:
        for number in stated(f"{step.title}\n{step.text}\n{step.after}"):
            assert value_of(number)[0] in known, f"{step.title}: {number} comes from nowhere"


@pytest.mark.parametrize(
    ("written", "expression"),
    [item for chapter in CHAPTERS for item in chapter.numbers.items()],
)
def test_a_computed_number_is_what_its_expression_gives(written, expression):
    value, digits = value_of(written)
    percent = 100 if written.rstrip().endswith("%") else 1
    assert f"{percent * computed(expression):.{digits}f}" == f"{value:.{digits}f}"


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_every_number_that_is_listed_stands_in_the_text(chapter):
    said = {
        value_of(number)[0]
        for step in chapter.steps
        for number in stated(f"{step.title}\n{step.text}\n{step.after}")
    }
    listed = {value_of(number)[0] for number in [*chapter.numbers, *chapter.given]}
    assert listed <= said, f"not in the text: {sorted(listed - said)}"


def test_bert_base_has_the_parameters_that_the_table_states():
    """Counted by transformers, whose default configuration is that of BERT-base."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    with torch.device("meta"):
        count = transformers.BertModel(transformers.BertConfig()).num_parameters()
    texts = Path(fillmask_ui.__file__).parent / "lessons" / "texts"
    chapter = (texts / "10-next-sentence.md").read_text("utf-8")
    (row,) = re.findall(r"^\| parameters \| (\d+) million \|", chapter, re.MULTILINE)
    assert int(row) == round(count / 1e7) * 10
