"""What was measured, how good it is and what that means, in plain sentences."""

import math
from collections.abc import Mapping
from typing import Any

from fillmask_ui.evaluation import Summary
from fillmask_ui.evaluation.metrics.metric import exp
from fillmask_ui.evaluation.summary import Comparison
from fillmask_ui.show.figures import INTERVAL, interval_heading
from fillmask_ui.show.numbers import percent

_HIDDEN = "hidden words and word parts"


def model_label(model: Mapping[str, Any]) -> str:
    """A model's name and the precision of its weights, from its signature.

    >>> model_label({"name": "embedded", "precision": "float16"})
    'embedded · float16'
    """
    return f"{model['name']} · {model['precision']}"


def story_text(summary: Summary, labels: tuple[str, ...], *, final: bool = True) -> str:
    """How good the model is, or which of two is better, by how much, and whether that is chance.

    Args:
        summary: of the texts so far, or of all.
        labels: what the models are called, one or two.
        final: whether all texts are measured.
    """
    texts = f"{summary.texts:,} text{'s' if summary.texts != 1 else ''}"
    on = f"On {texts}," if final else f"So far, on {texts},"
    return f"{on} {_alone(summary, labels[0]) if len(labels) == 1 else _pair(summary, labels)}"


def _alone(summary: Summary, label: str) -> str:
    mean = summary.model.mean_nll_nats
    if not math.isfinite(mean):
        return f"{label} gave one of the {_HIDDEN} no chance at all: its mean loss is infinite."
    return (
        f"{label} gave the {summary.model.tokens:,} {_HIDDEN} {percent(exp(-mean))} on average "
        f"(the geometric mean): a loss of {mean:.2f} nats, as unsure as among {among(mean)}."
    )


def among(nats: float) -> str:
    """The perplexity of a loss, as a number of words that are equally probable.

    >>> among(2.1), among(5), among(0)
    ('8.2 equal words', '148 equal words', '1.0 equal words')
    """
    count = exp(nats)
    return f"{count:,.1f} equal words" if count < 10 else f"{count:,.0f} equal words"


def _pair(summary: Summary, labels: tuple[str, ...]) -> str:
    pair, base = summary.comparison, summary.baseline
    first, second = labels
    if pair is None or base is None or not math.isfinite(pair.difference_nats):
        return f"{first} and {second} cannot be compared: a mean loss is infinite."
    gap, loss = pair.difference_nats, summary.model.mean_nll_nats
    if summary.scheme.scaled:  # the verdict is about the metric, not about the mean
        loss = summary.model.metric
        gap = loss - base.metric
    if gap == 0:
        return f"{first} and {second} have the same loss."
    which, size = ("worse", "larger") if gap > 0 else ("better", "smaller")
    said = f"{first} is {which} than {second}: its loss"
    chance = chance_text(pair, interval_heading(summary))
    if pair.unit != "token":
        return f"{said} is {_size(gap)} nats a {pair.unit} {size}. {chance}"
    own, other = summary.model.mean_nll_nats, base.mean_nll_nats
    return (
        f"{said} of {loss:.3f} nats is {_size(gap)} {size}. {chance} It gave the "
        f"{summary.model.tokens:,} {_HIDDEN} {percent(exp(-own))} on average (the geometric mean), "
        f"the other {percent(exp(-other))}."
    )


def chance_text(pair: Comparison, named: str = INTERVAL) -> str:
    """Whether the change from one model to the other can be chance; its interval is named so."""
    span = pair.interval
    if span is None:
        return "With so few texts, nobody can say whether that is chance."
    if span.low <= 0 <= span.high:
        return f"That can be chance: the {named} includes no change at all."
    return f"That is hardly chance: the {named} leaves out 0."


def _size(difference: float) -> str:
    """Three places, more for what is smaller."""
    size = abs(difference)
    return f"{size:.3f}" if size >= 0.001 else f"{size:.1e}"
