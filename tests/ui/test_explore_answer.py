"""What the Explore tab shows, from plain inputs."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from table_model import TableModel

from fillmask_ui.errors import FillmaskError, ModelError, NetworkError, OptionError
from fillmask_ui.filling import fill, score_candidates
from fillmask_ui.models import ModelStore
from fillmask_ui.ui.explore.editing import Draft
from fillmask_ui.ui.explore.handlers import (
    ALL_TOKENS,
    MAX_WHOLE_MASKS,
    clicked_candidate,
    clicked_token,
    downloaded,
    whole_vocabulary,
)
from fillmask_ui.ui.explore.view import MAX_STRIP_TOKENS, Question, answer, version_of
from fillmask_ui.ui.session import MAX_CHARACTERS, MAX_WORDS, Session

TEXT = "the cat [MASK] on the mat."
TWO = "the [MASK] sat on the [MASK]."


def test_an_answer_is_what_fill_says(session):
    found = answer(session, Question(TEXT, top_k=7, words="ran, walked"))
    assert found.kind == "none"
    assert found.filling == fill(TableModel(), TEXT, top_k=7, candidates=["ran", "walked"])
    assert list(found.figure.data[0].x) == [
        c.probability for c in found.filling.masks[0].candidates
    ]
    for candidate in found.filling.masks[0].candidates:
        assert f'data-value="{candidate.probability!r}"' in found.html["candidates"]
        assert f'data-value="{candidate.nll_nats!r}"' in found.html["candidates"]


def test_the_loss_of_a_hidden_word_is_torchs_cross_entropy(session):
    """Checked against torch.nn.functional.cross_entropy on the model's logits."""
    draft = Draft(TEXT, ("sat",))
    found = answer(session, Question(TEXT, draft=draft))
    model = TableModel()
    encoding = model.vocabulary.encode(TEXT)
    position = encoding.ids.index(model.vocabulary.mask_id)
    ids = np.array([encoding.ids])
    logits = model.logits_at(ids, np.ones_like(ids), np.array([0]), np.array([position]))
    loss = torch.nn.functional.cross_entropy(
        torch.tensor(logits, dtype=torch.float64), torch.tensor([model.vocabulary.ids["sat"]])
    )
    assert f"loss {float(loss):.3f} nats" in found.html["stats"]
    in_bits = answer(session, Question(TEXT, draft=draft, unit="bits"))
    assert f"loss {float(loss) / math.log(2):.3f} bits" in in_bits.html["stats"]
    assert "sat (hidden word)" in found.html["scored"]
    assert found.choices == ("Mask 1 (sat)",)


def test_a_hidden_word_of_several_tokens_is_scored_whole(session):
    found = answer(session, Question(TEXT, draft=Draft(TEXT, ("walked",))))
    (word,) = score_candidates(TableModel(), TEXT, ["walked"])[0]
    assert len(word.parts) == 2
    assert f"loss {word.nll_nats:.3f} nats" in found.html["stats"]
    assert "rank" not in found.html["stats"]


def test_bits_are_nats_over_ln_2(session):
    nats = answer(session, Question(TEXT)).filling.masks[0]
    shown = answer(session, Question(TEXT, unit="bits"))
    assert f"{nats.entropy_nats / math.log(2):.3f} bits" in shown.html["stats"]
    assert f"{nats.candidates[0].nll_nats / math.log(2):.4f}" in shown.html["candidates"]


def test_the_mask_shown_is_the_one_selected(session):
    first, second = (answer(session, Question(TWO, selected=i)) for i in (0, 1))
    assert (first.selected, second.selected) == (0, 1)
    assert first.choices == ("Mask 1", "Mask 2")
    assert second.filling == first.filling
    masks = first.filling.masks
    assert list(second.figure.data[0].x) == [c.probability for c in masks[1].candidates]
    for joint in first.filling.joint:
        assert f'data-value="{joint.nll_nats!r}"' in first.html["joint"]
    assert answer(session, Question(TWO, selected=9)).selected == 0


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_a_blank_text_gets_a_hint(session, text):
    found = answer(session, Question(text))
    assert (found.kind, found.filling, found.html) == ("hint", None, {})
    assert "[MASK]" in found.notice


