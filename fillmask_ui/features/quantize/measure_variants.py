"""What variants of a model cost and save: loss, size and speed beside the model itself.

Definition: each variant is evaluated with the model it was made from as its baseline, exactly as
`fillmask-ui eval VARIANT --baseline MODEL` does it. Speeds are medians of runs in which the two
take turns; each row carries the baseline's speeds of those turns.

Rivals: speeds of separate runs differ by what else the machine does; a loss without its baseline
on the same masks differs by the masks.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import median
from typing import Annotated, Any

from fillmask_ui.evaluation import EvaluatedText, EvaluationConfig, RunningSummary, Summary
from fillmask_ui.evaluation.catalogue import interval_list
from fillmask_ui.evaluation.measure import Heartbeat, check_models, evaluate
from fillmask_ui.evaluation.rows import TokenExample
from fillmask_ui.evaluation.summary import UNCHANGED_ALARM
from fillmask_ui.features.quantize.timing import sentence, timed
from fillmask_ui.filling import fill
from fillmask_ui.intervals import Interval
from fillmask_ui.models.runtimes import RUNTIMES
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Example, InJson, ModelSignature, Progress, finite

BASELINE = "baseline"  # the scheme of the row that is the model itself
SENTENCE_TOKENS = (32, 16, 8)  # of the sentence that is timed: the first that the texts give
_TIMED_TEXTS, _TURNS = 24, 3
_SENTENCE_TURNS, _CALLS = 5, 6  # turns of so many calls each
_EXAMPLE_CHARACTERS = 400


@dataclass(frozen=True, eq=False)
class Subject:
    """A loaded model to be measured."""

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
_Loss = Annotated[float, InJson(lambda own: math.inf if own is None else own, float | None)]


@dataclass(frozen=True)
class VariantFigures:
    """One row: what a model is and does, beside the baseline on identical masks."""

    scheme: str  # that made it; `baseline` for the model itself
    reference: str  # that loads it
    size_bytes: int  # of its weights on disk
    ratio: float  # of its size to the baseline's
    tokens_per_second: float  # of an evaluation
    baseline_tokens_per_second: float  # in the same turns
    sentence_ms: float | None  # of `fill` of one sentence; None if texts give no sentence
    baseline_sentence_ms: float | None  # in the same turns
    mean_nll_nats: _Loss  # token average; the cross-entropy
    interval: Interval | None  # of the mean
    relative_change: _Loss  # of the metric, against the baseline; 0.03 is 3 % worse
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
    def speedup(self) -> float:
        return self.tokens_per_second / self.baseline_tokens_per_second

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values, null for what is infinite; `schema` reads them."""
        return finite(
            {
                **asdict(self),
                "mean_nll_interval_95": interval_list(self.interval),
                "relative_change_interval_95": interval_list(self.change_interval),
                "speedup": self.speedup,
            }
        )


def measure_variant(
    baseline: Subject, variant: Subject | None, texts: Sequence[Example]
) -> Generator[Progress | VariantFigures]:
    """The cross-entropy, size and speed of a variant beside its baseline; the row comes last.

    Without a variant, the row of the baseline itself. A DataError if no text could be measured.
    """
    base = baseline.model
    named = variant.scheme if variant is not None else "the model itself"
    subject = variant or replace(baseline, scheme=BASELINE)
    model = subject.model
    other = base if variant is not None else None
    config = check_models(model, other, EvaluationConfig())
    running = RunningSummary(config=config, vocabulary_size=model.signature.vocabulary_size)
    for row in evaluate(model, texts, config, baseline=other, heartbeat=True):
        if isinstance(row, Heartbeat):
            # The speeds take about as long as a quarter of the rest.
            yield Progress(f"Measuring {named}…", 0.8 * row.texts / len(texts))
        else:
            running.add(row)
    summary = running.summary()
    pair = [model] if other is None else [model, other]
    speeds = yield from _speeds(pair, texts, config, f"Timing {named}…")
    compared = summary.comparison
    yield VariantFigures(
        scheme=subject.scheme,
        reference=subject.reference,
        size_bytes=model.signature.size_bytes,
        ratio=model.signature.size_bytes / base.signature.size_bytes,
        **speeds[0],
        **{f"baseline_{name}": value for name, value in speeds[-1].items()},
        mean_nll_nats=summary.model.mean_nll_nats,
        interval=summary.model.interval,
        relative_change=compared.relative_change if compared else 0.0,
        change_interval=compared.interval if compared else None,
        verdict=compared.verdict.label if compared else "",
        top1_agreement=compared.agreement if compared else 1.0,
        kl_nats=compared.mean_kl_nats if compared else 0.0,
        texts=summary.texts,
        # Rows with the same metric, masks and texts compare.
        measured=f"{config.signature}|texts:{len(texts)}|sha256:{texts_sha256(texts)[:12]}",
        stamp=Stamp.of(model.signature),
        alarms=alarms_of(summary),
        example=next(filter(None, map(_with_mask, summary.most_different)), ""),
    )


