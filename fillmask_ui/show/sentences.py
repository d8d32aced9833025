"""Sentences: verdicts, how good a model is, where a run was measured."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fillmask_ui.evaluation import Summary
from fillmask_ui.evaluation.metrics.metric import exp
from fillmask_ui.intervals import Interval, Limits
from fillmask_ui.runs import RunInfo
from fillmask_ui.show.figures import INTERVAL, interval_heading
from fillmask_ui.show.numbers import (
    Share,
    cell_text,
    interval_text,
    percent,
    signed_percent,
    three_digits,
)

Engines = Iterable[Mapping[str, Any]]  # `RunInfo.engines`


def engines_text(engines: Engines) -> str:
    """The engines of a run; blank before one has begun.

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
    names = (engine["name"] for engine in engines)
    return ", ".join(dict.fromkeys("Ray" if name == "ray" else str(name) for name in names))


def speed_text(info: RunInfo | None, workers: int, tokens_per_second: float | None) -> str:
    """The speed of a run, and its workers unless it is this process alone.

    >>> speed_text(None, 1, 1234.5), speed_text(None, 2, None), speed_text(None, 0, None)
    ('1,234 tokens/s', '2 workers', 'workers are starting')
    """
    texts = [f"{three_digits(tokens_per_second)} tokens/s"] if tokens_per_second else []
    elsewhere = info is not None and info.engines and info.engines[-1]["name"] != "local"
    if not workers:
        texts.append("workers are starting")
    elif elsewhere or workers > 1:
        texts.append(_counted(workers, "worker"))
    return ", ".join(texts)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def headline_text(summary: Summary) -> str:
    """The verdict on two models and what it rests on; blank without a second model.

    Both rest on one interval, that of the relative change, so that they cannot contradict.
    """
    pair = summary.comparison
    return "" if pair is None else f"{pair.verdict.label}: {bound_text(summary)}"


def bound_text(summary: Summary) -> str:
    """What the verdict rests on, such as `at most 0.71% worse (limit 5%)`; blank for one model."""
    pair = summary.comparison
    if pair is None:
        return ""
    verdict, measures = pair.verdict, summary.metric.measures
    if verdict.label == "NEAR_CHANCE":
        return "the candidate is hardly better than a model that reads nothing"
    if verdict.equal:
        return "the difference is exactly 0"
    if pair.relative_change == math.inf:
        return "the candidate gave a hidden word zero probability"
    if verdict.needed_texts is not None:
        texts = _counted(pair.texts, measures)
        if pair.texts < summary.limits.fewest_texts:
            return f"{texts} cannot settle it, {verdict.needed_texts:,} are needed"
        effective = f"{summary.model.effective_texts:,.0f}"
        needed = f"about {verdict.needed_texts:,} are needed"
        return f"{texts} of unequal length count as {effective}; {needed}"
    if math.isnan(pair.relative_change):
        if summary.metric.higher_is_better:
            return f"the reference has no {measures} right"
        return "a mean loss is infinite"
    if pair.interval is None:
        return "there is no interval"
    worse = pair.interval.negative() if summary.metric.higher_is_better else pair.interval
    return _interval_bound(verdict.label, worse, summary.limits)


def _interval_bound(label: str, worse: Interval, limits: Limits) -> str:
    """How an interval of a relative change, worse above 0, lies to the limits.

    >>> _interval_bound("PASS", Interval(-0.003, 0.0071, "bootstrap-t"), Limits())
    'at most 0.71% worse (limit 5%)'
    >>> _interval_bound("INCONCLUSIVE", Interval(-0.008, 0.061, "bootstrap-t"), Limits())
    '0.80% better to 6.10% worse crosses the 5% limit'
    """
    passing, risky = f"{100 * limits.pass_below:g}%", f"{100 * limits.risk_below:g}%"
    low, high = f"{abs(worse.low):.2%}", f"{abs(worse.high):.2%}"
    span = f"{low} better to {high} worse" if worse.low < 0 else f"{low} to {high} worse"
    if label == "PASS" and worse.high < -0.00005:
        return f"at least {high} better"
    if label == "PASS":
        return f"at most {max(worse.high, 0.0001):.2%} worse (limit {passing})"
    if label == "AT_RISK":
        return f"{span} (limits {passing} and {risky})"
    if label == "REGRESSION":
        return f"at least {low} worse (limit {risky})"
    crossed = [
        text
        for border, text in ((limits.pass_below, passing), (limits.risk_below, risky))
        if worse.low < border <= worse.high
    ]
    return f"{span} crosses the {' and '.join(crossed)} limit{'s' * (len(crossed) > 1)}"


def measured_text(summary: Summary, info: RunInfo | None = None) -> str:
    """What the verdict was measured on: texts and tokens; of a run sizes and a measured speed."""
    parts = [_counted(summary.texts, summary.metric.measures)]
    parts.append(_counted(summary.model.tokens, "token"))
    sizes = [model.get("size_bytes") for model in (info.model, info.baseline or {})] if info else []
    if sizes and sizes[0]:
        size = f"{sizes[0] / 1e6:,.1f} MB"
        parts.append(f"{size} ({sizes[0] / sizes[1]:.2f}× the reference)" if sizes[1] else size)
    if info and info.speedup is not None:
        parts.append(f"{info.speedup:.2f}× the speed")
    if info and info.baseline == info.model:
        parts.append("the reference is the candidate itself")
    return ", ".join(parts)


