"""One model for many threads: calls that wait while others run go through it together.

A call that finds the model free runs at once. Those that come meanwhile are put together when it
ends, where their lengths are alike enough that padding costs less than the batch saves.

Axes: B texts in a batch, T tokens, M asked positions, V vocabulary.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fillmask_ui.protocol import MaskedLM

# Calls of the model that run at a time: while one is between two products of matrices, the other
# keeps the processor busy.
AT_A_TIME = 2
# Of a batch: most tokens B x T, most logits M x V (16 MB), and most that a text is filled up to,
# relative to its own length. A call that is larger by itself runs by itself.
MAX_TOKENS = 512
MAX_LOGITS = 4_000_000
MAX_PADDING = 1.5


@dataclass(eq=False)
class _Call:
    """What one thread asks, and its answer: float32 [M, V], or what the model raised."""

    input_ids: np.ndarray
    attention_mask: np.ndarray
    rows: np.ndarray
    cols: np.ndarray
    answer: Any = None

    def __post_init__(self) -> None:
        # Here, so that arrays of a wrong shape are an error of the thread that brings them.
        self.texts, self.length = self.input_ids.shape


class SharedModel:
    """`MaskedLM` over a loaded one, for callers in many threads.

    Logits are those of the model itself within the rounding of float32, whoever else asks.
    """

    def __init__(self, model: MaskedLM) -> None:
        self.model = model
        self.vocabulary, self.signature = model.vocabulary, model.signature
        self.max_tokens = model.max_tokens
        # Nothing is gained where the model takes a batch apart.
        self._joins = not getattr(model, "runs_alone", False)
        self._changed = threading.Condition()
        self._waiting: list[_Call] = []  # the oldest first
        self._running = 0

    def logits_at(
        self, input_ids: np.ndarray, attention_mask: np.ndarray, rows: np.ndarray, cols: np.ndarray
    ) -> np.ndarray:
        if not self._joins:
            return self.model.logits_at(input_ids, attention_mask, rows, cols)
        call = _Call(input_ids, attention_mask, np.asarray(rows), np.asarray(cols))
        with self._changed:
            self._waiting.append(call)
            try:
                self._changed.wait_for(lambda: call.answer is not None or self._is_next(call))
                together = [] if call.answer is not None else self._take(call)
            except BaseException:  # interrupted while it waited
                self._waiting = [one for one in self._waiting if one is not call]
                self._changed.notify_all()
                raise
        if together:
            try:
                self._run(together)
            finally:
                with self._changed:
                    self._running -= 1
                    # An interrupted thread leaves the other calls of its batch to the next.
                    left = [one for one in together if one.answer is None and one is not call]
                    self._waiting[:0] = left
                    self._changed.notify_all()
        if isinstance(call.answer, Exception):
            raise call.answer
        answer: np.ndarray = call.answer
        return answer

    def _is_next(self, call: _Call) -> bool:
        return self._running < AT_A_TIME and self._waiting[:1] == [call]

    def _take(self, call: _Call) -> list[_Call]:
        """The call with those that wait and go with it, the most alike first, to be run now."""
        together = [call]
        for other in sorted(self._waiting[1:], key=lambda one: abs(one.length - call.length)):
            trial = [*together, other]
            lengths = [one.length for one in trial]
            if (
                sum(one.texts for one in trial) * max(lengths) <= MAX_TOKENS
                and sum(len(one.rows) for one in trial) * self.signature.vocabulary_size
                <= MAX_LOGITS
                and max(lengths) <= MAX_PADDING * min(lengths)
            ):
                together = trial
        self._waiting = [one for one in self._waiting if one not in together]
        self._running += 1
        self._changed.notify_all()  # whoever is first now may be next
        return together

    def _run(self, calls: Sequence[_Call]) -> None:
        """Answer calls by one batch; if that fails, by one each, so that no error is another's."""
        try:
            logits = self.model.logits_at(*_joined(calls, self.vocabulary.pad_id))
            ends = np.cumsum([len(call.rows) for call in calls])
            for call, own in zip(calls, np.split(logits, ends[:-1]), strict=True):
                call.answer = own
        except Exception as error:  # noqa: BLE001 - the thread that asked raises it again
            if len(calls) > 1:
                for call in calls:
                    self._run([call])
            else:
                calls[0].answer = error


def _joined(calls: Sequence[_Call], pad_id: int) -> tuple[np.ndarray, ...]:
    """The arguments of one `logits_at` for the texts of all calls, in order."""
    if len(calls) == 1:
        return calls[0].input_ids, calls[0].attention_mask, calls[0].rows, calls[0].cols
    ends = np.cumsum([call.texts for call in calls])
    shape = (int(ends[-1]), max(call.length for call in calls))
    input_ids = np.full(shape, pad_id, dtype=np.int64)  # [B, T]
    attention_mask = np.zeros(shape, dtype=np.int64)  # [B, T]
    rows = []
    for call, end in zip(calls, ends, strict=True):
        own = slice(end - call.texts, end), slice(call.length)
        input_ids[own], attention_mask[own] = call.input_ids, call.attention_mask
        rows.append(call.rows + own[0].start)
    return input_ids, attention_mask, np.concatenate(rows), np.concatenate([c.cols for c in calls])