def alarms_of(summary: Summary) -> tuple[str, ...]:
    """The alarms of a summary without that on unchanged tokens, which all variants share."""
    return tuple(alarm for alarm in summary.alarms if alarm != UNCHANGED_ALARM)


def _with_mask(token: TokenExample) -> str:
    """The sentence of a token with `[MASK]` in its place; blank for a part of a word."""
    left, word = token.text[: token.start], token.text[token.start : token.end]
    right = token.text[token.end :]
    blank = word[: len(word) - len(word.lstrip())]  # some tokenizers count it to the word
    joined = (left + blank)[-1:].isalnum() or right[:1].isalnum()
    short = len(token.text) <= _EXAMPLE_CHARACTERS
    return f"{left}{blank}[MASK]{right}" if short and word.strip() and not joined else ""


def _speeds(
    models: Sequence[MaskedLM], texts: Sequence[Example], config: EvaluationConfig, message: str
) -> Generator[Progress, None, list[dict[str, Any]]]:
    """Fields of each model's figures: speeds in turns, in their order; caches are warm by now."""
    # Evenly spread, so that their lengths are those of all texts.
    timed_texts = texts[:: max(1, len(texts) // _TIMED_TEXTS)][:_TIMED_TEXTS]
    plain = [text.text for text in texts]
    most = min(model.max_tokens for model in models)
    found = (sentence(models[0].vocabulary, plain, tokens, most) for tokens in SENTENCE_TOKENS)
    text = next(filter(None, found), None)
    rates: list[list[float]] = [[] for _ in models]
    waits: list[list[float]] = [[] for _ in models]
    for turn in range(_TURNS):
        yield Progress(message, 0.8 + 0.15 * turn / _TURNS)
        for model, own in zip(models, rates, strict=True):
            own.append(_rate(model, timed_texts, config))
    yield Progress(message, 0.95)
    for model, own in [*zip(models, waits, strict=True)] * (_SENTENCE_TURNS if text else 0):
        # The first call of a turn finds the caches of the other model.
        own.extend(timed(partial(fill, model, text or "", top_k=5), 1 + _CALLS)[0][1:])
    return [
        {"tokens_per_second": median(rate), "sentence_ms": 1000 * median(wait) if wait else None}
        for rate, wait in zip(rates, waits, strict=True)
    ]


def _rate(model: MaskedLM, texts: Sequence[Example], config: EvaluationConfig) -> float:
    seconds, rows = timed(lambda: list(evaluate(model, texts, config)), 1)
    return sum(len(row.ids) for row in rows if isinstance(row, EvaluatedText)) / seconds[0]


def texts_sha256(texts: Sequence[Example]) -> str:
    """Hash of texts with their ids."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(f"{text.id}\0{len(text.text)}\0".encode())
        digest.update(text.text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def frontier(costs: Sequence[float], losses: Sequence[float]) -> list[int]:
    """The places of those on the Pareto frontier of a cost and a loss [N], by growing cost.

    A point is on it unless another is at most as large in both and smaller in one; equal points
    are all on it, those with NaN or infinity never. Of a speed give the negative.

    Source:
        Pareto efficiency; the sweep is that of Kung, Luccio and Preparata 1975, "On finding the
        maxima of a set of vectors", for two dimensions.

    >>> frontier([88, 45, 23, 30], [2.40, 2.40, 2.47, 2.60])  # megabytes, nats
    [2, 1]
    """
    points = list(zip(costs, losses, strict=True))
    usable = [place for place, point in enumerate(points) if all(map(math.isfinite, point))]
    found: list[int] = []
    for place in sorted(usable, key=lambda own: points[own]):
        best = points[found[-1]] if found else None
        if best is None or points[place][1] < best[1] or points[place] == best:
            found.append(place)
    return found
