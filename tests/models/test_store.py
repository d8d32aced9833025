"""Loaded models for many users: one copy of each within a limit, and calls that share a batch."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pytest
from table_model import TableModel
from tiny_models import SENTENCES, batch_of

from fillmask_ui import fill
from fillmask_ui.errors import ModelError
from fillmask_ui.models import ModelChoice, ModelStore, model_store
from fillmask_ui.models.model_store import SharedModel

WAIT = 20.0  # seconds after which a thread is taken to hang
# As many as find a model free; what is asked after them waits.
FREE = ["the [MASK] sat"] * model_store.AT_A_TIME


@dataclass
class Sized:
    """Stands for a model of which only the size matters."""

    memory_bytes: int


@dataclass
class Loader:
    """Loads models of sizes given by their names, and counts."""

    calls: list[str] = field(default_factory=list)
    gate: threading.Event | None = None  # what models called "slow" wait for
    fails: bool = False

    def __call__(self, choice, **_) -> Sized:
        self.calls.append(choice.reference)
        if self.gate and "slow" in choice.reference:
            assert self.gate.wait(WAIT)
        if self.fails:
            raise ModelError("damaged")
        return Sized(int(choice.reference.split("-")[1]))


def held(store):
    """References that are held, the most recently used first."""
    models = reversed(store._models)
    return [choice.reference for choice in models if store._models[choice].done()]


def test_the_same_model_is_loaded_once():
    loader = Loader()
    store = ModelStore(100, loader)
    assert store.get("a-10") is store.get("a-10")
    assert store.get(ModelChoice("a-10"), on_progress=print) is store.get(" a-10 ")
    assert store.get(ModelChoice("a-10", runtime="torch")) is not store.get("a-10")
    assert loader.calls == ["a-10", "a-10"]


def test_the_least_recently_used_goes_first():
    store = ModelStore(100, Loader())
    for name in ("a-40", "b-40", "a-40", "c-40"):
        store.get(name)
    assert held(store) == ["c-40", "a-40"]
    big = store.get("d-500")  # over the limit: it stays while it is the newest
    assert store.get("d-500") is big and held(store) == ["d-500"]
    store.get("small-1")
    assert held(store) == ["small-1"]


def test_threads_wait_for_one_load_which_does_not_hold_up_others():
    loader = Loader(gate=threading.Event())
    store = ModelStore(100, loader)
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(store.get, "slow-10") for _ in range(8)]
        assert store.get("quick-1").memory_bytes == 1
        loader.gate.set()
        assert len({id(one.result(WAIT)) for one in waiting}) == 1
    assert sorted(loader.calls) == ["quick-1", "slow-10"]
    assert {*held(store)} == {"slow-10", "quick-1"}


def test_a_failure_is_not_kept():
    loader = Loader(fails=True)
    store = ModelStore(100, loader)
    for _ in range(2):
        with pytest.raises(ModelError, match="damaged"):
            store.get("a-10")
    loader.fails = False
    assert store.get("a-10").memory_bytes == 10
    assert loader.calls == ["a-10"] * 3


def test_real_models_from_many_threads(tiny_models):
    store, folder, steps = ModelStore(), str(tiny_models.folder("bert")), []
    model = store.get(folder, on_progress=steps.append)
    assert [step.stage for step in steps] == ["tokenizer", "weights"]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: ask(store.get(folder), "a [MASK] cat").shape, range(6)))
    assert found == [(1, 300)] * 6
    assert held(store) == [folder]
    assert model.memory_bytes >= model.signature.size_bytes


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
    mask, sharing = model.vocabulary.mask_token, SharedModel(model)
    starts = [" ".join(SENTENCES[i % len(SENTENCES)].split()[: 2 + i % 9]) for i in range(24)]
    texts = [f"{start} {mask}" + f" and {mask}" * (i % 3) for i, start in enumerate(starts)]
    wanted = [ask(model, text) for text in texts]
    with ThreadPoolExecutor(12) as pool:
        for _ in range(5):
            for own, logits in zip(wanted, pool.map(lambda t: ask(sharing, t), texts), strict=True):
                np.testing.assert_allclose(logits, own, atol=2e-5)
        found = list(pool.map(lambda text: fill(sharing, text, top_k=3), texts[:6]))
    for text, filling in zip(texts, found, strict=False):
        for mine, own in zip(filling.masks, fill(model, text, top_k=3).masks, strict=True):
            assert [c.token for c in mine.candidates] == [c.token for c in own.candidates]
            assert mine.entropy_nats == pytest.approx(own.entropy_nats, abs=1e-5)


def test_calls_that_wait_share_a_batch(watched):
    sharing = SharedModel(watched)
    texts = [*FREE, "a [MASK] ran", "the old [MASK] sat", "[MASK]"]
    answers = ask_behind_the_gate(sharing, texts)
    # Two that found the model free, then all others at once, filled up to the longest.
    assert watched.calls[: model_store.AT_A_TIME] == [(1, 5)] * model_store.AT_A_TIME
    assert sorted(watched.calls[model_store.AT_A_TIME :]) == [(1, 3), (2, 6)]
    for text, answer in zip(texts, answers, strict=True):
        np.testing.assert_allclose(answer, ask(watched.model, text), atol=2e-5)


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
    texts = [*FREE, "a [MASK] ran", "river [MASK] ran", "[MASK] a b"]
    results = ask_behind_the_gate(sharing, texts)
    assert isinstance(results[-2], ModelError)
    for text, answer in zip([*texts[:-2], texts[-1]], [*results[:-2], results[-1]], strict=True):
        np.testing.assert_allclose(answer, ask(watched.model, text), atol=2e-5)
    assert sharing._waiting == []
