"""What variants of a model cost and save: loss, size and speed beside the model itself.

Definition: each variant is evaluated with the model it was made from as its baseline, exactly as
`fillmask-ui eval VARIANT --baseline MODEL` does it. For its speed the two take turns: it is the
median of the ratios of their times, with an interval.

Rivals: a ratio of medians, or speeds of separate runs, vary with the load of the machine; a loss
without its baseline on the same masks varies with the masks.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import median
from typing import Annotated, Any

from fillmask_ui.evaluation import EvaluatedText, EvaluationConfig, RunningSummary, Summary
from fillmask_ui.evaluation.alarms import UNCHANGED_ALARM
from fillmask_ui.evaluation.catalogue import interval_list
from fillmask_ui.evaluation.measure import Heartbeat, check_models, evaluate
from fillmask_ui.evaluation.rows import TokenExample
from fillmask_ui.features.quantize.timing import PairedTimes, paired_times, sentence, timed
from fillmask_ui.filling import fill
from fillmask_ui.intervals import Interval
from fillmask_ui.models.runtimes import RUNTIMES
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Example, InJson, ModelSignature, Progress, finite

BASELINE = "baseline"  # the scheme of the row that is the model itself
SENTENCE_TOKENS = (32, 16, 8)  # of the sentence that is timed: the first that the texts give
_ROUNDS = 9  # the fewest whose interval leaves out the slowest and the fastest
_TIMED_TEXTS, _CALLS = 16, 4  # of a round
_EXAMPLE_CHARACTERS = 400


@dataclass(frozen=True, eq=False)
class MeasuredModel:
    """A loaded model to measure."""

    scheme: str  # that made it
    model: MaskedLM
    reference: str  # that loads it


@dataclass(frozen=True)
class Stamp:
    """What quantized numbers depend on beside the weights."""

    cpu_features: tuple[str, ...]
    runtime: str  # `onnxruntime` or `torch`, with its version
    graph_optimization: str  # of ONNX Runtime
    precision: str  # of the stored weights
    sha256: str  # of the weights
    x64_quant_precision: str  # of ONNX Runtime: whether products of bytes never saturate

    @classmethod
    def of(cls, signature: ModelSignature) -> Stamp:
        runtime = RUNTIMES.get(signature.runtime)
        library = runtime.package if runtime else signature.runtime
        version = signature.versions.get(library, "")
        return cls(
            tuple(signature.cpu_features),
            f"{library} {version}".strip(),
            signature.settings.get("graph-optimization", "all"),
            signature.precision,
            signature.sha256,
            signature.settings.get("x64-quant-precision", "auto"),
        )


# JSON has no infinity.
_Loss = Annotated[float, InJson(lambda loss: math.inf if loss is None else loss, float | None)]


@dataclass(frozen=True)
class VariantFigures:
    """One row: what a model is and does, beside the baseline on identical masks."""

    scheme: str  # that made it; `baseline` for the model itself
    reference: str  # that loads it
    size_bytes: int  # of its weights on disk
    ratio: float  # of its size to the baseline's
    token_times: PairedTimes  # of a token of an evaluation
    sentence_times: PairedTimes | None  # of `fill` of a sentence; None if texts give no sentence
    mean_nll_nats: _Loss  # token average; the cross-entropy
    interval: Interval | None  # of the mean
    relative_change: _Loss  # of the metric, against the baseline; 0.03 is 3% worse
    change_interval: Interval | None  # of it, paired
    verdict: str  # PASS, AT_RISK, REGRESSION or INCONCLUSIVE; blank for the baseline
    top1_agreement: float | None  # share of equal best guesses; None for different tokenizers
    kl_nats: float | None  # mean KL(variant || baseline); None for different tokenizers
    texts: int  # measured
    measured: str  # signature of masks and texts: rows with the same one compare
    stamp: Stamp
    alarms: tuple[str, ...]  # what a reader must know, in words
    example: str  # a text with `[MASK]` at the word whose losses differ most; blank for none

    @property
    def smaller(self) -> bool:
        """Whether the ratio of sizes, as printed, is below 1."""
        return round(self.ratio, 2) < 1

    @property
    def better(self) -> bool:
        """Whether the whole interval of the change, as printed, lies below 0."""
        return self.change_interval is not None and round(self.change_interval.high, 4) < 0

    @property
    def busy(self) -> bool:
        """Whether the machine did other things while this was timed."""
        return any(times.busy for times in (self.token_times, self.sentence_times) if times)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values, null for what is infinite; `schema` reads them."""
        return finite(
            {
                **asdict(self),
                "mean_nll_interval_95": interval_list(self.interval),
                "relative_change_interval_95": interval_list(self.change_interval),
                "speedup": self.token_times.speedup,
                "speedup_interval_95": interval_list(self.token_times.interval),
                "busy": self.busy,
            }
        )


