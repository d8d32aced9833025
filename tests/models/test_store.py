"""Loaded models for many users: one copy of each within a limit, asked by many threads."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pytest
from tiny_models import SENTENCES, batch_of

from fillmask_ui import fill
from fillmask_ui.errors import ModelError
from fillmask_ui.models import ModelChoice, ModelStore

WAIT = 20.0  # seconds after which a thread is taken to hang


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
        assert len({id(future.result(WAIT)) for future in waiting}) == 1
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
        shapes = list(pool.map(lambda _: ask(store.get(folder), "a [MASK] cat").shape, range(6)))
    assert shapes == [(1, 300)] * 6
    assert held(store) == [folder]
    assert model.memory_bytes >= model.signature.size_bytes


def ask(model, text):
    return model.logits_at(*batch_of(model.vocabulary, [text]))


@pytest.mark.parametrize(("family", "runtime"), [("bert", "onnx"), ("roberta", "torch")])
def test_many_threads_get_what_they_get_alone(loaded, family, runtime):
    model = loaded(family, runtime)
    mask = model.vocabulary.mask_token
    starts = [" ".join(SENTENCES[i % len(SENTENCES)].split()[: 2 + i % 9]) for i in range(24)]
    texts = [f"{start} {mask}" + f" and {mask}" * (i % 3) for i, start in enumerate(starts)]
    expected = [ask(model, text) for text in texts]
    with ThreadPoolExecutor(12) as pool:
        for _ in range(5):
            concurrent = list(pool.map(lambda text: ask(model, text), texts))
            for logits, expected_logits in zip(concurrent, expected, strict=True):
                np.testing.assert_allclose(logits, expected_logits, atol=2e-5)
        fillings = list(pool.map(lambda text: fill(model, text, top_k=3), texts[:6]))
    for text, filling in zip(texts, fillings, strict=False):
        alone = fill(model, text, top_k=3)
        for filled, reference in zip(filling.masks, alone.masks, strict=True):
            assert [c.token for c in filled.candidates] == [c.token for c in reference.candidates]
            assert filled.entropy_nats == pytest.approx(reference.entropy_nats, abs=1e-5)
