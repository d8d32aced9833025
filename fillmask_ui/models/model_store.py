"""Loaded models that many threads use: one copy of each, and calls that go through it together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from fillmask_ui.models.load import load_choice
from fillmask_ui.models.loading_progress import ProgressCallback
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.protocol import MaskedLM

if TYPE_CHECKING:
    import numpy as np

# Concurrent calls of a model: while one is between two matrix products, the other computes.
AT_A_TIME = 2
# Limits of a joined batch: tokens B x T, logits M x V (16 MB), and padded length relative to a
# text's own. A larger call runs by itself.
MAX_TOKENS = 512
MAX_LOGITS = 4_000_000
MAX_PADDING = 1.5


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
            known = self._models.pop(choice, None)
            model = self._models[choice] = known or Future[MaskedLM]()
        if known is None:
            try:
                self._hold(model, self._loader(choice, on_progress=on_progress))
            except BaseException as error:
                with self._lock:
                    del self._models[choice]
                model.set_exception(error)
                raise
        return model.result()

    def _hold(self, promise: Future[MaskedLM], loaded: MaskedLM) -> None:
        """Keep a promise, and drop models until the rest and this one are within the limit."""
        with self._lock:
            held = {key: one.result() for key, one in self._models.items() if one.done()}
            total = sum(map(_memory_bytes, [*held.values(), loaded]))
            promise.set_result(loaded)
            for oldest, model in held.items():
                if total > self.max_bytes:
                    del self._models[oldest]
                    total -= _memory_bytes(model)


def _memory_bytes(model: MaskedLM) -> int:
    return int(getattr(model, "memory_bytes", None) or model.signature.size_bytes)


class _Call:
    """A thread's call, and its answer: float32 [M, V], or what the model raised."""

    def __init__(self, ids: np.ndarray, mask: np.ndarray, rows: np.ndarray, cols: np.ndarray):
        self.input_ids, self.attention_mask, self.rows, self.cols = ids, mask, rows, cols
        self.texts, self.length = ids.shape  # a wrong shape fails in the calling thread
        self.answer: Future[np.ndarray] = Future()


class SharedModel:
    """`MaskedLM` over a loaded one, for callers in many threads.

    A call that finds the model free runs at once. Those that come meanwhile are joined when it
    ends, if their lengths are alike. Logits are those of the model within the rounding of float32.
    """

    def __init__(self, model: MaskedLM) -> None:
        self.model = model
        self.vocabulary, self.signature = model.vocabulary, model.signature
        self.max_tokens = model.max_tokens
        self._joins = not getattr(model, "runs_alone", False)
        self._lock, self._free = threading.Lock(), threading.Semaphore(AT_A_TIME)
        self._waiting: list[_Call] = []

    def logits_at(
        self, input_ids: np.ndarray, attention_mask: np.ndarray, rows: np.ndarray, cols: np.ndarray
    ) -> np.ndarray:
        if not self._joins:
            return self.model.logits_at(input_ids, attention_mask, rows, cols)
        call = _Call(input_ids, attention_mask, rows, cols)
        with self._lock:
            self._waiting.append(call)
        with self._free:
            self._run(self._taken(call))
        return call.answer.result()

    def _taken(self, call: _Call) -> list[_Call]:
        """The call and the waiting ones to run with it; nothing if another thread runs it."""
        with self._lock:
            if call not in self._waiting:
                return []
            self._waiting.remove(call)
            together, width = [call], self.signature.vocabulary_size
            for other in sorted(self._waiting, key=lambda one: abs(one.length - call.length)):
                trial = [*together, other]
                lengths = [one.length for one in trial]
                tokens = sum(one.texts for one in trial) * max(lengths)
                logits = sum(len(one.rows) for one in trial) * width
                alike = max(lengths) <= MAX_PADDING * min(lengths)
                if alike and tokens <= MAX_TOKENS and logits <= MAX_LOGITS:
                    together = trial
            self._waiting = [one for one in self._waiting if one not in together]
            return together

    def _run(self, calls: Sequence[_Call]) -> None:
        """Answer calls by one batch; if that fails, one by one, each with its own error."""
        if not calls:
            return
        try:
            logits, start = self.model.logits_at(*_joined(calls, self.vocabulary.pad_id)), 0
            for call in calls:
                call.answer.set_result(logits[start : start + len(call.rows)])
                start += len(call.rows)
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            for call in calls:
                if len(calls) > 1 and isinstance(error, Exception):
                    self._run([call])
                else:
                    call.answer.set_exception(error)


def _joined(calls: Sequence[_Call], pad_id: int) -> tuple[np.ndarray, ...]:
    import numpy as np  # not at the top: commands that load no model do without

    from fillmask_ui.batching import pad

    starts = np.cumsum([0, *(call.texts for call in calls)])
    return (
        pad([text for call in calls for text in call.input_ids], pad_id).input_ids,
        pad([text for call in calls for text in call.attention_mask], 0).input_ids,
        np.concatenate([call.rows + start for call, start in zip(calls, starts, strict=False)]),
        np.concatenate([call.cols for call in calls]),
    )
