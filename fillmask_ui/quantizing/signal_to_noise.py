"""The noise that a quantization adds, as signal-to-noise ratios in dB.

Definition: 10 log10(sum w^2 / sum (w - w')^2), w the baseline's numbers and w' those that stand for
them; infinite where they are equal. Each bit less costs about 6 dB.

Source:
    Widrow and Kollar 2008, Quantization Noise, chapter 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

Run = Callable[[np.ndarray, np.ndarray], Mapping[str, np.ndarray]]  # ids, mask [B, T] -> values


@dataclass
class Power:
    """The sums of a signal-to-noise ratio, which merge."""

    signal: float = 0.0
    noise: float = 0.0

    def add(self, wanted: np.ndarray, got: np.ndarray) -> None:
        """Count two arrays of one shape."""
        own = wanted.astype(np.float64).ravel()
        error = own - got.astype(np.float64).ravel()
        self.signal += float(own @ own)
        self.noise += float(error @ error)

    def merge(self, other: Power) -> None:
        self.signal += other.signal
        self.noise += other.noise

    @property
    def snr_db(self) -> float:
        """The ratio in dB; -inf for noise alone.

        >>> round(Power(100.0, 1.0).snr_db, 6), Power(1.0, 0.0).snr_db
        (20.0, inf)
        """
        if not self.noise:
            return math.inf
        if not self.signal or not math.isfinite(self.noise):
            return -math.inf
        return 10 * math.log10(self.signal / self.noise)


def activation_noise(
    quantized: Run, baseline: Run, values: Mapping[str, str], texts: Iterable[np.ndarray]
) -> dict[str, Power]:
    """The noise of activations, text by text (ids, int64 [T]), without padding.

    `values` maps names in the quantized graph to names in the baseline; those whose shapes differ
    are left out.
    """
    found: dict[str, Power] = {}
    for ids in texts:
        given = ids[None], np.ones((1, len(ids)), np.int64)
        got, wanted = quantized(*given), baseline(*given)
        for own, other in values.items():
            if own in got and other in wanted and got[own].shape == wanted[other].shape:
                used = (_without_padding(run, len(ids)) for run in (wanted[other], got[own]))
                found.setdefault(own, Power()).add(*used)
    return found


def _without_padding(values: np.ndarray, tokens: int) -> np.ndarray:
    """[1, T, ...]: a graph of a fixed size was fed more than the text."""
    return values[:1, :tokens] if values.ndim > 2 else values
