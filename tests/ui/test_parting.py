"""Where do two models part: what the Explore tab gives the browser, from plain values."""

import json

import pytest
from table_model import TableModel, letter_vocabulary

from fillmask_ui import fill
from fillmask_ui.comparing.divergence_search import Sentence, look
from fillmask_ui.models import ModelStore
from fillmask_ui.ui.components import answered
from fillmask_ui.ui.explore import divergence_view
from fillmask_ui.ui.explore.divergence_view import MAX_SENT, MAX_SENTENCES, embedded_sentences
from fillmask_ui.ui.session import Session

MODELS = {
    "table": TableModel(),
    "noisy": TableModel(noise=0.4),
    "letters": TableModel(5, vocabulary=letter_vocabulary()),
}
OWN = [
    "the old cat sat on the mat .",
    "the dog ran .",
    "too short .",
    "a red cat and a [MASK] dog .",
]


@pytest.fixture
def session():
    return Session(ModelStore(loader=lambda reference, **_: MODELS[reference.reference]), "table")


def ask(session, **values):
    return answered(divergence_view.divergent, session, {"text": "", "compare": "noisy", **values})


def test_rows_are_what_the_core_finds(session):
    found = ask(session, sentences=OWN)
    looked = [
        look(MODELS["table"], MODELS["noisy"], Sentence(number, 0, text))
        for number, text in enumerate(OWN)
    ]
    assert (found["done"], found["left_out"], found["total"]) == (4, 1, None)
    assert found["words"] == sum(own.words for own in looked)
    expected = [own.found for own in looked if own.found]
    assert len(found["found"]) == len(expected) == 3
    for row, own in zip(found["found"], expected, strict=True):
        assert (row["flipped"], row["change"]) == own.order
        assert f"KL {own.kl_nats:.3f} nats" in row["html"]
        assert ("first word flipped" in row["html"]) == own.flipped
        assert row["state"]["text"] == own.masked
        assert row["state"]["hidden"] == ([own.word] if own.word else [])
        for name, side in (("table", "A"), ("noisy", "B")):
            best = fill(MODELS[name], own.masked, top_k=1).masks[own.mask].candidates[0]
            assert f'{side} <b dir="auto">{best.word}</b>' in row["html"].replace("…", "")
    json.dumps(found, allow_nan=False)


def test_windows_draw_the_words_that_one_search_draws(session):
    whole = ask(session, sentences=OWN)["found"]
    parts = [ask(session, sentences=OWN[at : at + 2], start=at)["found"] for at in (0, 2)]
    assert parts[0] + parts[1] == whole


def test_the_embedded_texts_come_in_windows(session, monkeypatch):
    monkeypatch.setattr(divergence_view, "WINDOW_SECONDS", 0)
    total = len(embedded_sentences())
    assert total == MAX_SENTENCES
    first, last, over = (ask(session, start=start) for start in (0, total - 1, total))
    assert [(own["done"], own["total"]) for own in (first, last, over)] == [
        *((1, total), (1, total), (0, total)),
    ]


def test_the_same_model_twice_and_two_tokenizers(session):
    same = ask(session, compare="table", sentences=OWN)
    assert (same["done"], same["left_out"], same["found"]) == (4, 1, [])
    by_word = ask(session, compare="letters", sentences=OWN)["found"]
    assert by_word and not any("KL" in row["html"] for row in by_word)


def test_text_is_never_markup_and_no_call_is_unbounded(session):
    (row,) = ask(session, sentences=["the <b>cat</b> sat on the mat ."])["found"]
    assert "<b>cat" not in row["html"] and "&lt;b&gt;" in row["html"]
    assert ask(session, sentences=OWN * 9)["done"] == MAX_SENT
    assert "50,001 characters" in ask(session, sentences=["x" * 50_001])["error"]


def test_what_cannot_be_had_is_said(session):
    assert "pick a second one" in ask(session, compare="")["error"]
    public = Session(session.store, "table", public=True)
    assert "not offered on this public page" in ask(public, compare="/etc/passwd")["error"]