def test_no_mask_is_a_hint_and_words_stay_clickable(session):
    found = answer(session, Question("the cat sat."))
    assert found.kind == "hint"
    assert "No word is hidden" in found.notice
    assert found.html["strip"].count('data-action="hide"') == 4


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "a " * 50_000 + "[MASK]",
            ("100,006 characters", f"{MAX_CHARACTERS:,}", "nothing was cut"),
        ),
        ("cat " * 100 + "[MASK]", ("103 tokens", "64", "nothing was cut")),
        ("cat " * 100, ("102 tokens", "64", "nothing was cut")),
    ],
)
def test_a_text_that_is_too_long_is_said_to_be_with_both_lengths(session, text, parts):
    found = answer(session, Question(text))
    assert found.kind == "error"
    assert all(part in found.notice for part in parts), found.notice
    assert found.filling is None


@pytest.mark.parametrize("words", [",".join(f"cat{i}" for i in range(MAX_WORDS + 1)), "[MASK]"])
def test_a_word_that_cannot_be_scored_costs_no_prediction(session, words):
    found = answer(session, Question(TEXT, words=words))
    assert found.kind == "error"
    assert "candidate" in found.notice
    assert found.filling == fill(TableModel(), TEXT, top_k=10)


@pytest.mark.parametrize("k", [0, -1, 10**9])
def test_top_k_stays_within_the_sliders_range(session, k):
    found = answer(session, Question(TEXT, top_k=k))
    size = TableModel().signature.vocabulary_size
    assert len(found.filling.masks[0].candidates) == (1 if k < 1 else min(100, size))


@pytest.mark.parametrize("error", [ModelError("no such model: x"), NetworkError("no network")])
def test_a_model_that_cannot_be_had_is_said_to_be(error):
    def refuse(*_, **__):
        raise error

    found = answer(Session(ModelStore(loader=refuse), "table"), Question(TEXT))
    assert found.kind == "error"
    assert found.notice.lower() == str(error)


def test_a_public_page_loads_only_what_it_offers():
    loads = []

    def load(choice, **_):
        loads.append(choice.reference)
        return TableModel()

    public = Session(ModelStore(loader=load), "table", public=True)
    for reference in ("/etc", "../secret", "org/large-model", "embedded@x"):
        found = answer(public, Question(TEXT, model=reference))
        assert found.kind == "error"
        assert "not offered" in found.notice
    assert loads == []
    assert answer(public, Question(TEXT, model="")).kind == "none"
    assert loads == ["table"]


def test_one_model_call_serves_a_change_of_unit_and_of_mask():
    model = TableModel()
    session = Session(ModelStore(loader=lambda *_, **__: model), "table")
    answer(session, Question(TWO))
    calls = len(model.calls)
    answer(session, Question(TWO, unit="bits", selected=1))
    assert len(model.calls) == calls
    answer(session, Question(TWO, top_k=3))
    assert len(model.calls) > calls


def test_the_hidden_word_is_scored_at_its_own_mask_and_once():
    model = TableModel()
    session = Session(ModelStore(loader=lambda *_, **__: model), "table")
    question = Question("[MASK] " * 20, draft=Draft("[MASK] " * 20, ("walked",) * 20))
    session.fill(model, question.text, top_k=10)
    calls = len(model.calls)
    found = answer(session, replace(question, selected=7))
    # One row for the mask, and one a sub-token.
    assert sum(rows for _, rows in model.calls[calls:]) == 1 + 2
    (word,) = score_candidates(TableModel(), question.text, ["walked"])[7]
    assert f"loss {word.nll_nats:.3f} nats" in found.html["stats"]
    calls = len(model.calls)
    answer(session, replace(question, selected=7, unit="bits"))
    assert len(model.calls) == calls


@pytest.mark.parametrize(
    "ask",
    [
        lambda session, words: session.fill(TableModel(), TEXT, top_k=5, words=words),
        lambda session, words: session.score(TableModel(), TEXT, words),
        lambda session, words: session.score_at(TableModel(), TEXT, words[0], 0),
    ],
)
def test_words_that_would_take_hours_are_refused(session, monkeypatch, ask):
    ask(session, ["walked"])
    monkeypatch.setattr("fillmask_ui.ui.session.MAX_WORK", 10)
    with pytest.raises(OptionError, match=r"too many|fewer"):
        ask(session, ["talked"])


