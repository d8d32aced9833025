"""What intervals are built from: quantiles of Student's t, and how many texts count."""

import math
from statistics import NormalDist

import numpy as np


def effective_number(weights: np.ndarray) -> float:
    """How many equal weights are as unequal in sum as these: (sum w)^2 / sum w^2.

    Args:
        weights: float64 [N], not negative and not all zero.

    Source:
        Kish 1965, Survey Sampling, section 11.7.

    >>> effective_number(np.array([1.0, 1.0, 1.0, 1.0])), effective_number(np.array([98.0, 1, 1]))
    (4.0, 1.0410...)
    """
    weights = weights / weights.max()
    return float(weights.sum() ** 2 / (weights * weights).sum())


def student_t_quantile(freedom: int, level: float = 0.95) -> float:
    """Two-sided quantile of Student's t: |t| stays below it with probability `level`.

    Source:
        Abramowitz and Stegun 1964: 26.7.3 and 26.7.4, inverted by bisection, up to 30 degrees of
        freedom; 26.7.5 beyond.

    >>> round(student_t_quantile(9), 4)
    2.2622
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    if freedom > 30:
        z2 = z * z
        terms = (
            z,
            z * (z2 + 1) / 4,
            z * ((5 * z2 + 16) * z2 + 3) / 96,
            z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384,
            z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160,
        )
        return sum(term / freedom**power for power, term in enumerate(terms))
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        if _student_t_probability(middle, freedom) < level:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _student_t_probability(t: float, freedom: int) -> float:
    """P(|T| < t) as a finite series in the angle."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return (angle + sine * total) * 2 / math.pi if odd else sine * total
