"""What variants of a model cost and save: loss, size and speed beside the model itself.

Definition: each variant is evaluated with the model it was made from as its baseline, on identical
hidden tokens, exactly as `fillmask-ui eval VARIANT --baseline MODEL` does it: the same rows, the
same interval, the same verdict. Speeds are medians of runs in which the two take turns, so that a
machine that slows down slows both; each row carries the baseline's speeds of those turns.

Rivals: speeds of separate runs differ by what else the machine does; a loss without its baseline
on the same masks differs by the masks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from math import isfinite
from statistics import median
from typing import Any

from fillmask_ui.bench.timing import evaluation_timing, sentence, timed
from fillmask_ui.evaluation import (
    EvaluatedText,
    EvaluationConfig,
    Heartbeat,
    RunningSummary,
    Summary,
    TokenExample,
    check_models,
    evaluate,
)
from fillmask_ui.evaluation.catalogue import interval_list
from fillmask_ui.evaluation.summary import UNCHANGED_ALARM
from fillmask_ui.filling import fill
from fillmask_ui.intervals import Interval, Limits
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Example, ModelSignature, finite

BASELINE = "baseline"  # the scheme of the row that is the model itself
SENTENCE_TOKENS = (32, 16, 8)  # of the sentence that is timed: the first that the texts give
# So many texts are timed, in so many turns; and so many turns of so many calls of the sentence.
_TIMED_TEXTS, _TURNS = 24, 3
_SENTENCE_TURNS, _CALLS = 5, 6
_EXAMPLE_CHARACTERS = 400


@dataclass(frozen=True, eq=False)
class Subject:
    """A loaded model that is to have a row."""

    scheme: str  # that made it
    model: MaskedLM
    reference: str  # that loads it


@dataclass(frozen=True)
class Stamp:
    """What quantized numbers depend on beside the weights: they differ by CPU and by fusion."""

    cpu_features: tuple[str, ...]
    runtime: str  # `onnx` or `torch`, with its version
    graph_optimization: str  # of ONNX Runtime
    precision: str  # of the stored weights
    sha256: str  # of the weights
    x64_quant_precision: str = "auto"  # of ONNX Runtime: whether products of bytes never saturate

    @classmethod
    def of(cls, signature: ModelSignature) -> Stamp:
        """The stamp that a signature holds."""
        library = "onnxruntime" if signature.runtime == "onnx" else signature.runtime
        version = signature.versions.get(library, "")
        return cls(
            tuple(signature.cpu_features),
            f"{library} {version}".strip(),
            _noted(signature, "graph optimization", "all"),
            signature.precision,
            signature.sha256,
            _noted(signature, "x64 quant precision", "auto"),
        )


def _noted(signature: ModelSignature, name: str, plain: str) -> str:
    """An option of the runtime, which notes name where it is not as by default."""
    own = (note.removeprefix(f"{name}: ") for note in signature.notes if note.startswith(name))
    return next(own, plain)


@dataclass(frozen=True)
class VariantFigures:
    """One row: what a model is and does, beside the baseline on identical masks."""

    scheme: str  # that made it; `baseline` for the model itself
    reference: str  # that loads it
    size_bytes: int  # of its weights on disk
    ratio: float  # of its size to the baseline's
    tokens_per_second: float  # of an evaluation, the median of the turns
    baseline_tokens_per_second: float  # of the baseline in the same turns
    sentence_ms: float | None  # median of `fill` of one sentence; None where texts give no sentence
    baseline_sentence_ms: float | None  # of the baseline in the same turns
    mean_nll_nats: float  # token average; the cross-entropy
    interval: Interval | None  # of the mean
    relative_change: float  # of the metric, against the baseline; 0.03 is 3 % worse
    change_interval: Interval | None  # of it, paired
    verdict: str  # PASS, AT_RISK, REGRESSION or INCONCLUSIVE; blank for the baseline
    top1_agreement: float | None  # share of equal best guesses; None for different tokenizers
    kl_nats: float | None  # mean KL(variant || baseline); None for different tokenizers
    texts: int  # measured
    measured: str  # signature of masks and texts: rows with the same one compare
    stamp: Stamp
    alarms: tuple[str, ...] = ()  # what a reader must know, in words
    # A measured text with `[MASK]` at the word whose losses differ most; blank where there is none
    example: str = ""

    @property
    def speedup(self) -> float:
        """How many times the baseline's tokens per second."""
        return self.tokens_per_second / self.baseline_tokens_per_second

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values; None for what is infinite or undefined."""
        return finite(
            {
                **asdict(self),
                "interval": self.interval and asdict(self.interval),
                "mean_nll_interval_95": interval_list(self.interval),
                "relative_change_interval_95": interval_list(self.change_interval),
                "speedup": self.speedup,
            }
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> VariantFigures:
        """The inverse of `to_dict`; a value that is missing is a `KeyError`."""
        own = {entry.name: values[entry.name] for entry in fields(cls)}
        for name in ("interval", "change_interval"):
            own[name] = own[name] and Interval(**own[name])
        for name in ("mean_nll_nats", "relative_change"):
            own[name] = float("inf") if own[name] is None else own[name]
        stamp = dict(own["stamp"])
        stamp["cpu_features"] = tuple(stamp["cpu_features"])
        return cls(**{**own, "stamp": Stamp(**stamp), "alarms": tuple(own["alarms"])})


@dataclass(frozen=True)
class Measuring:
    """How far the measuring is."""

    message: str
    fraction: float | None  # part done of all rows, in [0, 1]; None where it is not known


def measure(
    baseline: Subject,
    variants: Iterable[Subject],
    texts: Sequence[Example | str],
    config: EvaluationConfig | None = None,
    *,
    limits: Limits | None = None,
    total: int | None = None,
) -> Generator[Measuring | VariantFigures]:
    """A row for the baseline, then one per variant, each as soon as it is measured.

    Args:
        baseline: the model that the variants were made from; its scheme is not read.
        variants: each is taken when it is its turn, so that a generator which loads them keeps
            two models in memory.
        texts: read several times; plain strings are numbered from 0.
        config: what is measured; cross-entropy by default.
        limits: borders of the verdict.
        total: how many variants there are, for the progress; None for their length.

    Raises:
        OptionError: if the config asks for what the models cannot give.
        DataError: if no text could be measured.
        ModelOutputError: if a model returns NaN.
    """
    count = total if total is not None else len(variants) if isinstance(variants, Sequence) else 0
    steps = (subject for group in ([baseline], variants) for subject in group)
    for number, subject in enumerate(steps):
        own = None if number == 0 else subject
        for step in measure_one(baseline, own, texts, config, limits=limits):
            if isinstance(step, VariantFigures) or step.fraction is None:
                yield step
            else:
                share = (number + step.fraction) / (1 + count) if count else None
                yield Measuring(step.message, share)


def measure_one(
    baseline: Subject,
    variant: Subject | None,
    texts: Sequence[Example | str],
    config: EvaluationConfig | None = None,
    *,
    limits: Limits | None = None,
) -> Generator[Measuring | VariantFigures]:
    """The row of one variant, or of the baseline itself where there is none; as `measure`."""
    base = baseline.model
    subject = variant or replace(baseline, scheme=BASELINE)
    model = subject.model
    other = base if variant is not None else None
    config = check_models(model, other, config or EvaluationConfig())
    running = RunningSummary(
        config=config, vocabulary_size=model.signature.vocabulary_size, limits=limits
    )
    for row in evaluate(model, texts, config, baseline=other, heartbeat=True):
        if isinstance(row, Heartbeat):
            # The speeds take about as long as a quarter of the rest.
            yield Measuring(f"Measuring {subject.scheme}…", 0.8 * row.texts / len(texts))
        else:
            running.add(row)
    summary = running.summary()
    yield Measuring(f"Timing {subject.scheme}…", 0.8)
    pair = [model] if other is None else [model, other]
    speeds = yield from _speeds(pair, texts, config, f"Timing {subject.scheme}…")
    own, first = speeds[0], speeds[-1]
    yield VariantFigures(
        scheme=subject.scheme,
        reference=subject.reference,
        size_bytes=model.signature.size_bytes,
        ratio=model.signature.size_bytes / base.signature.size_bytes,
        tokens_per_second=own.tokens_per_second,
        baseline_tokens_per_second=first.tokens_per_second,
        sentence_ms=own.sentence_ms,
        baseline_sentence_ms=first.sentence_ms,
        texts=summary.texts,
        measured=measured_signature(config, texts),
        stamp=Stamp.of(model.signature),
        alarms=tuple(alarm for alarm in summary.alarms if alarm != UNCHANGED_ALARM),
        **_losses(summary),
    )


def _losses(summary: Summary) -> dict[str, Any]:
    """The fields that the evaluator knows."""
    pair = summary.comparison
    return {
        "mean_nll_nats": summary.model.mean_nll_nats,
        "interval": summary.model.interval,
        "relative_change": pair.relative_change if pair else 0.0,
        "change_interval": pair.interval if pair else None,
        "verdict": pair.verdict.label if pair else "",
        "top1_agreement": pair.agreement if pair else 1.0,
        "kl_nats": pair.mean_kl_nats if pair else 0.0,
        "example": next(filter(None, map(_with_mask, summary.most_different)), ""),
    }


def _with_mask(token: TokenExample) -> str:
    """The sentence of a token with `[MASK]` in its place; blank for a part of a word."""
    left, word = token.text[: token.start], token.text[token.start : token.end]
    right = token.text[token.end :]
    blank = word[: len(word) - len(word.lstrip())]  # some tokenizers count it to the word
    joined = (left + blank)[-1:].isalnum() or right[:1].isalnum()
    short = len(token.text) <= _EXAMPLE_CHARACTERS
    return f"{left}{blank}[MASK]{right}" if short and word.strip() and not joined else ""


@dataclass(frozen=True)
class _Speed:
    """Medians of one model."""

    tokens_per_second: float
    sentence_ms: float | None


def _speeds(
    models: Sequence[MaskedLM],
    texts: Sequence[Example | str],
    config: EvaluationConfig,
    message: str,
) -> Generator[Measuring, None, list[_Speed]]:
    """The speeds of models that take turns, in their order; caches are warm by now."""
    # Evenly spread, so that their lengths are those of all texts.
    timed_texts = texts[:: max(1, len(texts) // _TIMED_TEXTS)][:_TIMED_TEXTS]
    plain = [text if isinstance(text, str) else text.text for text in texts]
    vocabulary = models[0].vocabulary
    lengths = [n for n in SENTENCE_TOKENS if n <= min(model.max_tokens for model in models)]
    found = (sentence(vocabulary, plain, tokens) for tokens in lengths)
    text = next(filter(None, found), None)
    rates: list[list[float]] = [[] for _ in models]
    waits: list[list[float]] = [[] for _ in models]
    for turn in range(_TURNS):
        yield Measuring(message, 0.8 + 0.15 * turn / _TURNS)
        for model, own in zip(models, rates, strict=True):
            own.append(_rate(model, timed_texts, config))
    yield Measuring(message, 0.95)
    for model, own in [*zip(models, waits, strict=True)] * (_SENTENCE_TURNS if text else 0):
        # The first call of a turn finds the caches of the other model.
        own.extend(timed(partial(fill, model, text or "", top_k=5), 1 + _CALLS)[0][1:])
    return [
        _Speed(median(rate), 1000 * median(wait) if wait else None)
        for rate, wait in zip(rates, waits, strict=True)
    ]


def _rate(model: MaskedLM, texts: Sequence[Example | str], config: EvaluationConfig) -> float:
    """Tokens per second of an evaluation, as `bench` counts them."""

    def run() -> list[tuple[int, int]]:
        rows = evaluate(model, texts, config)
        return [(len(row.ids), len(row.cols)) for row in rows if isinstance(row, EvaluatedText)]

    seconds, sizes = timed(run, 1)
    timing = evaluation_timing(seconds, 0.0, sizes, config.metric.name, None)
    return timing.amount / timing.seconds[0]


def measured_signature(config: EvaluationConfig, texts: Sequence[Example | str]) -> str:
    """What has to be equal for two rows to compare: the metric, its masks and the texts."""
    digest = hashlib.sha256()
    for index, text in enumerate(texts):
        own = Example(index, text) if isinstance(text, str) else text
        digest.update(f"{own.id}\0{len(own.text)}\0".encode())
        digest.update(own.text.encode("utf-8", "surrogatepass"))
    return f"{config.signature}|texts:{len(texts)}|sha256:{digest.hexdigest()[:12]}"


def frontier(costs: Sequence[float], losses: Sequence[float]) -> list[int]:
    """The Pareto frontier of a cost and a loss, both the lower the better.

    A point is on it unless another is at most as large in both and smaller in one. Points that
    are equal in both are all on it.

    Args:
        costs: [N], such as bytes or milliseconds; of a speed give the negative.
        losses: [N], such as the mean NLL in nats. A pair with NaN or an infinite value is on no
            frontier.

    Returns:
        Places in the lists, by growing cost.

    Raises:
        ValueError: if the two have different lengths.

    Source:
        Pareto efficiency; the sweep is that of Kung, Luccio and Preparata 1975, "On finding the
        maxima of a set of vectors", for two dimensions.

    >>> frontier([88, 45, 23, 30], [2.40, 2.40, 2.47, 2.60])  # megabytes, nats
    [2, 1]
    """
    points = list(zip(costs, losses, strict=True))
    usable = [place for place, point in enumerate(points) if all(map(isfinite, point))]
    found: list[int] = []
    for place in sorted(usable, key=lambda own: points[own]):
        best = points[found[-1]] if found else None
        if best is None or points[place][1] < best[1] or points[place] == best:
            found.append(place)
    return found
