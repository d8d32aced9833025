"""What the Explore tab shows, from plain inputs."""

import json
import math
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from table_model import TableModel

from fillmask_ui.errors import FillmaskError, ModelError, NetworkError, OptionError
from fillmask_ui.filling import fill, score_candidates
from fillmask_ui.models import LoadProgress, ModelStore
from fillmask_ui.ui.components import answered
from fillmask_ui.ui.explore import explore_modes
from fillmask_ui.ui.explore.explore_modes import (
    ALL_TOKENS,
    MAX_WHOLE_MASKS,
    acted,
    whole_vocabulary,
)
from fillmask_ui.ui.explore.explore_state import Action, Question
from fillmask_ui.ui.explore.prediction_view import answer
from fillmask_ui.ui.explore.sentence_strip import MAX_STRIP_TOKENS, Draft, version_of
from fillmask_ui.ui.session import MAX_CHARACTERS, MAX_WORDS, Session

TEXT = "the cat [MASK] on the mat."
TWO = "the [MASK] sat on the [MASK]."


def test_an_answer_is_what_fill_says(session):
    found = answer(session, Question(TEXT, top_k=7, words="ran, walked"))
    assert found.kind == "none"
    assert found.filling == fill(TableModel(), TEXT, top_k=7, candidates=["ran", "walked"])
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
    assert first.html["choices"].count("<button") == 2
    assert second.filling == first.filling
    masks = first.filling.masks
    for candidate in masks[1].candidates:
        assert f'data-value="{candidate.probability!r}"' in second.html["bars"]
    assert not first.filling.joint  # asked for apart, since they take longer
    assert answer(session, Question(TWO, selected=9)).selected == 0


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_a_blank_text_gets_a_hint(session, text):
    found = answer(session, Question(text))
    assert (found.kind, found.filling, found.html) == ("hint", None, {})
    assert "Write a sentence" in found.notice


def test_a_sentence_without_a_mask_is_to_be_measured_and_its_words_can_be_clicked(session):
    found = answer(session, Question("the cat sat."))
    assert (found.kind, found.measurable) == ("none", True)
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


def test_words_that_cannot_be_scored_are_named_and_the_others_scored(session):
    found = answer(session, Question(TEXT, words="ran, [MASK], walked"))
    assert "'[MASK]'" in found.notice
    assert found.filling == fill(TableModel(), TEXT, top_k=10, candidates=["ran", "walked"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("zebra [MASK] giraffe.", "knows no word of this sentence"),
        ("zebra giraffe", "knows no word"),
        ("zebra giraffe the [MASK] lion", "knows only 1 of the 4 words"),
    ],
)
def test_a_sentence_of_words_that_the_model_does_not_know_is_not_answered(session, text, said):
    found = answer(session, Question(text))
    assert found.kind == "hint"
    assert said in found.notice
    assert found.filling is None
    assert not found.measurable
    assert "fm-unknown" in found.html["strip"]


def test_half_of_the_words_are_enough(session):
    assert answer(session, Question("the zebra [MASK]")).filling is not None


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
    session.fill(model, question.text, top_k=10, joint=0)
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


def after(question, do, **where):
    version = where.pop("version", version_of(question.text))
    return acted(question, Action(do, version=version, **where), TableModel())


def test_a_click_on_a_token_hides_it_and_shows_its_mask():
    text = "the [MASK] sat on the mat."
    click = after(Question(text), "hide", token=6)
    assert click.draft == Draft("the [MASK] sat on the [MASK].", (None, "mat"))
    assert (click.text, click.selected) == (click.draft.text, 1)
    back = after(Question(click.text, draft=click.draft), "restore", token=1)
    assert back.draft == Draft(text, (None,))


def test_a_click_on_the_number_of_a_mask_selects_it():
    click = after(Question(TWO), "choose", token=1)
    assert (click.draft.text, click.selected) == (TWO, 1)


@pytest.mark.parametrize("do", ["hide", "restore", "choose", "fill"])
def test_a_click_on_an_older_strip_does_nothing(do):
    question = Question("the cat sat.", draft=Draft("the [MASK] sat.", ("cat",)))
    click = after(question, do, token=2, key="0:7", version=version_of("the dog sat."))
    assert click == question


def test_a_click_on_a_row_fills_its_word_in():
    cat, mat = (TableModel().vocabulary.ids[word] for word in ("cat", "mat"))
    one = after(Question(TWO), "fill", key=f"1:{mat}")
    assert one.draft == Draft("the [MASK] sat on the mat.", (None,))
    both = after(Question(TWO), "fill", key=f"all:{cat},{mat}")
    assert both.draft == Draft("the cat sat on the mat.")


@pytest.mark.parametrize("key", ["", ":", "0:", "0:x", "0:-1", "0:99999999", "7:7", "<b>:7",
                                 "all:", "9" * 5000 + ":7", "0:" + "9" * 5000])  # fmt: skip
def test_a_click_with_a_wrong_key_does_nothing(key):
    assert after(Question(TWO), "fill", key=key).draft.text == TWO


