"""How far a mean loss can be trusted: draws of masks, number of texts, and models as pairs."""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluatedText, EvaluationConfig, Summary, evaluate, summarize
from fillmask_ui.evaluation.metrics.metric import exp
from fillmask_ui.evaluation.summary import GroupFigures, ModelFigures
from fillmask_ui.intervals import Interval, ratio_interval
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Example

IMPOSSIBLE = (
    "the model calls a token impossible, so that its mean loss is infinite and has no interval: "
    "choose another model"
)
SEEDS = tuple(range(1, 21))
COUNTS = (5, 10, 20, 40, 80, 160)  # of texts
CountReport = Callable[[int], None]  # how many texts or passes are done
Element = TypeVar("Element")


def counted(elements: Iterable[Element], report: CountReport) -> Iterator[Element]:
    """The same, with the number done told after each."""
    for done, element in enumerate(elements, 1):
        yield element
        report(done)


# ---- Draws of masks


@dataclass(frozen=True)
class SeedMeans:
    """One model on the same texts: masks drawn S times, and every token hidden once."""

    seeds: dict[int, ModelFigures]  # by seed: the evaluator's answers, S of them, at least two
    mean_nats: float  # of the S answers
    spread_nats: float  # their standard deviation
    shown_as: dict[str, float]  # mean loss in nats by what the model saw, all seeds together
    pseudo_nll_nats: float  # mean loss of every token, each hidden alone


def means_over_seeds(
    model: MaskedLM,
    texts: Sequence[Example],
    *,
    seeds: Sequence[int] = SEEDS,
    on_pass: CountReport = lambda _: None,
) -> SeedMeans:
    """Evaluate the texts once for every seed, and by pseudo-perplexity: `len(seeds) + 1` passes.

    A `DataError` if a seed chooses no token at all, or the model calls one impossible.
    """
    configs = [
        *(EvaluationConfig(seed=seed) for seed in seeds),
        EvaluationConfig("pseudo-perplexity"),
    ]
    *figures, pseudo = (
        summarize(evaluate(model, texts, config)).model for config in counted(configs, on_pass)
    )
    means = [of_seed.mean_nll_nats for of_seed in figures]
    if not all(map(math.isfinite, [pseudo.mean_nll_nats, *means])):
        raise DataError(IMPOSSIBLE)
    groups: dict[str, list[GroupFigures]] = defaultdict(list)
    for group in (group for of_seed in figures for group in of_seed.by_kind):
        groups[group.name].append(group)
    shown_as = {
        name: math.fsum(group.tokens * group.mean_nll_nats for group in of_kind)
        / sum(group.tokens for group in of_kind)
        for name, of_kind in groups.items()
    }
    by_seed = dict(zip(seeds, figures, strict=True))
    mean, spread = statistics.fmean(means), statistics.stdev(means)
    return SeedMeans(by_seed, mean, spread, shown_as, pseudo.mean_nll_nats)


# ---- The number of texts


def text_losses(
    model: MaskedLM, texts: Sequence[Example], *, on_text: CountReport = lambda _: None
) -> list[EvaluatedText]:
    """The first 160 texts that the evaluator can measure; a `DataError` if fewer than five."""
    evaluated_rows = counted(evaluate(model, texts), on_text)
    rows = [row for row in evaluated_rows if isinstance(row, EvaluatedText)]
    if len(rows) < min(COUNTS):
        raise DataError(
            f"{model.signature.name} could measure {len(rows)} of {len(texts)} texts and at least "
            f"{min(COUNTS)} are wanted: choose another model"
        )
    order_by_id = {text.id: index for index, text in enumerate(texts)}
    return sorted(rows, key=lambda row: order_by_id[row.id])[: COUNTS[-1]]


@dataclass(frozen=True)
class MeanOfTexts:
    """The mean loss of the first N texts and its 95% interval."""

    texts: int  # N
    mean_nll_nats: float
    interval: Interval
    expected_half_nats: float  # half its width, were it to shrink as 1 / sqrt(N)

    @property
    def half_nats(self) -> float:
        return (self.interval.high - self.interval.low) / 2


