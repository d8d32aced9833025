"""Tables, strips and files: numbers unrounded, text always text."""

import csv
import io
import json
import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_tags import Tags
from table_model import SPECIAL, TableModel, TableVocabulary

from fillmask_ui.filling import fill
from fillmask_ui.records import Candidate, MaskFilling, ScoredPart, ScoredWord
from fillmask_ui.show.render import _ENVIRONMENT
from fillmask_ui.ui import components
from fillmask_ui.ui.explore import prediction_view, sentence_strip
from fillmask_ui.ui.explore.explore_state import Question
from fillmask_ui.ui.explore.sentence_strip import Draft

EVIL = "<script>alert(1)</script>\"><img src=x onerror=alert(2)>${alert(3)}{{value}}'&amp;"
TWO = "the [MASK] sat on the [MASK]."


def evil_model():
    return TableModel(vocabulary=TableVocabulary((*SPECIAL, EVIL, "<b>", "the", ".", "##<i>")))


def all_html(text=f"the [MASK] {EVIL} [MASK]."):
    model = evil_model()
    filling = fill(model, text, top_k=None, candidates=["the"])
    draft = Draft(filling.encoding.text, (EVIL, None))
    scored = ScoredWord(EVIL, 1.0, math.exp(-1), None, (ScoredPart(1, EVIL, 0.5),) * 2)
    yield sentence_strip.strip_html(draft, filling.encoding, model.vocabulary, filling)
    asked = replace(filling.masks[0], scored=(scored,))
    filling = replace(filling, masks=(asked, filling.masks[1]))
    for unit in ("nats", "bits"):
        question = Question("", unit=unit)
        shown = prediction_view.mask_html(
            filling, model, question=question, hidden=scored, names=[EVIL, ""]
        )
        yield from shown.values()
        yield prediction_view.joint_html(filling, unit)
    yield components.notice_html("error", EVIL)


def test_text_of_others_is_never_markup():
    found = list(all_html())
    assert any("&lt;script&gt;" in source for source in found)
    for source in found:
        tags = Tags(source)
        assert not tags.names & {"script", "img", "b", "i"}, source
        assert not {name for name in tags.attributes if name.startswith("on")}


def test_special_tokens_stay_visible():
    model = evil_model()
    filling = fill(model, "the [MASK].", top_k=None)
    text = Tags(prediction_view.mask_html(filling, model, question=Question(""))["candidates"]).text
    for token in (*SPECIAL, "<b>"):
        assert token in text


def text_html(text: str) -> str:
    """As every template shows a text."""
    return _ENVIRONMENT.from_string("{{ text }}").render(text=text)


@given(st.text(alphabet=st.characters()))
def test_any_text_can_be_sent_and_reads_as_itself(text):
    shown = text_html(text)
    shown.encode("utf-8")
    assert not re.search(r"[<>\"'\x00-\x1f\u202e]", shown)
    clean = "".join(c for c in text if not text_html(c).startswith(("⟨", "\\u")))
    if clean == text and text.isprintable():
        assert Tags(shown).text == text


def test_lone_surrogates_and_bidirectional_marks_are_shown():
    assert text_html("a\ud800b\u202ec\x00") == "a\\ud800b⟨U+202E⟩c␀"


def test_the_csv_holds_every_number_to_the_last_digit():
    filling = fill(TableModel(), TWO, top_k=5)
    rows = list(csv.DictReader(io.StringIO(prediction_view.filling_csv(filling))))
    expected = [(n, mask, c) for n, mask in enumerate(filling.masks, 1) for c in mask.candidates]
    assert len(rows) == len(expected) == 10
    total = 0.0
    for row, (number, mask, candidate) in zip(rows, expected, strict=True):
        total = candidate.probability + (0.0 if candidate.rank == 1 else total)
        assert (int(row["mask"]), int(row["position"])) == (number, mask.position)
        assert (int(row["rank"]), row["word"]) == (candidate.rank, candidate.word)
        assert (row["token"], int(row["token_id"])) == (candidate.token, candidate.token_id)
        assert float(row["probability"]) == candidate.probability
        assert float(row["nll_nats"]) == candidate.nll_nats
        assert float(row["nll_bits"]) == candidate.nll_nats / math.log(2)
        assert float(row["cumulative_probability"]) == total


def test_csv_and_json_survive_strange_tokens():
    filling = fill(evil_model(), "the [MASK].", top_k=None)
    rows = list(csv.DictReader(io.StringIO(prediction_view.filling_csv(filling))))
    assert EVIL in {row["token"] for row in rows}
    assert json.loads(filling.to_json()) == filling.to_dict()


def test_the_strip_shows_the_words_of_the_sentence_and_what_they_are_made_of():
    model = TableModel()
    encoding = model.vocabulary.encode("Zebra quickly [MASK].")
    draft = Draft(encoding.text, ("cat",))
    source = sentence_strip.strip_html(draft, encoding, model.vocabulary, selected=0)
    items = sentence_strip.strip_items(encoding, model.vocabulary)
    assert [item.shown for item in items] == [
        *("[CLS]", "Zebra", "quickly", "[MASK]", ".", "[SEP]")
    ]
    assert items[2].pieces == ("quick", "ly")
    assert [item.unknown for item in items] == [False, True, False, False, False, False]
    assert [item.joined for item in items if item.shown == "."] == [True]
    assert source.count('data-action="hide"') == 3
    assert "put cat back" in Tags(source).text
    assert "fm-mask-number" not in source  # one mask needs no number


def test_a_long_text_is_not_made_into_buttons():
    model = TableModel(max_tokens=5000)
    encoding = model.vocabulary.encode("cat " * sentence_strip.MAX_STRIP_TOKENS)
    assert sentence_strip.strip_html(Draft(encoding.text), encoding, model.vocabulary) == ""


@pytest.mark.parametrize("token", ["the", "sat"])
def test_the_row_of_the_hidden_word_is_marked(token):
    model = TableModel()
    filling = fill(model, TWO, top_k=None)
    part = ScoredPart(model.vocabulary.ids[token], token, 1.0)
    hidden = ScoredWord(token, 1.0, 0.4, 3, (part,))
    source = prediction_view.mask_html(filling, model, question=Question(""), hidden=hidden)[
        "candidates"
    ]
    (marked,) = re.findall(r'<tr class="fm-marked".*?</tr>', source)
    assert f'<code dir="auto">{token}</code>' in marked


def test_an_impossible_token_has_infinite_loss_and_no_probability():
    certain = Candidate(1, 5, "the", "the", 1.0, 0.0)
    impossible = Candidate(2, 6, "a", "a", 0.0, math.inf)
    filling = fill(TableModel(), "the [MASK].", top_k=2)
    filling = replace(filling, masks=(MaskFilling(1, 0.0, (certain, impossible)),))
    question = Question("", unit="bits")
    source = prediction_view.mask_html(filling, TableModel(), question=question)["candidates"]
    assert Tags(source).text.endswith("2aa60infinite100.0%")
