"""The store shares loaded models between users and keeps within its limit."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest
from tiny_models import batch_of

from fillmask_ui.errors import ModelError
from fillmask_ui.models import LoadProgress, ModelChoice, ModelStore


@dataclass
class Sized:
    """Stands for a model of which only the size matters."""

    memory_bytes: int


@dataclass
class Loader:
    """Loads models of sizes given by their names, and counts."""

    calls: list[str] = field(default_factory=list)
    gate: threading.Event | None = None
    fails: bool = False

    def __call__(self, choice, **_) -> Sized:
        self.calls.append(choice.reference)
        if self.gate:
            assert self.gate.wait(10)
        if self.fails:
            raise ModelError("damaged")
        return Sized(int(choice.reference.split("-")[1]))


def held(store):
    """What is held, the most recently used first."""
    return tuple(choice for choice in reversed(store._models) if store._models[choice].done())


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
    assert [stored.reference for stored in held(store)] == ["c-40", "a-40"]
    store.get("d-90")
    assert [stored.reference for stored in held(store)] == ["d-90"]


def test_a_model_over_the_limit_stays_while_it_is_the_newest():
    store = ModelStore(100, Loader())
    big = store.get("big-500")
    assert store.get("big-500") is big
    store.get("small-1")
    assert [stored.reference for stored in held(store)] == ["small-1"]


def test_threads_wait_for_one_load():
    loader = Loader(gate=threading.Event())
    store = ModelStore(100, loader)
    got: list[object] = []
    threads = [threading.Thread(target=lambda: got.append(store.get("a-10"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    loader.gate.set()
    for thread in threads:
        thread.join()
    assert loader.calls == ["a-10"]
    assert len(got) == 8
    assert len(set(map(id, got))) == 1


def test_a_slow_load_does_not_hold_up_others():
    slow = Loader(gate=threading.Event())

    def load(choice, **options):
        return slow(choice) if choice.reference == "slow-10" else Sized(1)

    store = ModelStore(100, load)
    thread = threading.Thread(target=store.get, args=("slow-10",))
    thread.start()
    assert store.get("quick-1").memory_bytes == 1
    slow.gate.set()
    thread.join()
    assert {stored.reference for stored in held(store)} == {"slow-10", "quick-1"}


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
    store = ModelStore()
    folder = str(tiny_models.folder("bert"))
    steps: list[LoadProgress] = []
    store.get(folder, on_progress=steps.append)
    assert [step.stage for step in steps] == ["tokenizer", "weights"]
    shapes: list[tuple[int, ...]] = []

    def work() -> None:
        model = store.get(folder)
        shapes.append(model.logits_at(*batch_of(model.vocabulary, ["a [MASK] cat"])).shape)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shapes == [(1, 300)] * 6
    assert held(store) == (ModelChoice(folder),)
    model = store.get(folder)
    assert model.memory_bytes >= model.signature.size_bytes
