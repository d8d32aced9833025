"""Figures of the lessons: losses as of torch; masks, uncertainty, vectors; forms of exercises."""

import json
import math
import re
from dataclasses import replace
from functools import partial

import pytest
import torch
from explore_page import session_of
from features.course.lesson_figures import FIGURES, show_figure
from html_tags import Tags
from hypothesis import given
from hypothesis import strategies as st
from table_model import TableModel, letter_vocabulary
from ui.test_any_input import ANY_TEXT, ANY_VALUE, some

from fillmask_ui import fill, load_model
from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.features.course import guess_figures, uncertainty_figures
from fillmask_ui.features.course import learn_figures as learn
from fillmask_ui.features.course.chapter import chapters
from fillmask_ui.features.course.exercises import EXERCISES, exercises_of
from fillmask_ui.features.course.exercises.exercise import Choice, Numeric
from fillmask_ui.features.course.learn_figures import exercises, figure
from fillmask_ui.features.course.masked_text import mask_text
from fillmask_ui.show.render import render_part
from fillmask_ui.ui.components import answered
from tests.ui.test_examples import holds

TEXT = "the [MASK] sat on the mat."
MASK = {"sentence": TEXT, "truth": "cat"}
SPLIT = {"word_0": "cat", "percent_0": "50", "word_1": "dog", "percent_1": "25"}
OURS = {"which": "own", **MASK, **SPLIT}


@pytest.fixture
def logits():
    """Of the table model at the mask, for torch."""
    model = TableModel()
    ids = model.vocabulary.encode(TEXT).ids
    bias = model.own[model.vocabulary.mask_id]
    return torch.tensor(model.left[ids[1]] + model.right[ids[3]] + bias).double()


def cross_entropy(logits, temperature=1.0):
    target = torch.tensor([TableModel().vocabulary.ids["cat"]])
    return torch.nn.functional.cross_entropy(logits[None] / temperature, target).item()


def entropy(logits, temperature=1.0):
    return torch.distributions.Categorical(logits=logits / temperature).entropy().item()


def bars(html):
    """Word -> the probability that its bar shows."""
    row = r'fm-row-name" dir="auto">(?:<span.*?</span>)?([^<]*?) ?<.*?--p:([\d.]+)'
    return {word: float(value) for word, value in re.findall(row, html, re.S)}


@pytest.mark.parametrize("example", [*guess_figures.READY, *guess_figures.ROUNDS], ids=str)
def test_the_model_makes_the_point_of_every_sentence(example, shipped):
    assert example.claims and len(example.hidden) == 1
    assert [claim for claim in example.claims if not holds(claim, example, shipped)] == []


def test_the_model_is_absent_until_it_is_revealed_for_this_sentence(show, logits):
    hidden = show("guess", **OURS)
    expected = {"cat": 0.5, "dog": 0.25, "no guess": 0.25}
    assert bars(hidden.pieces["result"]) == pytest.approx(expected)
    assert "model" not in "".join(hidden.pieces.values()).lower()
    assert "cat" not in hidden.pieces["sentence"] and hidden.set == {"revealed": ""}
    revealed = show("guess", **OURS, reveal=1)
    assert "cat" in revealed.pieces["sentence"] and "0.693 nats" in revealed.pieces["result"]
    assert f"{cross_entropy(logits):.3f} nats" in revealed.pieces["result"]
    later = {**OURS, **revealed.set, "percent_0": "25"}
    assert "1.386 nats" in show("guess", **later).pieces["result"]
    assert "The class" in show("guess", **later, hide=1).pieces["result"]
    assert show("guess", **{**later, "sentence": "a [MASK] ran."}).set == {"revealed": ""}
    nobody = show("guess", **{**OURS, "truth": "river"}, reveal=1).pieces["result"]
    assert "Nobody guessed “river”, so the loss of the class is infinite" in nobody
    markup = show("guess", **{**OURS, "word_0": "<img src=x>", "truth": ""}, reveal=1)
    assert "&lt;img" in markup.pieces["result"] and "<img" not in markup.pieces["result"]


