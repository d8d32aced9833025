"""Sentences: verdicts, how good a model is, where a run was measured."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fillmask_ui.evaluation import Summary
from fillmask_ui.evaluation.metrics.metric import exp
from fillmask_ui.evaluation.summary import Comparison
from fillmask_ui.runs import RunInfo
from fillmask_ui.show.figures import INTERVAL, interval_heading
from fillmask_ui.show.numbers import interval_text, percent, signed_percent, three_digits

Engines = Iterable[Mapping[str, Any]]  # `RunInfo.engines`
_NAMES = {"ray": "Ray"}


def engines_text(engines: Engines) -> str:
    """The engines of a run; blank for older runs, which do not say.

    >>> ray = {"name": "ray", "version": "2.60.0", "workers": 4, "threads_per_worker": 1}
    >>> engines_text([{"name": "local"}, ray])
    'local; Ray 2.60.0, 4 workers of 1 thread'
    """
    texts = []
    for engine in engines:
        text = " ".join(filter(None, (_name(engine), engine.get("version"))))
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
    return ", ".join(dict.fromkeys(map(_name, engines)))


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


def _name(engine: Mapping[str, Any]) -> str:
    return _NAMES.get(engine["name"], engine["name"])


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def change_text(summary: Summary) -> str:
    """By how much the metric changes; blank without a second model."""
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
    """The verdict and the differences of two models, for the shell."""
    pair = summary.comparison
    if pair is None:
        return
    yield f"Verdict: {pair.verdict.label} ({change_text(summary)})"
    if outlook := outlook_text(summary):
        yield outlook
    if pair.agreement is not None:
        yield (
            f"Same best guess for {pair.agreement:.2%} of the tokens; {pair.flips:,} flipped "
            f"({pair.lost:,} right only in the baseline, {pair.won:,} right only in the model)"
        )
    if pair.mean_kl_nats is not None:
        yield (
            f"KL divergence {pair.mean_kl_nats:.6f} nats "
            f"(reverse {pair.mean_kl_reverse_nats:.6f}); |logit difference| mean "
            f"{pair.mean_abs_logit_difference:.6f}, largest {pair.max_abs_logit_difference:.6f}"
        )


_HIDDEN = "hidden words and word parts"


def model_label(model: Mapping[str, Any]) -> str:
    """A model's name and the precision of its weights, from its signature.

    >>> model_label({"name": "embedded", "precision": "float16"})
    'embedded · float16'
    """
    return f"{model['name']} · {model['precision']}"


def story_text(summary: Summary, labels: tuple[str, ...], *, final: bool = True) -> str:
    """How good the model is, or which of two is better, by how much, and whether that is chance.

    `labels` are the names of the one or two models, `final` says whether all texts are measured.
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
    """The perplexity of a loss, as a number of equally probable words.

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
    if summary.metric.scaled:  # the verdict is about the metric, not about the mean
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
    """Whether the change between two models can be chance; `named` is its interval."""
    span = pair.interval
    if span is None:
        return "With so few texts, nobody can say whether that is chance."
    if span.low <= 0 <= span.high:
        return f"That can be chance: the {named} includes no change at all."
    return f"That is hardly chance: the {named} leaves out 0."


def _size(difference: float) -> str:
    size = abs(difference)
    return f"{size:.3f}" if size >= 0.001 else f"{size:.1e}"


def as_unsure(perplexity: float) -> str:
    """A perplexity in words.

    >>> as_unsure(6.2), as_unsure(1.1)
    ('as unsure as among 6 equal words', 'nearly sure of one word')
    """
    if perplexity < 1.5:
        return "nearly sure of one word"
    return f"as unsure as among {perplexity:,.0f} equal words"