def difference_text(change: float, span: Interval | None) -> str:
    """A difference of losses in nats, candidate less reference, in words.

    >>> difference_text(0.0043, Interval(-0.003, 0.0112, "bootstrap-t"))
    "No difference seen: the candidate's loss is 0.004 nats higher, 95% interval −0.003 to +0.011."
    """
    if change == math.inf:
        return "The candidate is worse: it gave a hidden word zero probability."
    if not math.isfinite(change):
        return "The two cannot be compared: a mean loss is infinite."
    if change == 0:
        return "No difference: both have the same loss."
    text = f"loss is {_size(change)} nats {'higher' if change > 0 else 'lower'}"
    if span is None:
        return f"Too few texts to tell: the candidate's {text}."
    interval = interval_text(span, lambda nats: f"{'−' if nats < 0 else '+'}{_size(nats)}")
    text += f", {INTERVAL} {interval}."
    if span.low <= 0 <= span.high:
        return f"No difference seen: the candidate's {text}"
    return f"The candidate is {'better' if change < 0 else 'worse'}: its {text}"


def change_text(summary: Summary) -> str:
    """By how much the metric changes, which the verdict is of; blank without a second model."""
    pair = summary.comparison
    if pair is None:
        return ""
    if pair.verdict.equal:
        return "every loss is the same"
    change = f"{summary.compared_metric} changes by {signed_percent(pair.relative_change)}"
    if pair.interval is None:
        return change
    change += f", {interval_heading(summary)} {interval_text(pair.interval, signed_percent)}"
    unseen = pair.interval.low <= 0 <= pair.interval.high
    return f"{change}: no difference is seen" if unseen else change


def outlook_text(summary: Summary) -> str:
    """What more texts would do for an interval across a limit; blank for any other verdict."""
    pair = summary.comparison
    if pair is None or pair.verdict.label != "INCONCLUSIVE" or pair.verdict.needed_texts:
        return ""
    if pair.further_texts is None:
        return "Too few texts to estimate how many are needed."
    return f"About {pair.further_texts:,} more texts of this kind settle it four times in five."


def comparison_lines(summary: Summary, info: RunInfo | None = None) -> Iterator[str]:
    """The verdict on two models, or the figure of one, and what it rests on, for the shell."""
    if summary.comparison is None:
        figure = summary.metric_figure
        value = cell_text(Share(summary.model.metric) if figure.share else summary.model.metric)
        yield f"{sentence(figure.label)[:-1]} {value} on {measured_text(summary, info)}"
        return
    yield headline_text(summary)
    yield measured_text(summary, info)
    yield sentence(change_text(summary))
    if outlook := outlook_text(summary):
        yield outlook


def sentence(message: str) -> str:
    """A message with a capital and one full stop.

    >>> sentence("see ../a.csv"), sentence("it failed.")
    ('See ../a.csv.', 'It failed.')
    """
    return f"{message[:1].upper()}{message[1:]}".rstrip(".") + "."


_FEW = "those with fewer than 5 texts come last and have no interval"


def slices_note(summary: Summary) -> str:
    """How to read the tables of slices."""
    if summary.comparison is None:
        return f"Slices that the model knows worst come first; {_FEW}."
    return (
        f"Slices that changed most come first; {_FEW}. Changes are candidate minus reference, "
        "relative to the reference. Without any difference, about 1 interval in 20 excludes 0 by "
        "chance."
    )


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
    model, reference = summary.model, summary.reference
    mean = model.mean_nll_nats
    hidden = f"the {model.tokens:,} {_HIDDEN}"
    if summary.metric.higher_is_better:
        right = percent(model.metric)
        if reference is None:
            story = f"{label} was right in {right}"
        else:
            story = (
                f"the reference was right in {percent(reference.metric)}, the candidate in {right}"
            )
        return f"{on} {story}: it found the better sentence more likely. Guessing gets half."
    if reference is not None:
        return (
            f"{on} the reference gave {hidden} {percent(exp(-reference.mean_nll_nats))} on average "
            f"(the geometric mean), the candidate {percent(exp(-mean))}."
        )
    if not math.isfinite(mean):
        return f"{on} {label} gave one of {hidden} zero probability: its mean loss is infinite."
    perplexity = exp(mean)
    words = f"{perplexity:,.{1 if perplexity < 10 else 0}f} equally likely words"
    return (
        f"{on} {label} gave {hidden} {percent(exp(-mean))} on average (the geometric mean): a loss "
        f"of {mean:.2f} nats, as uncertain as {words}."
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
    ('as uncertain as 6 equally likely words', 'nearly certain of one word')
    """
    if perplexity < 1.5:
        return "nearly certain of one word"
    return f"as uncertain as {perplexity:,.0f} equally likely words"