def measure_variant(
    baseline: MeasuredModel, variant: MeasuredModel | None, texts: Sequence[Example]
) -> Generator[Progress | VariantFigures]:
    """The cross-entropy, size and speed of a variant beside its baseline; the row comes last.

    Without a variant, the row of the baseline itself. A DataError if no text could be measured.
    """
    base = baseline.model
    name = variant.scheme if variant is not None else "the model itself"
    subject = variant or replace(baseline, scheme=BASELINE)
    model = subject.model
    reference_model = base if variant is not None else None
    candidate = model if variant is not None else None
    config = check_models(model, reference_model, EvaluationConfig())
    running = RunningSummary(config=config, vocabulary_size=model.signature.vocabulary_size)
    for row in evaluate(base, texts, config, candidate=candidate, heartbeat=True):
        if isinstance(row, Heartbeat):
            # Timing takes about a quarter as long as this.
            yield Progress(f"Measuring {name}…", 0.8 * row.texts / len(texts))
        else:
            running.add(row)
    summary = running.summary()
    pair = [model] if reference_model is None else [model, reference_model]
    message = f"Timing {name}…"
    # Evenly spread, so that their lengths are those of all texts.
    timed_texts = texts[:: max(1, len(texts) // _TIMED_TEXTS)][:_TIMED_TEXTS]
    token_seconds = partial(_token_seconds, texts=timed_texts, config=config)
    token_times = yield from _time_in_turns(pair, token_seconds, message, 0.8)
    sentence_times = None
    if text := _timed_sentence(pair, texts):
        sentence_seconds = partial(_sentence_seconds, text=text)
        sentence_times = yield from _time_in_turns(pair, sentence_seconds, message, 0.9)
    comparison = summary.comparison
    yield VariantFigures(
        scheme=subject.scheme,
        reference=subject.reference,
        size_bytes=model.signature.size_bytes,
        ratio=model.signature.size_bytes / base.signature.size_bytes,
        token_times=token_times,
        sentence_times=sentence_times,
        mean_nll_nats=summary.model.mean_nll_nats,
        interval=summary.model.interval,
        relative_change=comparison.relative_change if comparison else 0.0,
        change_interval=comparison.interval if comparison else None,
        verdict=comparison.verdict.label if comparison else "",
        top1_agreement=comparison.agreement if comparison else 1.0,
        kl_nats=comparison.mean_kl_nats if comparison else 0.0,
        texts=summary.texts,
        # Rows with the same metric, masks and texts compare.
        measured=f"{config.signature}|texts:{len(texts)}|sha256:{texts_sha256(texts)[:12]}",
        stamp=Stamp.of(model.signature),
        alarms=alarms_of(summary),
        example=_example(summary.most_different),
    )


def alarms_of(summary: Summary) -> tuple[str, ...]:
    """The alarms of a summary without that on unchanged tokens, which all variants share."""
    return tuple(alarm for alarm in summary.alarms if alarm != UNCHANGED_ALARM)


def _example(tokens: Iterable[TokenExample]) -> str:
    """The first of the tokens that can be masked as a whole word, in its text; else blank."""
    for token in tokens:
        if text := _with_mask(token):
            return text
    return ""


def _with_mask(token: TokenExample) -> str:
    """The sentence of a token with `[MASK]` in its place; blank for a part of a word."""
    left, word = token.text[: token.start], token.text[token.start : token.end]
    right = token.text[token.end :]
    blank = word[: len(word) - len(word.lstrip())]  # some tokenizers count it to the word
    joined = (left + blank)[-1:].isalnum() or right[:1].isalnum()
    short = len(token.text) <= _EXAMPLE_CHARACTERS
    return f"{left}{blank}[MASK]{right}" if short and word.strip() and not joined else ""


def _time_in_turns(
    models: Sequence[MaskedLM], seconds: Callable[[MaskedLM], float], message: str, begin: float
) -> Generator[Progress, None, PairedTimes]:
    """Time the first model and the last one in turns; caches are warm by now."""
    times: list[list[float]] = [[] for _ in models]
    for round_number in range(_ROUNDS):
        yield Progress(message, begin + 0.1 * round_number / _ROUNDS)
        for model, model_times in zip(models, times, strict=True):
            model_times.append(seconds(model))
    return paired_times(times[0], times[-1])


def _token_seconds(model: MaskedLM, texts: Sequence[Example], config: EvaluationConfig) -> float:
    """Of an evaluation, for each token of its texts."""
    (seconds,), rows = timed(lambda: list(evaluate(model, texts, config)), 1)
    return seconds / sum(len(row.ids) for row in rows if isinstance(row, EvaluatedText))


def _sentence_seconds(model: MaskedLM, text: str) -> float:
    # The first call of a round finds the caches of the other model.
    return median(timed(partial(fill, model, text, top_k=5), 1 + _CALLS)[0][1:])


def _timed_sentence(models: Sequence[MaskedLM], texts: Sequence[Example]) -> str | None:
    """A sentence of the texts for the clock; None if they give none."""
    plain = [text.text for text in texts]
    most = min(model.max_tokens for model in models)
    for tokens in SENTENCE_TOKENS:
        if text := sentence(models[0].vocabulary, plain, tokens, most):
            return text
    return None


def busy_text(names: Sequence[str]) -> str:
    """A remark that the times of these models vary too much between rounds."""
    return (
        f"this machine was busy while it timed {', '.join(names)}: times varied by more "
        "than a quarter between rounds. Measure again when nothing else runs"
    )


def texts_sha256(texts: Sequence[Example]) -> str:
    """Hash of texts with their ids."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(f"{text.id}\0{len(text.text)}\0".encode())
        digest.update(text.text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def frontier(costs: Sequence[float], losses: Sequence[float]) -> list[int]:
    """The indices of points on the Pareto frontier of a cost and a loss [N], by growing cost.

    A point is on it unless another is at most as large in both and smaller in one. Equal points
    are all on it; those with NaN or infinity never are. For a speed, give the negative.

    Source:
        Pareto efficiency; the sweep is that of Kung, Luccio and Preparata 1975, "On finding the
        maxima of a set of vectors", for two dimensions.

    >>> frontier([88, 45, 23, 30], [2.40, 2.40, 2.47, 2.60])  # megabytes, nats
    [2, 1]
    """
    points = list(zip(costs, losses, strict=True))
    finite_points = [index for index, point in enumerate(points) if all(map(math.isfinite, point))]
    best: list[int] = []
    for index in sorted(finite_points, key=lambda index: points[index]):
        last = points[best[-1]] if best else None
        if last is None or points[index][1] < last[1] or points[index] == last:
            best.append(index)
    return best


def worth_having(rows: Sequence[VariantFigures], against: str) -> list[int]:
    """The indices of rows on the frontier of `size` or `speed` and loss, by growing cost.

    A variant that costs no less than its baseline is there only if its loss is certainly lower: a
    tie, such as one of the same size whose loss differs by rounding, is no gain.
    """
    by_size = against == "size"
    indices = []
    for index, row in enumerate(rows):
        cheaper = row.smaller if by_size else row.token_times.faster
        if row.scheme == BASELINE or cheaper or row.better:
            indices.append(index)
    gaining = [rows[index] for index in indices]
    costs = [row.size_bytes if by_size else -row.token_times.speedup for row in gaining]
    best = frontier(costs, [row.mean_nll_nats for row in gaining])
    return [indices[point] for point in best]