def test_columns_open_one_after_the_other_and_only_differences_matter(show, logits):
    tables = [show("softmax_table", **MASK, columns=n).pieces["table"] for n in (1, 2, 3, 4)]
    assert [table.count('scope="col"') for table in tables] == [2, 3, 4, 5]
    cat = TableModel().vocabulary.ids["cat"]
    assert f"{logits[cat]:.2f}" in tables[0] and "sum" not in tables[1]
    assert f"{torch.exp(logits).sum():,.0f}" in tables[2] and "nats" not in tables[2]
    assert f"{cross_entropy(logits):.3f} nats" in tables[3]
    shares = re.findall(r"--share:([\d.]+)", tables[3])
    for added, number in (("5", 5), ("largest", -logits.max().item())):
        moved = show("softmax_table", **MASK, columns=4, added=added).pieces["table"]
        assert re.findall(r"--share:([\d.]+)", moved) == shares and len(shares) >= 5
        assert f">{logits.max().item() + number:.2f}<" in moved


@pytest.mark.parametrize("temperature", [0.1, 1, 5])
def test_bars_and_loss_follow_the_temperature(show, logits, temperature):
    html_by_name = show("loss_temperature", **MASK, temperature=temperature).pieces
    expected = torch.softmax(logits / temperature, 0)
    drawn, ids = bars(html_by_name["bars"]), TableModel().vocabulary.ids
    assert sum(drawn.values()) == pytest.approx(1, abs=1e-4)
    words = [word for word in drawn if word in ids]
    assert len(words) >= 4
    for word in words:
        assert drawn[word] == pytest.approx(expected[ids[word]].item(), abs=1e-5)
    for value in (cross_entropy(logits, temperature), entropy(logits, temperature)):
        assert f"{value:.3f} nats" in html_by_name["facts"]
    assert f"{math.log(len(logits)):.3f} nats" in html_by_name["facts"]


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta"])
def test_other_tokenizers_write_their_masks_otherwise(tiny_models, family):
    model = load_model(str(tiny_models.without_onnx(family)), runtime="torch")
    session = session_of(table=model)
    words = [c.word.strip() for c in fill(model, TEXT, top_k=100).masks[0].candidates]
    best = next(w for w in words if w.isalpha() and len(model.vocabulary.encode_word(w)) == 1)
    values = {**OURS, "truth": best, "temperature": "2", "columns": "4", "reveal": "1"}
    for name in ("guess", "softmax_table", "loss_temperature", "loss_units"):
        figure_html = show_figure(session, model, name, **values)
        assert best in "".join(figure_html.pieces.values())


@pytest.mark.parametrize("figure", ["sides", "cut_or_hidden", "model_truth", "attention"])
def test_what_cannot_be_asked_is_said_and_nothing_is_markup(show, figure):
    with pytest.raises(TextError, match="no mask"):
        show(figure, text="no gap here.")
    if figure != "attention":
        with pytest.raises(OptionError, match="word is missing"):
            show(figure, text=TEXT, word=" ")
    written = "<img src=x onerror=alert(1)> & [MASK] <b>the</b>."
    html_by_name = show(figure, text=written, word="cat").pieces
    assert not Tags("".join(html_by_name.values())).names & {"img", "b"}


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


@pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.name)
def test_the_html_of_a_chapter_has_its_text_and_figures_and_no_markup_of_the_source(
    session, chapter
):
    html = learn.chapter(session, {"chapter": chapter.name})["html"]
    assert re.findall(r'data-figure="(\w+)"', html) == [
        step.figure for step in chapter.steps if step.figure
    ]
    assert all(f"<h3>{step.title}</h3>" in html for step in chapter.steps)
    text = Tags("".join(re.findall(r'<div class="fm-lesson-text">.*?</div>', html, re.S))).text
    assert not re.search(r"[$\\{}^]|\*\*", text)


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta"])
def test_tokens_of_any_tokenizer_are_words(session, tiny_models, family):
    """No marks of the tokenizer, and masks as everybody writes them."""
    model = load_model(tiny_models.without_onnx(family), runtime="torch")
    text = "The cat ___ on the mat."
    tokens_html = show_figure(session, model, "masking", text=text).pieces["tokens"]
    words = Tags(tokens_html).text.split()
    assert {"on", "the", "[MASK]"} <= set(words)
    assert not set("Ġ▁") & set("".join(words))
    assert show_figure(session, model, "ledger", text=text, seed=3).pieces["lines"]


