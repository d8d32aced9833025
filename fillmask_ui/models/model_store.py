"""Loaded models that many threads use: one copy of each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from fillmask_ui.models.load import load_choice
from fillmask_ui.models.loading_progress import ProgressCallback
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.protocol import MaskedLM


class ModelStore:
    """Models by their choice, at most `max_bytes` of them together; safe from many threads.

    The least recently used is dropped first; the one loaded last always stays.
    """

    def __init__(
        self, max_bytes: int = 2 << 30, loader: Callable[..., MaskedLM] = load_choice
    ) -> None:
        self.max_bytes, self._loader = max_bytes, loader
        self._lock = threading.Lock()
        # The least recently used first; those still loading are not done.
        self._models: dict[ModelChoice, Future[MaskedLM]] = {}

    def get(
        self, choice: ModelChoice | str = "embedded", on_progress: ProgressCallback | None = None
    ) -> MaskedLM:
        """The model of a choice or a reference, loaded if it is not held.

        Threads that want the same model wait for one load, whose error all get and none later.
        """
        if isinstance(choice, str):
            choice = ModelChoice(choice.strip())
        with self._lock:
            held = self._models.pop(choice, None)
            model = self._models[choice] = held or Future[MaskedLM]()
        if held is None:
            try:
                self._hold(model, self._loader(choice, on_progress=on_progress))
            except BaseException as error:
                with self._lock:
                    del self._models[choice]
                model.set_exception(error)
                raise
        return model.result()

    def _hold(self, future: Future[MaskedLM], loaded: MaskedLM) -> None:
        """Set a loaded model as a result; drop the oldest until all are within the limit."""
        with self._lock:
            held = {
                choice: model.result() for choice, model in self._models.items() if model.done()
            }
            total = sum(map(_memory_bytes, [*held.values(), loaded]))
            future.set_result(loaded)
            for choice, model in held.items():
                if total > self.max_bytes:
                    del self._models[choice]
                    total -= _memory_bytes(model)


def _memory_bytes(model: MaskedLM) -> int:
    return int(getattr(model, "memory_bytes", None) or model.signature.size_bytes)
