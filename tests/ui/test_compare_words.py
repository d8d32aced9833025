"""A sentence under two models in Explore: what the browser is given, from plain values."""

import math
import re
import threading

import numpy as np
import pytest
from page_tags import Tags
from table_model import SPECIAL, WORDS, TableModel, TableVocabulary, letter_vocabulary

from fillmask_ui import compare_sentence
from fillmask_ui.errors import ModelError
from fillmask_ui.models import ModelStore
from fillmask_ui.ui.components import answered
from fillmask_ui.ui.explore.model_contrast_view import DIFFERENCES, LossLines, contrast_words
from fillmask_ui.ui.explore.sentence_strip import version_of
from fillmask_ui.ui.session import Session

TEXT = "the old cat walked on the red mat, and ran."
A, B = TableModel(1), TableModel(1, noise=0.8)
LETTERS = TableModel(2, vocabulary=letter_vocabulary())


def page_of(**models):
    models = {"table": A, "noisy": B, "letters": LETTERS, **models}

    def load(choice, **_):
        if choice.reference not in models:
            raise ModelError(f"no model {choice.reference!r}")
        return models[choice.reference]

    return Session(ModelStore(loader=load), "table")


def asked(session, text=TEXT, compare="noisy", **values):
    """All windows together: the words of all, the pieces of the last."""
    words, start = [], 0
    while start is not None:
        found = contrast_words(
            session, {"text": text, "compare": compare, "start": start, **values}
        )
        words += found["words"]
        start = found["next"]
    return {**found, "words": words}


def test_every_word_says_the_difference_by_sign_number_and_tint():
    expected = compare_sentence(A, B, TEXT).words
    found = asked(page_of())
    assert found["version"] == version_of(TEXT)
    assert found["tint"] == "difference"
    for word, own in zip(found["words"], expected, strict=True):
        difference = own.difference_nats
        assert word["token"] == own.first[0].word.tokens[0]
        assert word["tint"] == pytest.approx(min(1, math.sqrt(abs(difference) / 2)))
        assert word["label"] == f"{'▲' if difference > 0 else '▼'}{abs(difference):.2f}"
        assert word["sign"] == ("more" if difference > 0 else "less")
        # Beside it stand the candidates of both, and both losses.
        assert word["html"].count("<li>") == 10
        assert f"loss {own.nll_nats:.3f} nats" in word["html"]
        assert f"loss {own.other_nll_nats:.3f} nats" in word["html"]


@pytest.mark.parametrize("tint", ["a", "b"])
def test_the_words_tinted_by_the_loss_of_either(tint):
    expected = compare_sentence(A, B, TEXT).words
    found = asked(page_of(), tint=tint)
    losses = [own.nll_nats if tint == "a" else own.other_nll_nats for own in expected]
    assert [word["label"] for word in found["words"]] == [f"{loss:.2f}" for loss in losses]
    tints = [min(1, loss / 10) for loss in losses]
    assert [word["tint"] for word in found["words"]] == pytest.approx(tints)
    assert f"under {tint.upper()}" in found["html"]["story"]


def test_the_table_has_the_numbers_of_the_lines():
    found = asked(page_of())
    expected = compare_sentence(A, B, TEXT)
    values = re.findall(r'data-value="([^"]+)"', found["html"]["table"])
    wanted = [
        number
        for own in expected.words
        for number in (own.nll_nats, own.other_nll_nats, own.difference_nats)
    ]
    assert [float(value) for value in values] == wanted
    story = found["html"]["story"]
    largest = expected.summary.largest
    assert f"“{largest.text}”" in story
    assert f"{expected.summary.flipped} of 12 words" in story
    titles = re.findall(r"<title>(.*?)</title>", story)
    told = [
        f"{own.text}: A {own.nll_nats:.3f}, B {own.other_nll_nats:.3f} nats"
        for own in expected.words
    ]
    assert titles == told * 2


def test_where_the_lines_go():
    words = compare_sentence(A, B, TEXT).words
    lines = LossLines.of(words, "bits")
    heights = [lines.y.start - point.a for point in lines.points]
    per_nat = [height / own.nll_nats for height, own in zip(heights, words, strict=True)]
    np.testing.assert_allclose(per_nat, per_nat[0])
    assert lines.points[3].label == "walked"
    assert LossLines.of(words[:1], "nats") is None


def test_the_same_model_twice_says_the_same_of_every_word():
    found = asked(page_of(), compare="table")
    assert {(word["label"], word["sign"], word["tint"]) for word in found["words"]} == {
        ("=", "", 0)
    }
    assert "Both models give every word the same loss" in found["html"]["story"]


def test_bits_are_nats_over_ln_2():
    own = compare_sentence(A, B, TEXT).words[0]
    found = asked(page_of(), unit="bits")
    assert f"loss {own.nll_nats / math.log(2):.3f} bits" in found["words"][0]["html"]
    assert found["words"][0]["tint"] == pytest.approx(DIFFERENCES.tint(abs(own.difference_nats)))


def test_different_tokenizers_are_compared_by_word_and_it_is_said():
    found = asked(page_of(), compare="letters")
    assert "compared word by word" in found["html"]["story"]
    assert "characters" in found["html"]["story"]
    assert "Pseudo-perplexity" not in found["html"]["story"]
    assert "Pseudo-perplexity" in asked(page_of())["html"]["story"]


def test_unknown_words_are_not_tinted_and_are_said():
    found = asked(page_of(), text="the ☃ ran")
    assert (found["words"][1]["label"], found["words"][1]["tint"]) == ("unknown", 0)
    assert "cannot spell it: ☃" in found["html"]["story"]


def test_long_texts_come_window_by_window_and_nothing_is_asked_twice():
    models = {"table": TableModel(1, max_tokens=512), "noisy": TableModel(1, max_tokens=512)}
    session, text = page_of(**models), "the cat. " * 20
    first = contrast_words(session, {"text": text, "compare": "noisy"})
    assert 0 < first["known"] < first["total"] == 60
    assert f"So far: the first {first['known']} of 60" in first["html"]["story"]
    assert len(asked(session, text=text)["words"]) == 60
    models["table"].calls.clear()
    assert len(asked(session, text=text, tint="b")["words"]) == 60
    assert models["table"].calls == []


def test_what_is_wrong_with_the_second_model_is_said():
    assert (
        "No model"
        in answered(contrast_words, page_of(), {"text": TEXT, "compare": "gone"})["error"]
    )
    short = page_of(noisy=TableModel(max_tokens=5))
    assert (
        "takes at most 5"
        in answered(contrast_words, short, {"text": TEXT, "compare": "noisy"})["error"]
    )


def test_a_second_model_that_loads_slowly_says_so():
    loaded = threading.Event()

    def load(choice, **_):
        assert choice.reference == "table" or loaded.wait(30)
        return A

    session = Session(ModelStore(loader=load), "table")
    values = {"text": TEXT, "compare": "far"}
    assert "Loading" in contrast_words(session, values)["waiting"]["notice"]
    loaded.set()
    while "waiting" in (found := contrast_words(session, values)):
        pass
    assert found["known"] == 12


def test_tokens_and_names_are_never_markup():
    vocabulary = TableVocabulary((*SPECIAL, "<script>", "<b>", *WORDS))
    evil = TableModel(vocabulary=vocabulary)
    found = asked(page_of(table=evil, noisy=evil), text='the <script> "><img onerror=alert(1)>')
    pieces = [*found["html"].values(), *(word["html"] for word in found["words"])]
    for piece in pieces:
        tags = Tags(piece)
        assert not tags.names & {"script", "img"}
        assert not {name for name in tags.attributes if name.startswith("on")}
