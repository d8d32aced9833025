"""Loaded models, shared between users, the least recently used dropped first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fillmask_ui.models.load import load_model
from fillmask_ui.protocol import MaskedLM

_DEFAULT_BYTES = 2 << 30

_Key = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class StoredModel:
    """A model that the store holds.

    Attributes:
        reference: as it was asked for.
        model: the model.
        memory_bytes: estimate of what it takes.
    """

    reference: str
    model: MaskedLM
    memory_bytes: int


class ModelStore:
    """Models by reference and options, at most `max_bytes` of them together.

    A model that is dropped lives on as long as somebody still uses it. The one loaded last always
    stays, even if it alone is over the limit. Safe to use from many threads.
    """

    def __init__(
        self,
        max_bytes: int = _DEFAULT_BYTES,
        loader: Callable[..., MaskedLM] = load_model,
    ) -> None:
        self.max_bytes = max_bytes
        self._loader = loader
        self._lock = threading.Lock()
        self._held: OrderedDict[_Key, StoredModel] = OrderedDict()  # oldest use first
        self._loading: dict[_Key, Future[MaskedLM]] = {}

    def get(self, reference: str | Path | None = None, **options: Any) -> MaskedLM:
        """The model, loaded if it is not held.

        Threads that ask for the same model at a time wait for one load. If that fails each of
        them gets its error, and the next call tries again.

        Args:
            reference: as for `load_model`.
            options: as for `load_model`; `on_progress` is heard but does not tell models apart.
        """
        key = _key(reference, options)
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key].model
            running = self._loading.get(key)
            if running is None:
                promise: Future[MaskedLM] = Future()
                self._loading[key] = promise
        if running is not None:
            return running.result()
        try:
            model = self._loader(reference, **options)
            stored = StoredModel(_name(reference), model, _memory_bytes(model))
        except BaseException as error:
            with self._lock:
                del self._loading[key]
            promise.set_exception(error)
            raise
        with self._lock:
            del self._loading[key]
            self._held[key] = stored
            self._shrink()
        promise.set_result(model)
        return model

    def loaded(self) -> tuple[StoredModel, ...]:
        """What is held, the most recently used first."""
        with self._lock:
            return tuple(reversed(self._held.values()))

    def _shrink(self) -> None:
        total = sum(stored.memory_bytes for stored in self._held.values())
        while total > self.max_bytes and len(self._held) > 1:
            _, dropped = self._held.popitem(last=False)
            total -= dropped.memory_bytes


def _name(reference: str | Path | None) -> str:
    return "embedded" if reference is None else str(reference).strip()


def _key(reference: str | Path | None, options: dict[str, Any]) -> _Key:
    chosen = {k: v for k, v in options.items() if k != "on_progress" and v is not None}
    return (("reference", _name(reference)), *sorted((k, repr(v)) for k, v in chosen.items()))


def _memory_bytes(model: MaskedLM) -> int:
    estimate = getattr(model, "memory_bytes", None)
    return int(model.signature.size_bytes if estimate is None else estimate)
