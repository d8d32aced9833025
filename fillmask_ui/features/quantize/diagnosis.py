"""The records of a diagnosis, unrounded, worst parts first; and noise in dB.

The signal-to-noise ratio is 10 log10(sum w^2 / sum (w - w')^2), where w are the baseline's numbers
and w' the quantized ones. It is infinite where they are equal. Each bit less costs about 6 dB.

Source:
    Widrow and Kollar 2008, Quantization Noise, chapter 1.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation.catalogue import interval_list
from fillmask_ui.features.quantize.measure_variants import Stamp
from fillmask_ui.intervals import Interval
from fillmask_ui.options import check_options, option
from fillmask_ui.records import finite

# A part this far below the usual ratio of its kind of storage sticks out: parts of one quantizer
# differ by half of that, one bit less costs 6 dB, a scale that is wrong by a factor of 10 about 30.
STICKS_OUT_DB = 20.0
USUAL_DB = 40.0  # of activations in 8 bits, behind a first good pair of Q and DQ
EXACT_DB = 150.0  # stands for an infinite ratio where ratios are compared: float32 gives about 150


Run = Callable[[np.ndarray, np.ndarray], Mapping[str, np.ndarray]]  # ids, mask [B, T] -> values


def signal_and_noise(baseline: np.ndarray, quantized: np.ndarray) -> np.ndarray:
    """The sums of squares of signal and of noise, float64 [2], of two arrays of one shape."""
    signal = baseline.astype(np.float64).ravel()
    error = signal - quantized.astype(np.float64).ravel()
    return np.array([signal @ signal, error @ error])


def snr_db(sums: np.ndarray) -> float:
    """The ratio of `signal_and_noise`, which may be added up, in dB; -inf for noise alone.

    >>> snr_db(np.array([100.0, 1.0])), snr_db(np.array([1.0, 0.0]))
    (20.0, inf)
    """
    signal, noise = sums.tolist()
    if not noise:
        return math.inf
    return 10 * math.log10(signal / noise) if signal and math.isfinite(noise) else -math.inf


def activation_noise(
    quantized: Run, baseline: Run, values: Mapping[str, str], texts: Iterable[np.ndarray]
) -> dict[str, np.ndarray]:
    """The `signal_and_noise` of activations over texts (ids, int64 [T]), without padding.

    `values` maps names in the quantized graph to names in the baseline; those whose shapes differ
    are left out.
    """
    sums: dict[str, np.ndarray] = {}
    for ids in texts:
        batch, mask = ids[None], np.ones((1, len(ids)), np.int64)
        quantized_values, baseline_values = quantized(batch, mask), baseline(batch, mask)
        for name, baseline_name in values.items():
            noisy, exact = quantized_values.get(name), baseline_values.get(baseline_name)
            if noisy is None or exact is None or noisy.shape != exact.shape:
                continue
            if noisy.ndim > 2:  # [1, T, ...]: a graph of a fixed size was fed more than the text
                noisy, exact = noisy[:1, : len(ids)], exact[:1, : len(ids)]
            sums[name] = sums.get(name, 0.0) + signal_and_noise(exact, noisy)
    return sums


@dataclass(frozen=True)
class DiagnoseOptions:
    """What a diagnosis measures besides the numbers of the weights."""

    # Relative change of the mean loss against the baseline that may stay, 0.005 for 0.5%.
    budget: float = 0.005
    most: int = option(
        12,
        "Parts to measure in full precision, lowest SNR first; 0 for none.",
        metavar="N",
        least=0,
    )

    def __post_init__(self) -> None:
        check_options(self)
        if not 0 <= self.budget < math.inf:
            raise OptionError(f"the budget must be 0 or more, as in 0.5%; it was {self.budget:.1%}")


@dataclass(frozen=True)
class Restored:
    """The model with one part in full precision, compared on identical masks."""

    recovered_nats: float  # mean loss of the model less that with this part restored
    interval: Interval | None  # of it, paired by text
    bytes_added: int  # to the file; below 0 if the part was stored in it twice

    @property
    def significant(self) -> bool:
        return self.interval is not None and self.interval.low > 0

    @property
    def gain_per_byte(self) -> float:
        return self.recovered_nats / self.bytes_added if self.bytes_added > 0 else math.inf


@dataclass(frozen=True)
class PartNoise:
    """One part of the model in both files."""

    name: str  # in the baseline, see `onnx_tools.graph_parts`
    kind: str  # embedding, projection, product, bias or norm
    layer: int | None  # of the encoder; None outside
    shape: tuple[int, ...]
    stored: str  # element type of its numbers in the quantized file
    size_bytes: int  # in the quantized file
    baseline_bytes: int  # in the baseline's
    weight_snr_db: float  # signal-to-noise ratio of its numbers; infinite if they are equal
    usual_snr_db: float  # the median of parts that are stored alike
    activation_snr_db: float | None = None  # of what it yields on the texts
    # How far that lies below what its weights and the parts before it explain; infinite for NaN.
    activation_loss_db: float = 0.0
    restored: Restored | None = None  # None if it was not measured

    @property
    def below_usual_db(self) -> float:
        """How far its ratio lies below what its kind of storage usually gives."""
        return self.usual_snr_db - min(self.weight_snr_db, EXACT_DB)

    @property
    def sticks_out(self) -> bool:
        """Whether its numbers are far worse than those of parts that are stored alike."""
        return self.below_usual_db >= STICKS_OUT_DB

    @property
    def loses_activations(self) -> bool:
        """Whether activations are damaged in front of it, as by one bad pair of Q and DQ."""
        return self.activation_loss_db >= STICKS_OUT_DB

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; an infinite ratio is None, and `equal` tells it."""
        restored = self.restored and {
            "recovered_nats": self.restored.recovered_nats,
            "recovered_interval_95": interval_list(self.restored.interval),
            "bytes_added": self.restored.bytes_added,
            "significant": self.restored.significant,
        }
        flags = {
            "equal": math.isinf(self.weight_snr_db),
            "sticks_out": self.sticks_out,
            "loses_activations": self.loses_activations,
        }
        return {**asdict(self), "restored": restored, **flags}


