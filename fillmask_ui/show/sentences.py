"""All that is said in sentences: verdicts, how good a model is, where a run was measured, hints."""

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
    """The engines of a run for reading; blank for a run of before, which does not say.

    >>> ray = {"name": "ray", "version": "2.60.0", "workers": 4, "threads_per_worker": 1}
    >>> engines_text([{"name": "local"}, ray])
    'local; Ray 2.60.0, 4 workers of 1 thread'
    """
    return "; ".join(map(_engine_text, engines))


def _engine_text(engine: Mapping[str, Any]) -> str:
    text = " ".join(filter(None, (_name(engine), engine.get("version"))))
    if workers := engine.get("workers"):
        text += f", {_counted(workers, 'worker')}"
        if threads := engine.get("threads_per_worker"):
            text += f" of {_counted(threads, 'thread')}"
    return text


def engine_names(engines: Engines) -> str:
    """The same without details, each engine once.

    >>> engine_names([{"name": "ray", "workers": 2}, {"name": "local"}, {"name": "ray"}])
    'Ray, local'
    """
    return ", ".join(dict.fromkeys(map(_name, engines)))


def speed_text(info: RunInfo | None, workers: int, tokens_per_second: float | None) -> str:
    """How fast a run goes, and by how many workers unless it is this process alone.

    >>> speed_text(None, 1, 1234.5), speed_text(None, 2, None), speed_text(None, 0, None)
    ('1,234 tokens/s', '2 workers', 'workers are starting')
    """
    speed = f"{three_digits(tokens_per_second)} tokens/s" if tokens_per_second else ""
    elsewhere = info is not None and info.engines and info.engines[-1]["name"] != "local"
    by = _counted(workers, "worker") if elsewhere or workers > 1 else ""
    if not workers:
        by = "workers are starting"
    return ", ".join(filter(None, (speed, by)))


def _name(engine: Mapping[str, Any]) -> str:
    return _NAMES.get(engine["name"], engine["name"])


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def change_text(summary: Summary) -> str:
    """By how much the metric changes; blank where there is no second model."""
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
    """The verdict and what the two models differ in, in words."""
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


# What a figure means, for those who hover over one or reach it by keyboard: templates name it by
# its key.
EXPLANATIONS = {
    "word": "What the model puts in place of the mask; ## marks a piece that ends another word.",
    "token": "The piece of text that the model reads and writes, as its vocabulary spells it.",
    "id": "The number of the token in the model's vocabulary.",
    "rank": "Place among all tokens of the vocabulary; 1 is the most probable.",
    "word_rank": "Place of the word among all tokens; a word of several tokens has none.",
    "probability": "How much the model expects this word here; over all words it adds up to 100 %.",
    "word_probability": "Of the whole word: the product over its tokens, each given those before.",
    "loss": "Minus the logarithm of the probability (NLL): 0 if certain, more for a surprise.",
    "word_loss": "Minus the logarithm of the word's probability: the sum over its sub-tokens.",
    "cumulative": "Probability of this word and all better ones together.",
    "sub_tokens": "The tokens of the word, each with its share of the loss, given those before it.",
    "hidden_word": "The word behind the mask: what the model gives it, and what loss that costs.",
    "entropy": "How undecided the model is: the loss that it expects; 0 if it is sure of one word.",
    "perplexity": "As undecided as among so many equally probable words: e to the entropy in nats.",
    "vocabulary": "How many different tokens the model can put here.",
    "joint_rank": "Place among the fillings found; 1 is the most probable.",
    "joint_probability": "Of all masks filled like this together: the product of the factors.",
    "joint_loss": "Minus the logarithm of the joint probability: the sum of the factors.",
    "factors": "Loss of each word, given the words before it in this list.",
    "kl": "KL(A‖B): what is lost where B's probabilities stand in for A's; 0 if they are the same.",
    "jensen_shannon": "How far the two are apart, either way: 0 if they are equal, at most ln 2.",
    "two_entropies": "How undecided A is, then B: the loss that each expects.",
    "points": "Probability under B less that under A, in points of a hundred.",
    "rank_change": "Places among all words: ▲ B puts the word higher than A does, ▼ lower.",
    "cross_entropy": "Cross-entropy with what was there: −ln of the share that the true word got.",
    "variant_size": "Of the weights on disk; below it, how many times that of the model itself.",
    "variant_speed": "Of an evaluation of many texts; below it, how many times the model's own.",
    "variant_sentence": "Time to fill one mask of a short sentence; half of the calls took longer.",
    "variant_loss": "Mean loss of a hidden token, the cross-entropy: how surprised the model is.",
    "variant_change": "How much larger the loss is than the model's own; the interval pairs texts.",
    "variant_verdict": "Pass: interval below +5 %; at risk: below +10 %; across: too few texts.",
    "variant_agreement": "Share of the hidden tokens where both have the same best guess.",
    "variant_kl": "How far its distributions are from the model's, on average; 0 if equal.",
    "snr": "Signal-to-noise ratio of the numbers: 6 dB less for each bit that is lost.",
    "snr_usual": "The middle one of the parts that are stored alike; far below it, look closer.",
    "snr_activations": "Of what the part yields on texts; it carries the noise of parts before it.",
    "recovered": "Mean loss less that with this one part in full precision, on the same tokens.",
    "precision": "How the weights are stored; float16 weights are computed with as float32.",
}


def as_unsure(perplexity: float) -> str:
    """A perplexity in words.

    >>> as_unsure(6.2), as_unsure(1.1)
    ('as unsure as among 6 equal words', 'nearly sure of one word')
    """
    return (
        f"as unsure as among {perplexity:,.0f} equal words"
        if perplexity >= 1.5
        else ("nearly sure of one word")
    )
