"""Calls of many threads that go through one model together."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from table_model import TableModel
from tiny_models import SENTENCES, batch_of

from fillmask_ui import fill
from fillmask_ui.errors import ModelError
from fillmask_ui.models import model_store
from fillmask_ui.models.model_store import SharedModel

WAIT = 20.0  # seconds after which a thread is taken to hang


class Watched:
    """A model that writes down its calls and runs none of them while its gate is shut."""

    def __init__(self, model, *, runs_alone=False):
        self.model, self.runs_alone = model, runs_alone
        self.vocabulary, self.signature = model.vocabulary, model.signature
        self.max_tokens = model.max_tokens
        self.calls = []  # shapes [B, T]
        self.gate = threading.Event()
        self.gate.set()
        self.refused = None  # a token id that makes a call fail

    def logits_at(self, input_ids, attention_mask, rows, cols):
        self.calls.append(input_ids.shape)
        assert self.gate.wait(WAIT)
        if self.refused is not None and (input_ids == self.refused).any():
            raise ModelError("a token that this model cannot read")
        return self.model.logits_at(input_ids, attention_mask, rows, cols)


@pytest.fixture
def watched():
    return Watched(TableModel())


def ask(model, text):
    return model.logits_at(*batch_of(model.vocabulary, [text]))


def ask_behind_the_gate(model, texts):
    """Ask for texts one after the other while the model is held up; results or errors, in order."""
    inner = model.model
    inner.gate.clear()
    with ThreadPoolExecutor(len(texts)) as pool:
        asked = []
        for number, text in enumerate(texts, start=1):
            asked.append(pool.submit(ask, model, text))
            while len(inner.calls) + len(model._waiting) < number:
                threading.Event().wait(0.001)
        inner.gate.set()
        return [one.exception(WAIT) or one.result() for one in asked]


@pytest.mark.parametrize(("family", "runtime"), [("bert", "onnx"), ("roberta", "torch")])
def test_many_threads_get_what_they_get_alone(loaded, family, runtime):
    model = loaded(family, runtime)
    mask = model.vocabulary.mask_token
    starts = [" ".join(SENTENCES[i % len(SENTENCES)].split()[: 2 + i % 9]) for i in range(24)]
    texts = [f"{start} {mask}" + f" and {mask}" * (i % 3) for i, start in enumerate(starts)]
    wanted = [ask(model, text) for text in texts]
    sharing = SharedModel(model)
    with ThreadPoolExecutor(12) as pool:
        for _ in range(5):
            for own, logits in zip(wanted, pool.map(lambda t: ask(sharing, t), texts), strict=True):
                np.testing.assert_allclose(logits, own, atol=1e-5)


def test_a_lone_caller_is_one_call_and_waits_for_nobody(watched):
    sharing = SharedModel(watched)
    np.testing.assert_array_equal(
        ask(sharing, "the [MASK] sat"), ask(watched.model, "the [MASK] sat")
    )
    assert watched.calls == [(1, 5)]


def test_calls_that_wait_share_a_batch(watched):
    sharing = SharedModel(watched)
    texts = ["the [MASK] sat"] * model_store.AT_A_TIME + [
        "a [MASK] ran",
        "the old [MASK] sat",
        "[MASK]",
    ]
    answers = ask_behind_the_gate(sharing, texts)
    # Two that found the model free, then all others at once, filled up to the longest.
    assert watched.calls[: model_store.AT_A_TIME] == [(1, 5)] * model_store.AT_A_TIME
    assert sorted(watched.calls[model_store.AT_A_TIME :]) == [(1, 3), (2, 6)]
    for text, answer in zip(texts, answers, strict=True):
        np.testing.assert_allclose(answer, ask(watched.model, text), atol=1e-5)


@pytest.mark.parametrize(
    ("limit", "value", "batches"),
    [
        ("MAX_TOKENS", 10, [(2, 5), (2, 5)]),
        ("MAX_LOGITS", 3 * TableModel().signature.vocabulary_size, [(3, 5), (1, 5)]),
        ("AT_A_TIME", 1, [(4, 5)]),
    ],
)
def test_batches_are_bounded(watched, monkeypatch, limit, value, batches):
    monkeypatch.setattr(model_store, limit, value)
    sharing = SharedModel(watched)
    ask_behind_the_gate(sharing, ["the [MASK] sat"] * (model_store.AT_A_TIME + 4))
    # They run side by side, so that either may be written down first.
    assert sorted(watched.calls[model_store.AT_A_TIME :]) == sorted(batches)


def test_an_error_is_that_of_one_caller_alone(watched):
    watched.refused = watched.vocabulary.encode("river").ids[1]
    sharing = SharedModel(watched)
    texts = ["the [MASK] sat"] * model_store.AT_A_TIME + [
        "a [MASK] ran",
        "river [MASK] ran",
        "[MASK] a b",
    ]
    results = ask_behind_the_gate(sharing, texts)
    assert isinstance(results[-2], ModelError)
    for text, answer in zip([*texts[:-2], texts[-1]], [*results[:-2], results[-1]], strict=True):
        np.testing.assert_allclose(answer, ask(watched.model, text), atol=1e-5)
    assert sharing._waiting == [] and sharing._running == 0


def test_arrays_of_a_wrong_shape_fail_their_own_caller(watched):
    sharing = SharedModel(watched)
    with pytest.raises(ValueError, match="unpack"):
        sharing.logits_at(np.zeros(3, dtype=np.int64), *[np.zeros(1, dtype=np.int64)] * 3)
    assert ask(sharing, "the [MASK] sat").shape == ask(watched.model, "the [MASK] sat").shape


def test_models_that_run_texts_one_by_one_are_asked_at_once():
    model = Watched(TableModel(), runs_alone=True)
    sharing = SharedModel(model)
    ask_behind_the_gate(sharing, ["the [MASK] sat"] * 6)
    assert model.calls == [(1, 5)] * 6


def test_fillings_of_many_threads_are_those_of_one(loaded):
    model = loaded("bert", "onnx")
    mask = model.vocabulary.mask_token
    texts = [f"{sentence} {mask} and {mask}" for sentence in SENTENCES[:6]]
    sharing = SharedModel(model)
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda text: fill(sharing, text, top_k=3), texts))
    for text, filling in zip(texts, found, strict=True):
        alone = fill(model, text, top_k=3)
        for mine, own in zip(filling.masks, alone.masks, strict=True):
            assert [c.token for c in mine.candidates] == [c.token for c in own.candidates]
            assert mine.entropy_nats == pytest.approx(own.entropy_nats, abs=1e-5)