@dataclass(frozen=True)
class LayerNoise:
    """One layer of the encoder, or what lies before or behind all of them."""

    label: str  # `layer 0`, `embeddings` or `head`
    weight_snr_db: float  # of all its numbers together
    size_bytes: int  # in the quantized file
    baseline_bytes: int
    hidden_snr_db: float | None = None  # of what the next layer reads; None if unknown


@dataclass(frozen=True)
class GreedyStep:
    """One more part in full precision, together with those before it."""

    name: str
    mean_nll_nats: float  # of the model with all parts so far
    relative_change: float  # of it against the baseline
    bytes_added: int  # by all parts so far


@dataclass(frozen=True)
class Greedy:
    """Parts that bring the loss under the budget, the best gain per byte first."""

    budget: float  # relative change that may stay
    steps: tuple[GreedyStep, ...]  # those that helped
    reached: bool  # whether the last one is under the budget
    tried: int  # parts that were to choose from

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(step.name for step in self.steps)

    def within(self, budget: float, change: float) -> Greedy:
        """The list for a larger budget, which is the beginning of this one.

        `change` is the relative change without any of them.
        """
        steps = []
        for step in self.steps:
            if change <= budget:
                break
            steps.append(step)
            change = step.relative_change
        return Greedy(budget, tuple(steps), change <= budget, self.tried)


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The results so far; the last one that `diagnose` yields is complete."""

    reference: str  # of the quantized model
    baseline: str
    parts: tuple[PartNoise, ...]  # matched ones, those that hurt first
    layers: tuple[LayerNoise, ...] = ()  # in order of depth
    only_in_model: tuple[str, ...] = ()  # parts of the quantized model without a partner
    only_in_baseline: tuple[str, ...] = ()
    texts: int = 0  # measured; 0 before the losses are known
    mean_nll_nats: float = math.nan  # of the quantized model
    baseline_nll_nats: float = math.nan
    relative_change: float = math.nan  # of the mean loss
    difference_nats: float = math.nan
    difference_interval: Interval | None = None  # paired by text
    greedy: Greedy | None = None
    measured: str = ""  # signature of masks and texts
    stamp: Stamp | None = None  # of the quantized model
    baseline_stamp: Stamp | None = None
    alarms: tuple[str, ...] = ()  # what a reader must know, in words
    notes: tuple[str, ...] = ()
    complete: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; None for what is infinite or not known."""
        values = asdict(self)
        values["parts"] = [part.to_dict() for part in self.parts]
        values.pop("difference_interval")
        values["difference_interval_95"] = interval_list(self.difference_interval)
        return finite({"model": values.pop("reference"), **values})


