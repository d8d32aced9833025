"""How well a masked language model knows its texts.

Definition: hide tokens of a text, ask the model for their distribution, and average the negative
log-likelihood of the true tokens over all hidden tokens of all texts (cross-entropy in nats;
e^mean is the perplexity). What is hidden names the metric; each file in `schemes` defines one.

Rivals: accuracy calls 40 % and 5 % on the right word the same "wrong"; the perplexity of a causal
model sees the left context only, so its values do not compare with these. Neither do losses per
token of two tokenizers: losses per character do.

`evaluate` yields a row per text, `summarize` turns rows into figures.
"""

from fillmask_ui.evaluation.config import EvaluationConfig
from fillmask_ui.evaluation.history import History, MeanSoFar
from fillmask_ui.evaluation.measure import BLOCK_TEXTS, Heartbeat, check_models, evaluate
from fillmask_ui.evaluation.prepare import Masks, SeededMasks
from fillmask_ui.evaluation.rows import EvaluatedText, TokenScores
from fillmask_ui.evaluation.running import RunningSummary, summarize
from fillmask_ui.evaluation.samples import TokenExample, token_example
from fillmask_ui.evaluation.schemes import SCHEMES
from fillmask_ui.evaluation.summary import Comparison, GroupFigures, ModelFigures, Summary

__all__ = [
    "BLOCK_TEXTS",
    "SCHEMES",
    "Comparison",
    "EvaluatedText",
    "EvaluationConfig",
    "GroupFigures",
    "Heartbeat",
    "History",
    "Masks",
    "MeanSoFar",
    "ModelFigures",
    "RunningSummary",
    "SeededMasks",
    "Summary",
    "TokenExample",
    "TokenScores",
    "check_models",
    "evaluate",
    "summarize",
    "token_example",
]
