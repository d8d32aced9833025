"""Figures on what the evaluator does: masks and their losses, uncertainty, vectors; exercises."""

import re
from dataclasses import replace
from functools import partial

import pytest
from explore_page import session_of
from lesson_figures import FIGURES, Tags, show_figure
from table_model import TableModel, letter_vocabulary

from fillmask_ui import load_model
from fillmask_ui.lessons import chapters
from fillmask_ui.lessons.exercises import EXERCISES, exercises_of
from fillmask_ui.lessons.exercises.exercise import Choice, Numeric
from fillmask_ui.lessons.masked_text import mask_text
from fillmask_ui.show.render import render_part
from fillmask_ui.ui.components import answered
from fillmask_ui.ui.learn import uncertainty_figures
from fillmask_ui.ui.learn.learn_figures import exercises, figure

MASKING = ["masking", "mask_shares", "mask_kinds", "ledger", "ledger_kinds", "ledger_mix"]
CAT = "the old dog ran to the river and the cat sat on the mat"  # five tokens with seed 4


@pytest.fixture(scope="module")
def show():
    """What a figure shows of the table model; `noisy` is like it, `letters` has other tokens."""
    letters = TableModel(vocabulary=letter_vocabulary())
    session = session_of(table=TableModel(), noisy=TableModel(noise=0.2), letters=letters)
    return partial(show_figure, session, session.model("table"))


def test_every_figure_of_a_text_exists_and_is_used_once():
    used = [step.figure for chapter in chapters() for step in chapter.steps if step.figure]
    assert sorted(used) == sorted(FIGURES)


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta"])
def test_tokens_of_any_tokenizer_are_words(session, tiny_models, family):
    """No marks of the tokenizer, and masks as everybody writes them."""
    model = load_model(tiny_models.without_onnx(family), runtime="torch")
    text = "The cat ___ on the mat."
    shown = show_figure(session, model, "masking", text=text).pieces["tokens"]
    words = Tags(shown).text.split()
    assert {"on", "the", "[MASK]"} <= set(words)
    assert not set("Ġ▁") & set("".join(words))
    assert show_figure(session, model, "ledger", text=text, seed=3).pieces["lines"]


def test_a_seed_that_chooses_nothing_names_one_that_does(show):
    model = TableModel()
    shown = show("ledger", text=CAT, seed=2, evaluate=1)
    (other,) = re.findall(r"is seed (\d+)\.", shown.pieces["lines"])
    assert not any(mask_text(model, CAT, seed).chosen for seed in range(2, int(other)))
    assert mask_text(model, CAT, int(other)).chosen
    assert shown.pieces["evaluator"] == ""
    assert "none chosen" in show("ledger_kinds", text=CAT, seed=2).pieces["kinds"]


@pytest.mark.parametrize("name", MASKING)
def test_what_cannot_be_masked_is_said_and_a_text_is_never_markup(session, show, name):
    for text, said in (
        (" ", "text is empty"),
        ("xyz", "No token"),
        ("the cat " * 50, "takes at most 64"),
    ):
        answer = answered(figure, session, {"name": name, "values": {"text": text}})
        assert answer["kind"] == "error" and said.lower() in answer["notice"].lower()
    shown = show(name, text="<b>the cat</b> sat <script>", seed=1, lines=99)
    assert not Tags("".join(shown.pieces.values())).names & {"b", "script"}


def test_the_texts_say_how_many_texts_the_figures_read():
    said = {
        chapter.name: " ".join(f"{step.text} {step.after}" for step in chapter.steps)
        for chapter in chapters()
    }
    assert f"{uncertainty_figures.TEMPERATURE_TEXTS} texts" in said["accuracy"]
    assert f"{uncertainty_figures.SEED_TEXTS} short texts" in said["certainty"]


@pytest.fixture
def embedded(shipped):
    """What a figure shows of a shipped model."""
    return partial(show_figure, session_of(table=shipped), shipped)


def rows_of(html):
    rows = re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    return [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in rows]


def test_a_push_raises_raw_cosines_and_no_others(embedded):
    """The point of z-scoring, with any model."""
    plain, pushed = embedded("rogue_dimensions"), embedded("rogue_dimensions", push="2")
    assert pushed.pieces["scored"] == plain.pieces["scored"]
    (_, before), (_, after) = (
        [list(map(float, row)) for row in rows_of(own.pieces["contrast"]) if len(row) == 2][-2:]
        for own in (plain, pushed)
    )
    assert before[0] < 0.3 and after[0] > 0.75  # any two tokens
    assert abs(after[1] - before[1]) <= 0.01
    raw = [float(cell) for row in rows_of(pushed.pieces["raw"])[1:] for cell in row]
    assert min(raw) > 0.8
    assert "pushed" in pushed.pieces["dimensions"]
    assert "pushed" not in plain.pieces["dimensions"]


def test_own_sentences_of_three_senses(embedded):
    lines = "1: The bank lent money.\n2: The bank of the river.\n3: A <b>bank</b> of clouds."
    shown = embedded("word_cosines", word="bank", sentences=lines)
    assert '&lt;b&gt;<strong class="fm-used">bank</strong>' in shown.pieces["matrix"]
    assert "–" in shown.pieces["summary"]  # no two have the same sense
    assert "▲" in shown.pieces["matrix"]
    point = embedded("sense_map", word="bank", sentences=lines).pieces["map"]
    assert "bank" in re.search(r'role="img" aria-label="([^"]*)"', point)[1]


def with_another_answer(exercise):
    if isinstance(exercise, Choice):
        return replace(exercise, right=(exercise.right + 1) % len(exercise.options))
    if isinstance(exercise, Numeric):
        return replace(exercise, answer=0.0, slips=())
    items = tuple(replace(item, value=-item.value) for item in exercise.items)
    return replace(exercise, items=items)


@pytest.mark.parametrize("chapter", EXERCISES)
def test_forms_hold_no_answer(session, chapter):
    for seed in (1, 7):
        html = exercises(session, {"chapter": chapter, "seed": seed})["html"]
        found = exercises_of(chapter, seed)
        assert html.count("<form") == len(found)
        for exercise in found:
            assert not [line for line in exercise.explanation.split("\n") if line in html]
        other = [with_another_answer(one) for one in found]
        forms = render_part("page/learn/exercises.html", "forms", chapter=chapter, exercises=other)
        assert forms == html, "another answer, the same forms"
