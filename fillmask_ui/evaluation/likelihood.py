"""Pseudo-log-likelihoods of texts, in their order: for whoever ranks sentences by them.

Source:
    Salazar et al. 2020, arXiv:1910.14659; within-word: Kauf and Ivanova 2023, arXiv:2305.10588.
"""

from collections.abc import Sequence

import numpy as np

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation.evaluation_config import EvaluationConfig
from fillmask_ui.evaluation.measure import Heartbeat, evaluate
from fillmask_ui.evaluation.rows import EvaluatedText
from fillmask_ui.protocol import MaskedLM


def pseudo_log_likelihoods(
    model: MaskedLM, texts: Sequence[str], *, within_word: bool = False
) -> np.ndarray:
    """Sum of ln P(token | all others) over the tokens of each text, each hidden alone.

    Args:
        model: from `load_model`.
        texts: N of them; scored in batches of similar length.
        within_word: hide the later sub-tokens of the same word too, which else give it away.

    Returns:
        float64 [N], in nats; higher is more likely. Special and unknown tokens do not count.

    Raises:
        DataError: for a text that is blank or longer than the model takes, with its place.
    """
    found = np.full(len(texts), np.nan)
    config = EvaluationConfig("pseudo-perplexity", within_word=within_word)
    for row in evaluate(model, texts, config):
        if isinstance(row, EvaluatedText) and not row.truncated:
            found[row.id] = -row.scores.nll_nats.sum()
        elif not isinstance(row, Heartbeat):
            reason = getattr(row, "reason", "longer than the model takes")
            raise DataError(f"text {row.id} has no likelihood: {reason}")
    return found