def test_the_keys_in_table_and_bars_fill_in(session):
    found = answer(session, Question(TWO, selected=1))
    best = found.filling.masks[1].candidates[0]
    key = f"1:{best.token_id}"
    for piece in ("candidates", "bars"):
        assert f'data-key="{version_of(TWO)}:{key}"' in found.html[piece]
    filled = after(Question(TWO), "fill", key=key)
    assert best.token_id in TableModel().vocabulary.encode(filled.draft.text).ids


def test_the_browser_is_given_plain_values(session):
    """What `json` cannot write, such as an infinite loss, must not reach the browser."""
    found = explore_modes.answer(
        session, {"text": TWO, "draft": {"text": TWO, "hidden": ["cat", None]}}
    )
    again = json.loads(json.dumps(found, allow_nan=False))
    mask = fill(TableModel(), TWO, top_k=10).masks[0]
    assert again["mask"]["candidates"][0]["probability"] == mask.candidates[0].probability
    assert again["mask"]["perplexity"] == mask.perplexity
    total = again["mask"]["rest"] + sum(c["probability"] for c in again["mask"]["candidates"])
    assert math.isclose(total, 1)
    assert again["truth"]["word"] == "cat"
    assert (again["masks"], again["hidden"]) == (2, ["cat", None])


def test_all_masks_are_filled_together_when_that_is_asked_for(session):
    found = explore_modes.joint(session, {"text": TWO, "unit": "nats"})["html"]
    expected = fill(TableModel(), TWO, top_k=1).joint
    assert expected
    for filling in expected:
        assert f'data-value="{filling.nll_nats!r}"' in found
    assert explore_modes.joint(session, {"text": TEXT})["html"].strip() == ""
    assert explore_modes.joint(session, {"text": "no mask"})["html"] == ""


def test_a_click_is_carried_out_before_it_is_answered(session):
    click = {"do": "hide", "token": 2, "version": version_of("the cat sat.")}
    found = explore_modes.answer(session, {"text": "the cat sat.", "action": click})
    assert (found["text"], found["hidden"]) == ("the [MASK] sat.", ["cat"])
    assert found["mask"] is not None


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"text": None}, "Text: input should be a valid string; it was null"),
        ({"text": TEXT, "top_k": "7"}, "Top_k: input should be a valid integer"),
        ({"text": TEXT, "top_k": 101}, "Top k must be from 1 to 100; it was 101"),
        ({"text": TEXT, "draft": {"hidden": [None, 1]}}, "hidden[1]"),
        ({"text": TEXT, "action": {"do": "look"}}, "action.do"),
        ({"text": TEXT, "unit": "pints"}, "'nats' or 'bits'"),
        ({"text": TEXT, "run": {"run": "a"}}, "run.example"),
        ({"text": TEXT, "selected": -1}, "begin at 0"),
        ([], "it was []"),
    ],
)
def test_what_no_page_sends_is_answered_in_words(session, values, said):
    found = answered(explore_modes.answer, session, values)
    assert found["kind"] == "error"
    assert said.lower() in found["notice"].lower()


def test_a_fault_of_the_page_is_told_and_logged(session, capsys):
    def broken(session, values):
        raise KeyError("rows")

    assert "bug of fillmask-ui: KeyError" in answered(broken, session, {})["notice"]
    assert "Traceback" in capsys.readouterr().err


def test_a_model_that_loads_long_is_asked_for_again():
    gate = threading.Event()

    def load(choice, on_progress):
        on_progress(LoadProgress("download", "fetching", 1, 4))
        assert gate.wait(30)
        return TableModel()

    slow = Session(ModelStore(loader=load), "table")
    waiting = explore_modes.answer(slow, {"text": TEXT})
    assert waiting == {"kind": "busy", "notice": "fetching", "fraction": 0.25}
    gate.set()
    while (found := explore_modes.answer(slow, {"text": TEXT}))["kind"] == "busy":
        pass
    assert found["kind"] == "none"


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
    found = answered(explore_modes.download, session, {"label": ALL_TOKENS, "text": text})
    assert said in found["error"]


def test_a_file_of_all_tokens_has_fewer_masks_on_a_public_page(monkeypatch):
    store = ModelStore(loader=lambda reference, **_: TableModel())
    public = Session(store, "table", public=True)
    size = TableModel().signature.vocabulary_size
    monkeypatch.setattr(explore_modes, "PUBLIC_LINES", 2 * size + 1)
    assert len(whole_vocabulary(public, Question(TWO)).masks) == 2
    with pytest.raises(FillmaskError, match="has at most 2 on this page"):
        whole_vocabulary(public, Question(f"{TWO} {TWO}"))
    monkeypatch.setattr(explore_modes, "PUBLIC_LINES", 1)
    assert whole_vocabulary(public, Question(TEXT)).masks


def test_an_unknown_file_is_an_error_in_words(session):
    assert (
        "Unknown file"
        in answered(explore_modes.download, session, {"label": "<b>", "text": TEXT})["error"]
    )
    assert (
        "hide a word"
        in answered(explore_modes.download, session, {"label": "CSV", "text": "the cat"})["error"]
    )


def test_a_text_without_a_strip_can_still_be_measured():
    model = TableModel(max_tokens=2000)
    session = Session(ModelStore(loader=lambda *_, **__: model), "table")
    found = answer(session, Question("cat " * MAX_STRIP_TOKENS))
    assert found.html["strip"] == ""
    assert found.measurable
