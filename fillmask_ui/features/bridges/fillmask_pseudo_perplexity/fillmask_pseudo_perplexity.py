"""Pseudo-perplexity of texts under a masked language model, for Hugging Face `evaluate`."""

from typing import Any

import datasets
import evaluate
import numpy as np

import fillmask_ui
from fillmask_ui.errors import OptionError

_DESCRIPTION = """
Perplexity for masked language models, which read both sides: each token is hidden alone, one after
another, and it is e^ of the mean of -ln P(token | all others). Lower is better. It does not compare
with the perplexity of a causal model, nor between tokenizers.
"""
_CITATION = "Salazar et al. 2020, arXiv:1910.14659; within-word: Kauf and Ivanova, arXiv:2305.10588"
_INPUTS = """
Args:
    predictions: list of texts.
    model_id: what `fillmask_ui.load_model` takes (`embedded` by default); so are other options.
    within_word: hide the later sub-tokens of a token's word with it.

Returns:
    pseudo_perplexity: over the tokens of all texts, as `fillmask-ui eval` gives it.
    pseudo_perplexity_interval_95: [low, high] over texts; None for fewer than five.
    perplexities: of each text; None for one that cannot be measured, such as a blank one.
    mean_perplexity: their mean.
    tokens, truncated: number of hidden tokens, and of texts cut to what the model takes.
"""


class FillmaskPseudoPerplexity(evaluate.Metric):
    """Pseudo-perplexity; its description for users is above."""

    def _info(self) -> Any:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": datasets.Value("string")}),
        )

    def compute(self, *, predictions: Any = None, **options: Any) -> Any:
        """Refuse a single text, whose characters would be taken for texts."""
        if isinstance(predictions, str):
            raise OptionError("the predictions were one text: give a list of texts, as in [text]")
        return super().compute(predictions=predictions, **options)

    def _compute(
        self,
        predictions: list[str],
        model_id: Any = None,
        within_word: bool = False,
        **options: Any,
    ) -> dict[str, Any]:
        config = fillmask_ui.EvaluationConfig("pseudo-perplexity", within_word=within_word)
        model = fillmask_ui.load_model(model_id, **options)
        rows = list(fillmask_ui.evaluate(model, predictions, config))
        summary = fillmask_ui.summarize(rows, config=config).to_dict()
        perplexities = {
            row.id: float(np.exp(row.scores.nll_nats.mean()))
            for row in rows
            if hasattr(row, "scores")
        }
        return {
            "pseudo_perplexity": summary["pseudo_perplexity"],
            "pseudo_perplexity_interval_95": summary["interval_95"],
            "perplexities": [perplexities.get(index) for index in range(len(predictions))],
            "mean_perplexity": float(np.mean(list(perplexities.values()))),
            "tokens": summary["tokens"],
            "truncated": summary["texts_truncated"],
        }