def test_a_seed_that_chooses_nothing_names_one_that_does(show):
    model = TableModel()
    ledger = show("ledger", text=CAT, seed=2, evaluate=1)
    (next_seed,) = re.findall(r"is seed (\d+)\.", ledger.pieces["lines"])
    assert not any(mask_text(model, CAT, seed).chosen for seed in range(2, int(next_seed)))
    assert mask_text(model, CAT, int(next_seed)).chosen
    assert ledger.pieces["evaluator"] == ""
    assert "none chosen" in show("ledger_kinds", text=CAT, seed=2).pieces["kinds"]


@pytest.mark.parametrize("name", MASKING)
def test_what_cannot_be_masked_is_said_and_a_text_is_never_markup(session, show, name):
    for text, message in (
        (" ", "text is empty"),
        ("xyz", "No token"),
        ("the cat " * 50, "takes at most 64"),
    ):
        answer = answered(figure, session, {"name": name, "values": {"text": text}})
        assert answer["kind"] == "error" and message.lower() in answer["notice"].lower()
    figure_html = show(name, text="<b>the cat</b> sat <script>", seed=1, lines=99)
    assert not Tags("".join(figure_html.pieces.values())).names & {"b", "script"}


def test_the_texts_say_how_many_texts_the_figures_read():
    text_by_chapter = {
        chapter.name: " ".join(f"{step.text} {step.after}" for step in chapter.steps)
        for chapter in chapters()
    }
    assert f"{uncertainty_figures.TEMPERATURE_TEXTS} texts" in text_by_chapter["accuracy"]
    assert f"{uncertainty_figures.SEED_TEXTS} short texts" in text_by_chapter["certainty"]


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
        [list(map(float, row)) for row in rows_of(cosines.pieces["contrast"]) if len(row) == 2][-2:]
        for cosines in (plain, pushed)
    )
    assert before[0] < 0.3 and after[0] > 0.75  # any two tokens
    assert abs(after[1] - before[1]) <= 0.01
    raw = [float(cell) for row in rows_of(pushed.pieces["raw"])[1:] for cell in row]
    assert min(raw) > 0.8
    assert "pushed" in pushed.pieces["dimensions"]
    assert "pushed" not in plain.pieces["dimensions"]


def test_own_sentences_of_three_senses(embedded):
    lines = "1: The bank lent money.\n2: The bank of the river.\n3: A <b>bank</b> of clouds."
    cosines = embedded("word_cosines", word="bank", sentences=lines)
    assert '&lt;b&gt;<strong class="fm-used">bank</strong>' in cosines.pieces["matrix"]
    assert "–" in cosines.pieces["summary"]  # no two have the same sense
    assert "▲" in cosines.pieces["matrix"]
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
        questions = exercises_of(chapter, seed)
        assert html.count("<form") == len(questions)
        for exercise in questions:
            assert not [line for line in exercise.explanation.split("\n") if line in html]
        changed = [with_another_answer(question) for question in questions]
        forms = render_part("course/exercises.html", "forms", chapter=chapter, exercises=changed)
        assert forms == html, "another answer, the same forms"


@some
@given(
    st.one_of(st.sampled_from(sorted(FIGURES)), ANY_VALUE),
    st.dictionaries(ANY_TEXT, ANY_VALUE),
    st.dictionaries(st.sampled_from(["chapter", "seed", "number", "response"]), ANY_VALUE),
)
def test_whatever_state_is_sent_learn_answers(session, name, values, request):
    for function, sent in (
        ("figure", {"name": name, "values": values}),
        ("chapter", request),
        ("exercises", request),
        ("check", {"chapter": "entropy", **request}),
    ):
        answer = answered(learn.SERVED[function], session, sent)
        assert "bug" not in answer.get("error", "")
        json.dumps(answer)