def means_by_count(rows: Sequence[EvaluatedText], order: int = 0) -> tuple[MeanOfTexts, ...]:
    """Means of the first 5, 10, 20, ... of at least five texts, and of all.

    `order` is the seed of their order, 0 for the given one. A `DataError` if a loss is infinite.
    """
    total = len(rows)
    places = np.random.default_rng(order).permutation(total) if order else np.arange(total)
    x = np.array([row.scores.nll_nats.sum() for row in rows])[places]  # float64 [N]
    n = np.array([float(len(row.cols)) for row in rows])[places]
    whole = _interval(x, n)
    means = []
    for count in [*(count for count in COUNTS if count < total), total]:
        mean = math.fsum(x[:count]) / n[:count].sum()
        expected = (whole.high - whole.low) / 2 * math.sqrt(total / count)
        means.append(MeanOfTexts(count, mean, _interval(x[:count], n[:count]), expected))
    return tuple(means)


def _interval(x: np.ndarray, n: np.ndarray) -> Interval:
    interval = ratio_interval(x, n)
    if interval is None:
        raise DataError(IMPOSSIBLE)
    return interval.not_below(0.0)


# ---- Two models on identical masks


@dataclass(frozen=True)
class PairedModels:
    """What is known of the difference of two models, with and without identical masks."""

    summary: Summary  # of the first against the second, text by text
    separate: Interval  # of the difference, as if each model had been measured by itself
    times_narrower: float  # width of this interval over that of the paired one


def compare_paired(
    model: MaskedLM,
    second: MaskedLM,
    texts: Sequence[Example],
    *,
    on_text: CountReport = lambda _: None,
) -> PairedModels:
    """Measure two models on the same masks.

    An `OptionError` if the tokenizers differ, a `DataError` if a loss is infinite.

    Source:
        Zou and Donner 2008, Statistics in Medicine 27:1693: distances from each mean to the ends
        of its interval add up as squares, as standard errors of independent means do.
    """
    summary = summarize(counted(evaluate(second, texts, candidate=model), on_text))
    comparison, candidate, baseline = summary.comparison, summary.model, summary.reference
    paired = comparison and comparison.difference_interval
    if not (comparison and baseline and paired and candidate.interval and baseline.interval):
        raise DataError(IMPOSSIBLE)
    candidate_mean, baseline_mean = candidate.mean_nll_nats, baseline.mean_nll_nats
    below = math.hypot(
        candidate_mean - candidate.interval.low, baseline.interval.high - baseline_mean
    )
    above = math.hypot(
        candidate.interval.high - candidate_mean, baseline_mean - baseline.interval.low
    )
    separate = Interval(
        candidate_mean - baseline_mean - below,
        candidate_mean - baseline_mean + above,
        candidate.interval.method,
    )
    width = paired.high - paired.low
    narrower = (separate.high - separate.low) / width if width else math.inf
    return PairedModels(summary, separate, narrower)


# ---- A published comparison


@dataclass(frozen=True)
class Change:
    """A loss beside the baseline's, in nats."""

    nll_nats: float
    baseline_nll_nats: float

    @property
    def relative_change(self) -> float:
        """0.03 is 3% worse."""
        return self.nll_nats / self.baseline_nll_nats - 1

    @property
    def difference_nats(self) -> float:
        return self.nll_nats - self.baseline_nll_nats

    @property
    def perplexity_factor(self) -> float:
        """Perplexity over that of the baseline: e^ of the difference."""
        return exp(self.difference_nats)


@dataclass(frozen=True)
class PublishedRow(Change):
    """One line of the table."""

    model: str
    printed_percent: float  # relative change, as printed: to one digit

    @property
    def as_printed(self) -> bool:
        """Whether the two losses give the printed change, to its last digit."""
        return math.isclose(round(100 * self.relative_change, 1), self.printed_percent)


# winml-cli, pull request 318: masked cross-entropy on 1,000 texts of WikiText-2, ONNX on an NPU
# against PyTorch. Losses and changes are copied as printed there, all else is computed here.
PUBLISHED = (
    PublishedRow(2.1625, 2.1032, "bert-base-uncased", 2.8),
    PublishedRow(1.5680, 1.5272, "xlm-roberta-base", 2.7),
    PublishedRow(1.2023, 1.1999, "xlm-roberta-large", 0.2),
    PublishedRow(1.9361, 1.9061, "roberta-base", 1.6),
    PublishedRow(1.9178, 1.9265, "roberta-large", -0.5),
    PublishedRow(1.8312, 1.8057, "bert-base-multilingual-uncased", 1.4),
    PublishedRow(1.9570, 1.8814, "bert-base-multilingual-cased", 4.0),
    PublishedRow(8.5174, 2.3718, "distilbert-base-uncased", 259.1),
)
