"""What the lenses of the Explore tab give the browser, from plain values."""

import math

import pytest
from explore_page import asked
from table_model import TableModel

from fillmask_ui.comparing import pair_masks
from fillmask_ui.filling import occlude, score_candidates, surprisal
from fillmask_ui.models import ModelStore
from fillmask_ui.ui.components import answered
from fillmask_ui.ui.explore import attribution_view, sentence_contrast_view
from fillmask_ui.ui.explore.explore_modes import SERVED
from fillmask_ui.ui.explore.sentence_strip import version_of
from fillmask_ui.ui.session import Session

TEXT = "the old cat walked on the red mat, and ran."
MASKED = "the old [MASK] walked on the red [MASK]."
MODEL = TableModel()


def all_windows(session, name, **values):
    """The answers of one question after the other, until there are no more words."""
    answers, start = [], 0
    while start is not None:
        answers.append(asked(SERVED[name], session, {**values, "start": start}))
        start = answers[-1]["next"]
    return answers


def test_every_word_has_its_tint_and_what_was_wanted(session):
    expected = surprisal(MODEL, TEXT)
    (found,) = all_windows(session, "surprise", text=TEXT)
    assert found["version"] == version_of(TEXT)
    assert [word["token"] for word in found["words"]] == [
        own.word.tokens[0] for own in expected.words
    ]
    for word, own in zip(found["words"], expected.words, strict=True):
        assert word["tint"] == pytest.approx(min(1, own.nll_nats / 10))
        assert f"loss {own.nll_nats:.2f} nats" in word["html"]
        assert word["html"].count("<li>") == 5
        assert own.wanted[0].word in word["html"]
    walked = found["words"][3]["html"]
    assert "walk " in walked and "##ed " in walked
    most = expected.summary.most
    assert f'most surprised by <b dir="auto">“{most.word.text}”' in found["html"]["story"]
    assert f"{expected.summary.total_nll_nats:.2f} nats" in found["html"]["story"]
    assert found["html"]["table"].count("<tr>") == 1 + len(expected.words)


def test_bits_are_nats_over_ln_2(session):
    own = surprisal(MODEL, TEXT).words[1]
    found = attribution_view.surprisal(session, {"text": TEXT, "unit": "bits"})
    assert f"loss {own.nll_nats / math.log(2):.2f} bits" in found["words"][1]["html"]
    assert "14.4+" in found["html"]["story"]
    nats = attribution_view.surprisal(session, {"text": TEXT})
    assert nats["words"][1]["tint"] == found["words"][1]["tint"]


@pytest.mark.parametrize(
    ("name", "text"), [("surprise", "the cat. " * 20), ("mattered", MASKED * 8)]
)
def test_long_texts_come_window_by_window_and_are_remembered(name, text):
    model = TableModel(max_tokens=512)
    session = Session(ModelStore(loader=lambda reference, **_: model), "table")
    answers = all_windows(session, name, text=text)
    assert len(answers) > 5
    assert [answer["known"] for answer in answers] == sorted({a["known"] for a in answers})
    assert f"So far: the first {answers[0]['known']} of" in answers[0]["html"]["story"]
    assert "So far" not in answers[-1]["html"]["story"]
    tokens = [word["token"] for answer in answers for word in answer["words"]]
    assert tokens == sorted(set(tokens))
    assert len(tokens) == answers[-1]["total"]
    model.calls.clear()
    (again,) = all_windows(session, name, text=text)
    assert [word["token"] for word in again["words"]] == tokens
    assert again["html"]["story"] == answers[-1]["html"]["story"]
    assert model.calls == []


def test_unknown_words_are_not_tinted_and_are_said(session):
    found = attribution_view.surprisal(session, {"text": "the ☃ ran"})
    assert found["words"][1]["tint"] == 0
    assert "unknown to this model" in found["words"][1]["html"]
    assert "cannot spell it: ☃" in found["html"]["story"]
    alone = attribution_view.surprisal(session, {"text": "☃"})
    assert "most surprised" not in alone["html"]["story"]


def test_the_words_that_mattered(session):
    """Checked against `occlude`, which has its own tests."""
    expected = occlude(MODEL, MASKED, 1, word="mat")
    values = {"text": MASKED, "base": MASKED, "hidden": [None, "mat"], "selected": 1}
    (found,) = all_windows(session, "mattered", **values)
    for word, own in zip(found["words"], expected.words, strict=True):
        assert word["token"] == own.word.tokens[0]
        assert word["tint"] == pytest.approx(min(1, own.kl_nats))
        assert f"{own.kl_nats:.3f} nats (KL)" in word["html"]
        assert f"log-probability {own.change_nats:+.2f} nats" in word["html"]
    most = max(expected.words, key=lambda own: own.kl_nats).word.text
    assert f"“{most}”</b> mattered most" in found["html"]["story"]
    assert "mat</b> (the hidden word)" in found["html"]["story"]
    assert "occlusion" in found["html"]["story"] and "not the attention" in found["html"]["story"]
    first = attribution_view.occlusion(session, {"text": MASKED})
    assert "the hidden word" not in first["html"]["story"]
    alone = attribution_view.occlusion(session, {"text": "[MASK]"})
    assert alone["words"] == [] and alone["next"] is None
    assert "no other word" in alone["html"]["story"]


