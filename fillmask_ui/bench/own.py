"""A model of this project as a contender: text in, records out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fillmask_ui.bench.flops import EncoderShape
from fillmask_ui.bench.texts import mask_place, sentence
from fillmask_ui.bench.timing import Timing, evaluation_timing, timed
from fillmask_ui.evaluation import EvaluatedText, EvaluationConfig, evaluate, summarize
from fillmask_ui.filling import fill
from fillmask_ui.models import ModelChoice, load_choice
from fillmask_ui.scoring import exponentials

if TYPE_CHECKING:
    from fillmask_ui.models.runtime_model import RuntimeModel


class OwnModel:
    """What `load_model` returns, under the clock."""

    def __init__(self, choice: ModelChoice, shape: EncoderShape | None) -> None:
        self._model, self._shape = cast("RuntimeModel", load_choice(choice)), shape
        self.max_tokens = self._model.max_tokens
        self.cpu_features = self._model.signature.cpu_features

    def sentence(self, texts: Sequence[str], tokens: int, runs: int) -> Timing | None:
        """`fill` of a sentence of so many tokens; None where there is no such sentence."""

        def measure(text: str) -> Timing:
            seconds, filling = timed(lambda: fill(self._model, text, top_k=5), runs)
            return Timing(seconds, 1, filling.masks[0].candidates[0].nll_nats)

        return self._with_sentence(texts, tokens, measure)

    def call_alone(self, texts: Sequence[str], tokens: int, runs: int) -> Timing | None:
        """The runtime's call behind `sentence` with its inputs ready, and nothing else."""

        def measure(text: str) -> Timing:
            ids, place = mask_place(self._model.vocabulary, text)
            asked = (ids, np.ones_like(ids), np.array([0]), np.array([place]))
            seconds, _ = timed(self._model.prepared_call(*asked), runs)
            best = exponentials(self._model.logits_at(*asked)).log_probabilities.max()
            return Timing(seconds, 1, -float(best))

        return self._with_sentence(texts, tokens, measure)

    def evaluation(self, texts: Sequence[str], metric: str) -> Timing:
        """`evaluate` and `summarize`, masks and all."""
        config = EvaluationConfig(metric)
        sizes: list[tuple[int, int]] = []

        def noted(rows: Iterable[Any]) -> Iterator[Any]:
            for row in rows:
                if isinstance(row, EvaluatedText):
                    sizes.append((len(row.ids), len(row.cols)))
                yield row

        width = self._model.signature.vocabulary_size

        def run() -> float:
            rows = noted(evaluate(self._model, texts, config))
            return summarize(rows, config=config, vocabulary_size=width).model.mean_nll_nats

        seconds, loss = timed(run, 1)
        return evaluation_timing(seconds, loss, sizes, metric, self._shape)

    def _with_sentence(
        self, texts: Sequence[str], tokens: int, measure: Callable[[str], Timing]
    ) -> Timing | None:
        if tokens > self.max_tokens:
            return None
        text = sentence(self._model.vocabulary, texts, tokens)
        return None if text is None else measure(text)
