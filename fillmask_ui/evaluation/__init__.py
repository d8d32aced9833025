"""How well a masked language model knows its texts.

Tokens of a text are hidden, and the negative log-likelihood of the true ones is averaged over all
hidden tokens of all texts (nats). What is hidden names the metric; each file in `metrics` defines
one. `evaluate` yields a row per text, `summarize` turns rows into figures.
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
