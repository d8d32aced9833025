"""Loaded models, shared between users, the least recently used dropped first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from fillmask_ui.models.choice import ModelChoice
from fillmask_ui.models.load import load_choice
from fillmask_ui.models.progress import ProgressCallback
from fillmask_ui.protocol import MaskedLM

_DEFAULT_BYTES = 2 << 30


class ModelStore:
    """Models by their choice, at most `max_bytes` of them together.

    A model that is dropped lives on as long as somebody still uses it. The one loaded last always
    stays, even if it alone is over the limit. Safe to use from many threads.

    Args:
        max_bytes: sum of what the models take.
        loader: called as `load_choice` is.
    """

    def __init__(
        self, max_bytes: int = _DEFAULT_BYTES, loader: Callable[..., MaskedLM] = load_choice
    ) -> None:
        self.max_bytes = max_bytes
        self._loader = loader
        self._lock = threading.Lock()
        self._loading: dict[ModelChoice, Future[MaskedLM]] = {}
        self._held: dict[ModelChoice, MaskedLM] = {}  # oldest use first

    def get(
        self, choice: ModelChoice | str = "embedded", on_progress: ProgressCallback | None = None
    ) -> MaskedLM:
        """The model, loaded if it is not held.

        Threads that ask for the same model at a time wait for one load. If that fails each of
        them gets its error, and the next call tries again.

        Args:
            choice: of the model, or its reference alone.
            on_progress: as of `load_choice`; only the thread that loads is told.
        """
        if isinstance(choice, str):
            choice = ModelChoice(choice.strip())
        with self._lock:
            if choice in self._held:
                self._held[choice] = self._held.pop(choice)
                return self._held[choice]
            running = self._loading.get(choice)
            if running is None:
                promise = self._loading[choice] = Future[MaskedLM]()
        if running is not None:
            return running.result()
        try:
            model = self._loader(choice, on_progress=on_progress)
            with self._lock:
                self._hold(choice, model)
        except BaseException as error:
            promise.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._loading[choice]
        promise.set_result(model)
        return model

    def loaded(self) -> tuple[ModelChoice, ...]:
        """What is held, the most recently used first."""
        with self._lock:
            return tuple(reversed(self._held))

    def _hold(self, choice: ModelChoice, model: MaskedLM) -> None:
        sizes = {held: _memory_bytes(self._held[held]) for held in self._held}
        total = sum(sizes.values()) + _memory_bytes(model)
        for oldest, size in sizes.items():
            if total > self.max_bytes:
                del self._held[oldest]
                total -= size
        self._held[choice] = model


def _memory_bytes(model: MaskedLM) -> int:
    estimate = getattr(model, "memory_bytes", None)
    return int(model.signature.size_bytes if estimate is None else estimate)