def test_two_sentences_beside_each_other(session):
    first, second = "the cat [MASK] on it.", "the dog ___ on it."
    expected = pair_masks(MODEL, first, second, top_k=4, words=["walked"])
    values = {"text": first, "other": second, "top_k": 4, "words": "walked, ☃☃"}
    html = sentence_contrast_view.contrast_sentences(session, values)["html"]
    top = expected.candidates[0]
    assert f'<b dir="auto">{top.word}</b> has' in html or f"…{top.word}</b> has" in html
    for name in ("cat", "dog"):
        assert f'dir="auto">{name}</span>' in html
    for own in expected.candidates:
        assert f'data-value="{-own.difference!r}"' in html
    score = score_candidates(MODEL, second, ["walked"])[0][0].probability
    assert f'data-value="{score!r}"' in html
    assert html.index(expected.candidates[0].word) < html.index(expected.candidates[-1].word)


@pytest.mark.parametrize(
    ("text", "other", "hint"),
    [
        ("the [MASK]", "the cat", "no mask: write"),
        ("the [MASK]", "", "Write the second sentence"),
        ("the [MASK]", "[MASK] [MASK]", "has 2 masks and the first 1 mask"),
        ("the [MASK]", "the  [MASK]", "are the same"),
        ("the cat", "the [MASK]", "Hide a word of the first"),
    ],
)
def test_what_a_pair_lacks_is_said(session, text, other, hint):
    assert (
        hint
        in sentence_contrast_view.contrast_sentences(session, {"text": text, "other": other})[
            "hint"
        ]
    )


def test_the_mask_that_is_chosen_is_compared(session):
    values = {"text": MASKED, "other": MASKED.replace("old", "sad"), "selected": 1}
    expected = pair_masks(MODEL, values["text"], values["other"], masks=(1, 1), top_k=10)
    html = sentence_contrast_view.contrast_sentences(session, values)["html"]
    assert "at mask 2" in html
    assert f'data-value="{expected.candidates[0].difference!r}"' in html


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        ("The nurse said [MASK].", "The doctor said [MASK].", ("nurse", "doctor")),
        ("He is a [MASK], he said.", "She is a [MASK], she said.", ("He … he", "She … she")),
        ("A [MASK].", "A very [MASK].", ("first sentence", "second sentence")),
        ("A <mask> b", "A b <mask>", ("first sentence", "second sentence")),
        ("a " + "b" * 40, "a c", ("first sentence", "second sentence")),
    ],
)
def test_sentences_are_named_by_the_words_in_which_they_differ(first, second, names):
    assert sentence_contrast_view.differing_words(first, second) == names


@pytest.mark.parametrize("name", ["surprise", "mattered", "pair"])
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"text": "  "},
        {"text": "cat " * 5000},
        {"text": "x" * 60_000, "other": "y" * 60_000},
        {"text": ["no"], "start": "7", "draft": 3, "selected": -4},
    ],
)
def test_what_cannot_be_answered_is_said(session, name, values):
    found = answered(SERVED[name], session, values)
    assert found.get("error") or found.get("hint")


def test_too_long_says_so(session):
    other = {"text": "a [MASK]", "other": "cat " * 100 + "[MASK]"}
    assert (
        "takes at most 64"
        in answered(sentence_contrast_view.contrast_sentences, session, other)["error"]
    )
    for name in ("surprise", "mattered"):
        text = "cat " * 5000 + ("[MASK]" if name == "mattered" else "")
        assert "takes at most 64" in answered(SERVED[name], session, {"text": text})["error"]


def test_a_start_beyond_the_end_is_answered(session):
    found = attribution_view.surprisal(session, {"text": TEXT, "start": 10**9})
    assert (found["total"], found["next"]) == (12, None)


def test_text_is_never_markup(session):
    evil = "<b>the</b> cat"
    found = attribution_view.surprisal(session, {"text": evil})
    mask = attribution_view.occlusion(session, {"text": f"{evil} [MASK]"})
    two = sentence_contrast_view.contrast_sentences(
        session, {"text": f"{evil} [MASK]", "other": "<img> [MASK]"}
    )
    for html in (str(found), str(mask), str(two)):
        assert "<b>the" not in html and "<img>" not in html
