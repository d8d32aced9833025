"""Whatever is typed or sent is read or refused with a message for the user: property-based."""

import json
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fillmask_ui.errors import FillmaskError
from fillmask_ui.filling import fill
from fillmask_ui.filling.prompt import encode_masked, mask_positions, normalise_masks, split_words
from fillmask_ui.models import load_model
from fillmask_ui.models.model_choice import parse_reference
from fillmask_ui.ui.components import answered
from fillmask_ui.ui.evaluate.tab import linked_runs
from fillmask_ui.ui.explore.explore_modes import served

some = settings(
    max_examples=15,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
# Also half characters, which no file and no tokenizer takes, and what means something here.
MEANT = "[MASK]|[mask]|<mask>|<MASK>|___|[PAD]|</s>|~|/|..|@|:|embedded|int8|.onnx|cat| |,|\n"
PIECES = st.one_of(
    st.text(st.characters(), max_size=20),
    st.sampled_from([*MEANT.split("|"), "\ud800", "\0", "e\u0301", "\u202e"]),
)
ANY_TEXT = st.lists(PIECES, max_size=8).map("".join)
ANY_VALUE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), ANY_TEXT, st.just(10**400)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(ANY_TEXT, inner)),
    max_leaves=6,
)
STATE = (
    *("text", "model", "compare", "top_k", "words", "unit", "selected", "draft", "zoom"),
    *("other", "mode", "tint", "run", "alone", "visitor"),
)
ACTION = st.fixed_dictionaries(
    {},
    optional={
        "do": st.one_of(st.sampled_from(["hide", "restore", "choose", "fill"]), ANY_VALUE),
        "token": ANY_VALUE,
        "key": st.one_of(st.from_regex(r"(all|\d{1,12}):\d{1,12}(,\d{1,3})?"), ANY_VALUE),
        "version": ANY_VALUE,
    },
)


@some
@given(ANY_TEXT, st.dictionaries(st.one_of(st.sampled_from(STATE), ANY_TEXT), ANY_TEXT))
def test_a_model_reference_and_an_address_are_read_or_refused(text, address):
    with suppress(FillmaskError):
        assert parse_reference(text).kind in ("embedded", "folder", "file", "hub")
    assert linked_runs(address).run == address.get("run", "")


@pytest.fixture(scope="module", params=["bert", "roberta"])
def tiny(request, tiny_models):
    return load_model(tiny_models.folder(request.param))


@some
@given(text=ANY_TEXT, words=ANY_TEXT)
def test_a_prompt_and_its_words_are_read_or_refused(tiny, text, words):
    with suppress(FillmaskError):
        positions = mask_positions(encode_masked(tiny, text), tiny.vocabulary)
        written = normalise_masks(text, tiny.vocabulary.mask_token)
        assert len(positions) == written.count(tiny.vocabulary.mask_token)
        reply = fill(tiny, text, candidates=split_words(words))
        assert [mask.position for mask in reply.masks] == list(positions)


@some
@given(
    st.dictionaries(st.sampled_from(STATE), ANY_VALUE),
    st.one_of(st.none(), ACTION),
    st.one_of(st.just("the cat [MASK] on the mat."), ANY_TEXT),
)
def test_whatever_state_is_sent_explore_answers(session, values, action, text):
    values = {"text": text, **values, "model": "", "action": action}
    reply = answered(served()["answer"], session, values)
    assert reply["kind"]
    json.dumps(reply)
