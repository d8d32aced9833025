"""Workers that end when they come to a text with a zebra in it; pickled by value."""

import os
from typing import Any

from fillmask_ui.cluster.worker import Worker


def worker(step: str) -> Any:
    """A class of workers that end in a step: `load`, `tokenizer` or `memory`."""

    class Crashing(Worker):
        def __init__(self, ledger: Any, *others: Any) -> None:
            if step == "load":
                import ray

                ray.get(ledger.start.remote())
                if ray.get(ledger.start.remote()):
                    os._exit(1)
            super().__init__(ledger, *others)
            if self._problem:
                return
            zebra = self._model.vocabulary.encode("zebra").ids[1:-1]
            if step == "tokenizer":
                self._model.vocabulary = _Vocabulary(self._model.vocabulary)
            if step == "memory":
                self._model = _Model(self._model, list(zebra))

    return Crashing


class _Wrapped:
    def __init__(self, inner: Any, *more: Any) -> None:
        self._inner, self._more = inner, more

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Vocabulary(_Wrapped):
    def encode(self, text: str) -> Any:
        if "zebra" in text:
            os._exit(1)
        return self._inner.encode(text)


class _Model(_Wrapped):
    def logits_at(self, input_ids: Any, mask: Any, rows: Any, cols: Any) -> Any:
        (zebra,) = self._more
        for row in input_ids.tolist():
            if any(row[at : at + len(zebra)] == zebra for at in range(len(row))):
                raise MemoryError
        return self._inner.logits_at(input_ids, mask, rows, cols)