def worst_first(parts: Iterable[PartNoise]) -> tuple[PartNoise, ...]:
    """Those whose numbers or activations stick out, those whose restoring helps, then the rest.

    Numbers come first because some broken parts cost little on the texts at hand: attention does
    not see the bias of its keys at all.
    """

    def sort_key(part: PartNoise) -> tuple[bool, bool, float, float]:
        restored = part.restored
        gain = restored.recovered_nats if restored is not None and restored.significant else 0.0
        return not part.sticks_out, not part.loses_activations, -gain, -part.below_usual_db

    return tuple(sorted(parts, key=sort_key))


def add_usual_snr(parts: Sequence[PartNoise]) -> list[PartNoise]:
    """The parts with the median ratio of those stored alike: as matrices, or as single rows."""
    ratios = defaultdict[tuple[str, bool], list[float]](list)
    for part in parts:
        ratios[part.stored, len(part.shape) > 1].append(min(part.weight_snr_db, EXACT_DB))
    return [
        replace(part, usual_snr_db=median(ratios[part.stored, len(part.shape) > 1]))
        for part in parts
    ]


def activation_losses(parts: Iterable[PartNoise]) -> list[float]:
    """By how many dB each part's activations fall below their usual ratio, in the graph's order.

    That is the lowest ratio of the parts before it and of its weights, at most `USUAL_DB`: noise
    only builds up along a graph, by a few dB from part to part.
    """
    lowest, losses = USUAL_DB, []
    for part in parts:
        ratio = part.activation_snr_db
        if ratio is None:
            losses.append(0.0)
            continue
        losses.append(max(0.0, min(lowest, part.weight_snr_db) - ratio))
        lowest = min(lowest, ratio)
    return losses


def layer_labels(layers: Iterable[int | None]) -> list[str]:
    """What to call the layers of parts, which are in the order of the graph.

    >>> layer_labels([None, 0, 1, None])
    ['embeddings', 'layer 0', 'layer 1', 'head']
    """
    labels, outside = [], "embeddings"
    for layer in layers:
        if layer is not None:
            outside = "head"
        labels.append(outside if layer is None else f"layer {layer}")
    return labels


def noise_by_layer(
    parts: Sequence[PartNoise], sums: Sequence[np.ndarray]
) -> tuple[LayerNoise, ...]:
    """The layers in order of depth; parts and their sums are in the order of the graph."""
    indices = defaultdict[str, list[int]](list)
    for index, label in enumerate(layer_labels(part.layer for part in parts)):
        indices[label].append(index)
    return tuple(
        LayerNoise(
            label,
            weight_snr_db=snr_db(np.sum([sums[index] for index in members], axis=0)),
            size_bytes=sum(parts[index].size_bytes for index in members),
            baseline_bytes=sum(parts[index].baseline_bytes for index in members),
        )
        for label, members in indices.items()
    )
