"""Sentences: verdicts, how good a model is, where a run was measured."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fillmask_ui.evaluation import Summary
from fillmask_ui.evaluation.metrics.metric import exp
from fillmask_ui.intervals import Interval
from fillmask_ui.runs import RunInfo
from fillmask_ui.show.figures import INTERVAL, interval_heading
from fillmask_ui.show.numbers import interval_text, percent, signed_percent, three_digits

Engines = Iterable[Mapping[str, Any]]  # `RunInfo.engines`


def engines_text(engines: Engines) -> str:
    """The engines of a run; blank for older runs, which do not say.

    >>> ray = {"name": "ray", "version": "2.60.0", "workers": 4, "threads_per_worker": 1}
    >>> engines_text([{"name": "local"}, ray])
    'local; Ray 2.60.0, 4 workers of 1 thread'
    """
    texts = []
    for engine in engines:
        text = " ".join(filter(None, (engine_names([engine]), engine.get("version"))))
        if workers := engine.get("workers"):
            text += f", {_counted(workers, 'worker')}"
            if threads := engine.get("threads_per_worker"):
                text += f" of {_counted(threads, 'thread')}"
        texts.append(text)
    return "; ".join(texts)


def engine_names(engines: Engines) -> str:
    """The names alone, each once.

    >>> engine_names([{"name": "ray", "workers": 2}, {"name": "local"}, {"name": "ray"}])
    'Ray, local'
    """
    names = ("Ray" if own["name"] == "ray" else str(own["name"]) for own in engines)
    return ", ".join(dict.fromkeys(names))


def speed_text(info: RunInfo | None, workers: int, tokens_per_second: float | None) -> str:
    """The speed of a run, and its workers unless it is this process alone.

    >>> speed_text(None, 1, 1234.5), speed_text(None, 2, None), speed_text(None, 0, None)
    ('1,234 tokens/s', '2 workers', 'workers are starting')
    """
    said = [f"{three_digits(tokens_per_second)} tokens/s"] if tokens_per_second else []
    elsewhere = info is not None and info.engines and info.engines[-1]["name"] != "local"
    if not workers:
        said.append("workers are starting")
    elif elsewhere or workers > 1:
        said.append(_counted(workers, "worker"))
    return ", ".join(said)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def conclusion_text(summary: Summary) -> str:
    """What the comparison of two models shows; blank without a second model.

    It rests on the difference of the mean losses in nats, or on the relative change where the
    metric is no plain mean of them.
    """
    pair = summary.comparison
    if pair is None:
        return ""
    heading, label = interval_heading(summary), pair.verdict.label
    higher = summary.metric.counts_right
    if higher and math.isnan(pair.relative_change):
        return f"The two cannot be compared: the reference has no {summary.metric.measures} right."
    if higher or (summary.metric.scaled and math.isfinite(pair.difference_nats)):
        change, span, name = pair.relative_change, pair.interval, summary.compared_metric
        shown: dict[str, Any] = {"name": name, "heading": heading, "higher_is_better": higher}
        return difference_text(change, span, label, unit="", **shown)
    name = "loss" if pair.unit == "token" else f"loss per {pair.unit}"
    change, span = pair.difference_nats, pair.difference_interval
    return difference_text(change, span, label, name=name, heading=heading)


# What a candidate is whose interval lies above no change, by its verdict.
_WORSE = {
    "PASS": "is slightly worse, within the limit",
    "AT_RISK": "is at risk",
    "REGRESSION": "is worse",
    "INCONCLUSIVE": "is worse, by how much is not settled",
}


def difference_text(
    change: float,
    span: Interval | None,
    verdict: str = "",
    *,
    name: str = "loss",
    unit: str = "nats",
    heading: str = INTERVAL,
    higher_is_better: bool = False,
) -> str:
    """A change of what is called `name`, candidate less reference, as a conclusion.

    Without a unit it is a relative change. A `verdict` says how bad a worse candidate is.

    >>> difference_text(0.0043, Interval(-0.003, 0.0112, "bootstrap-t"), "PASS")
    "No difference seen: the candidate's loss is 0.004 nats higher, 95 % interval -0.003 to +0.011."
    """
    if change == math.inf:
        return "The candidate is worse: it gave a hidden word no chance at all."
    if not math.isfinite(change):
        return "The two cannot be compared: a mean loss is infinite."
    if change == 0:
        return f"No difference: both have the same {name}."
    size = f"{_size(change)} {unit}" if unit else f"{abs(change):.2%}"
    said = f"{name} is {size} {'higher' if change > 0 else 'lower'}"
    if span is None:
        return f"Too few texts to tell: the candidate's {said}."

    def signed(end: float) -> str:
        return f"{'-' if end < 0 else '+'}{_size(end)}" if unit else signed_percent(end)

    said += f", {heading} {interval_text(span, signed)}."
    if span.low <= 0 <= span.high and verdict in ("PASS", "INCONCLUSIVE", ""):
        yet = " yet" if verdict == "INCONCLUSIVE" else ""
        return f"No difference seen{yet}: the candidate's {said}"
    if (change < 0) != higher_is_better:
        return f"The candidate is better: its {said}"
    return f"The candidate {_WORSE.get(verdict, 'is worse')}: its {said}"


def change_text(summary: Summary) -> str:
    """By how much the metric changes, which the verdict is of; blank without a second model."""
    pair = summary.comparison
    if pair is None:
        return ""
    span = interval_text(pair.interval, signed_percent)
    change = f"{summary.compared_metric} changes by {signed_percent(pair.relative_change)}"
    return f"{change}, {interval_heading(summary)} {span}" if span else change


def outlook_text(summary: Summary) -> str:
    """What more texts would do for an inconclusive verdict; blank for any other."""
    pair = summary.comparison
    if pair is None or pair.verdict.label != "INCONCLUSIVE":
        return ""
    if pair.further_texts is None:
        return "This many texts cannot say how many more would settle it."
    return f"About {pair.further_texts:,} more texts of this kind settle it four times in five."


def comparison_lines(summary: Summary) -> Iterator[str]:
    """The conclusion on two models and the verdict, for the shell."""
    pair = summary.comparison
    if pair is None:
        return
    yield conclusion_text(summary)
    yield f"Verdict: {pair.verdict.label} ({change_text(summary)})"
    if outlook := outlook_text(summary):
        yield outlook


_HIDDEN = "hidden words and word parts"


def model_label(model: Mapping[str, Any]) -> str:
    """A model's name and the precision of its weights, from its signature.

    >>> model_label({"name": "embedded", "precision": "float16"})
    'embedded · float16'
    """
    return f"{model['name']} · {model['precision']}"


def story_text(summary: Summary, label: str, *, final: bool = True) -> str:
    """How good the model called `label` is; of two, what each gave the hidden words.

    `final` says whether all texts are measured.
    """
    texts = _counted(summary.texts, summary.metric.measures)
    on = f"On {texts}," if final else f"So far, on {texts},"
    own, base = summary.model, summary.baseline
    mean = own.mean_nll_nats
    hidden = f"the {own.tokens:,} {_HIDDEN}"
    if summary.metric.counts_right:
        shares = [percent(figures.metric) for figures in (base, own) if figures is not None]
        said = f"{on} {label if base is None else 'the reference'} was right in {shares[0]}"
        also = f", the candidate in {shares[1]}" if shares[1:] else ""
        return f"{said}{also}: it found the better sentence more likely. Guessing gets half."
    if base is not None:
        shares = [percent(exp(-figures.mean_nll_nats)) for figures in (base, own)]
        return (
            f"{on} the reference gave {hidden} {shares[0]} on average (the geometric mean), the "
            f"candidate {shares[1]}."
        )
    if not math.isfinite(mean):
        return f"{on} {label} gave one of {hidden} no chance at all: its mean loss is infinite."
    perplexity = exp(mean)
    words = f"{perplexity:,.{1 if perplexity < 10 else 0}f} equal words"
    return (
        f"{on} {label} gave {hidden} {percent(exp(-mean))} on average (the geometric mean): a loss "
        f"of {mean:.2f} nats, as unsure as among {words}."
    )


def _size(difference: float) -> str:
    """A difference without its sign: to three decimals, or the first digit that counts.

    >>> _size(-0.0043), _size(0.00002), _size(3e-9)
    ('0.004', '0.00002', '0.000000003')
    """
    size = abs(difference)
    digits = 3 if size >= 0.001 or not size else -math.floor(math.log10(size))
    return f"{size:,.{digits}f}"


def as_unsure(perplexity: float) -> str:
    """A perplexity in words.

    >>> as_unsure(6.2), as_unsure(1.1)
    ('as unsure as among 6 equal words', 'nearly sure of one word')
    """
    if perplexity < 1.5:
        return "nearly sure of one word"
    return f"as unsure as among {perplexity:,.0f} equal words"
