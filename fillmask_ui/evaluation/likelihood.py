"""Pseudo-log-likelihoods of texts, in their order: for whoever ranks sentences by them.

Source:
    Salazar et al. 2020, arXiv:1910.14659; within-word: Kauf and Ivanova 2023, arXiv:2305.10588.
"""

from collections.abc import Sequence

import numpy as np

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation.evaluation_config import EvaluationConfig
from fillmask_ui.evaluation.given_texts import texts_of
from fillmask_ui.evaluation.measure import check_models, evaluate, prepare
from fillmask_ui.evaluation.rows import EvaluatedText
from fillmask_ui.protocol import MaskedLM, ModelLike, as_model
from fillmask_ui.records import Example, SkippedText


def pseudo_log_likelihoods(
    model: ModelLike, texts: Sequence[str], *, within_word: bool = False
) -> np.ndarray:
    """Sum of ln P(token | all others) over the tokens of each text, each hidden alone.

    Args:
        model: from `load_model`, or a reference such as `embedded`, which is loaded once.
        texts: N of them; scored in batches of similar length.
        within_word: hide the later sub-tokens of the same word too, which else give it away.

    Returns:
        float64 [N], in nats; higher is more likely. Special and unknown tokens do not count.

    Raises:
        DataError: for a text that is blank or longer than the model takes, with its number; before
            the model is asked about any.
    """
    model = as_model(model)
    config = EvaluationConfig("pseudo-perplexity", within_word=within_word)
    config = check_models(model, None, config)
    examples = [Example(number, text) for number, text in enumerate(texts_of(texts))]
    for example in examples:  # all of them before the model is asked about any
        if reason := _unfit(example, model, config):
            raise DataError(f"text {example.id} has no likelihood: {reason}; leave it out")
    likelihoods = np.full(len(examples), np.nan)
    for row in evaluate(model, examples, config):
        if isinstance(row, EvaluatedText):
            likelihoods[row.id] = -row.scores.nll_nats.sum()
    return likelihoods


def _unfit(example: Example, model: MaskedLM, config: EvaluationConfig) -> str:
    """Why a text has no likelihood; blank if it has one."""
    text: object = example.text
    if not isinstance(text, str):
        return f"{repr(text)[:80]} is not a text"
    prepared = prepare(example, model.vocabulary, config)
    if isinstance(prepared, SkippedText):
        return prepared.reason
    if prepared.row.truncated:
        return f"it has more than the {model.max_tokens:,} tokens that the model takes"
    return ""