def test_what_is_kept_is_bounded_by_its_candidates(session, monkeypatch):
    monkeypatch.setattr("fillmask_ui.ui.session._KEPT_CANDIDATES", 25)
    model = session.model("")
    for text in ("a [MASK]", "the [MASK]", "the [MASK] [MASK]"):
        session.fill(model, text, top_k=10)
    assert [size for _, size in session._answers.values()] == [20]
    assert len(session.fill(model, "[MASK] " * 5, top_k=10).masks) == 5
    assert not session._answers


def test_a_click_on_a_token_hides_it_and_shows_its_mask(session):
    text = "the [MASK] sat on the mat."
    click = clicked_token(session, Question(text), 6, "hide", version_of(text))
    assert click.draft == Draft("the [MASK] sat on the [MASK].", (None, "mat"))
    assert click.selected == 1
    back = clicked_token(
        session,
        Question(click.draft.text, draft=click.draft),
        1,
        "restore",
        version_of(click.draft.text),
    )
    assert back.draft == Draft(text, (None,))


def test_a_click_on_the_number_of_a_mask_selects_it(session):
    click = clicked_token(session, Question(TWO), 1, "choose", version_of(TWO))
    assert (click.draft.text, click.selected) == (TWO, 1)


@pytest.mark.parametrize("action", ["hide", "restore"])
def test_a_click_on_an_older_strip_does_nothing(session, action):
    question = Question("the cat sat.", draft=Draft("the [MASK] sat.", ("cat",)))
    click = clicked_token(session, question, 2, action, version_of("the dog sat."))
    assert click.draft.text == question.text


def test_a_click_on_a_row_fills_its_word_in(session):
    cat, mat = (TableModel().vocabulary.ids[word] for word in ("cat", "mat"))
    version = version_of(TWO)
    one = clicked_candidate(session, Question(TWO), f"{version}:1:{mat}")
    assert one.draft == Draft("the [MASK] sat on the mat.", (None,))
    both = clicked_candidate(session, Question(TWO), f"{version}:all:{cat},{mat}")
    assert both.draft == Draft("the cat sat on the mat.")


@pytest.mark.parametrize("key", ["", ":", "0:0:7", "{v}", "{v}:0:", "{v}:0:x", "{v}:0:-1",
                                 "{v}:0:99999999", "{v}:7:7", "{v}:<b>:7", "{v}:all:"])  # fmt: skip
def test_a_click_with_a_wrong_key_does_nothing(session, key):
    click = clicked_candidate(session, Question(TWO), key.format(v=version_of(TWO)))
    assert click.draft.text == TWO


def test_the_keys_in_table_and_chart_fill_in(session):
    found = answer(session, Question(TWO, selected=1))
    best = found.filling.masks[1].candidates[0]
    key = found.figure.data[0].customdata[0]
    assert f'data-key="{key}"' in found.html["candidates"]
    filled = clicked_candidate(session, Question(TWO), key)
    ids = TableModel().vocabulary.encode(filled.draft.text).ids
    assert best.token_id in ids


def test_the_whole_vocabulary_adds_up_to_one(session):
    filling = whole_vocabulary(session, Question(TWO))
    for mask in filling.masks:
        assert len(mask.candidates) == filling.signature.vocabulary_size
        assert math.isclose(sum(c.probability for c in mask.candidates), 1, abs_tol=1e-9)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no mask", "no mask"),
        ("[MASK] " * (MAX_WHOLE_MASKS + 1), f"has at most {MAX_WHOLE_MASKS}"),
    ],
)
def test_a_file_of_all_tokens_that_cannot_be_had_is_said(session, text, said):
    with pytest.raises(FillmaskError, match=said):
        whole_vocabulary(session, Question(text))
    found = downloaded(session, ALL_TOKENS, Question(text), None)
    assert found["file"] == ""
    assert said in found["notice"]


def test_a_text_without_a_strip_says_nothing_of_clicks():
    model = TableModel(max_tokens=2000)
    session = Session(ModelStore(loader=lambda *_, **__: model), "table")
    found = answer(session, Question("cat " * MAX_STRIP_TOKENS))
    assert found.html["strip"] == ""
    assert "No word is hidden" in found.notice
    assert "click" not in found.notice
