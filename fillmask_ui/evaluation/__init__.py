"""How well a masked language model knows its texts.

Definition: hide tokens of a text, ask the model for their distribution, and average the negative
log-likelihood of the true tokens over all hidden tokens of all texts (cross-entropy in nats;
e^mean is the perplexity). What is hidden names the metric; each file in `metrics` defines one.

Rivals: accuracy calls 40 % and 5 % on the right word the same "wrong"; the perplexity of a causal
model sees the left context only, so its values do not compare with these. Neither do losses per
token of two tokenizers: losses per character do.

`evaluate` yields a row per text, `summarize` turns rows into figures.
"""

from fillmask_ui.evaluation.evaluation_config import EvaluationConfig
from fillmask_ui.evaluation.likelihood import pseudo_log_likelihoods
from fillmask_ui.evaluation.measure import Heartbeat, evaluate
from fillmask_ui.evaluation.metrics import METRICS
from fillmask_ui.evaluation.rows import EvaluatedText, Rows
from fillmask_ui.evaluation.running_summary import MeanSoFar, RunningSummary, summarize
from fillmask_ui.evaluation.summary import Summary

__all__ = [
    "METRICS",
    "EvaluatedText",
    "EvaluationConfig",
    "Heartbeat",
    "MeanSoFar",
    "Rows",
    "RunningSummary",
    "Summary",
    "evaluate",
    "pseudo_log_likelihoods",
    "summarize",
]
