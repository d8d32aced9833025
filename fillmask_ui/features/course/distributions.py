"""A truth p and a prediction q over the same classes, and the distance between them.

Entropy H(p) = -sum of p ln p; cross-entropy H(p, q) = -sum of p ln q, infinite where q is 0 and p
is not; KL(p || q) = H(p, q) - H(p). A class with p = 0 adds nothing, as x ln x tends to 0.

Source:
    Cover and Thomas, Elements of Information Theory, 2nd edition, sections 2.1 and 2.3.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.errors import OptionError

MOST_CLASSES = 12
# Numbers that were rounded to five digits add up to 1 this closely.
_TOLERANCE = 2e-5


@dataclass(frozen=True)
class Term:
    """One class."""

    name: str
    p: float  # probability that it is true
    q: float  # probability that was predicted
    surprisal_nats: float  # -ln q; infinite for q = 0
    nats: float  # what it adds to the cross-entropy, -p ln q; 0 for p = 0


@dataclass(frozen=True)
class DistributionComparison:
    """A prediction q beside the truth p."""

    terms: tuple[Term, ...]  # one per class
    entropy_nats: float  # H(p)
    cross_entropy_nats: float  # H(p, q), the sum over the terms; infinite for a zero in q
    kl_nats: float  # KL(p || q)

    @property
    def impossible(self) -> tuple[str, ...]:
        """Classes that can be true and were predicted with 0."""
        return tuple(term.name for term in self.terms if term.nats == math.inf)


def read_numbers(typed: str, name: str) -> tuple[float, ...]:
    """Numbers of 0 or more, in any sum: decimals, fractions or percents with anything between.

    An `OptionError` with the `name` of the field if a piece cannot be read or is negative, or there
    are none or too many.

    >>> read_numbers("1/4, 25 %; 0.5", "q")
    (0.25, 0.25, 0.5)
    """
    fields = [field for field in re.split(r"[,;\s]+", re.sub(r"\s+%", "%", typed)) if field]
    if not 1 <= len(fields) <= MOST_CLASSES:
        raise OptionError(
            f"{name} has {len(fields)} numbers: give 1 to {MOST_CLASSES}, as in: 0.1, 0.7, 0.1, 0.1"
        )
    return tuple(_number(field, name) for field in fields)


def _number(field: str, name: str) -> float:
    above, _, below = field.removesuffix("%").partition("/")
    try:
        value = float(above) / (100.0 if field.endswith("%") else 1.0) / float(below or 1)
    except (ValueError, ZeroDivisionError):
        raise OptionError(
            f"{field[:20]!r} in {name} is no number: write 0.25, 1/4 or 25%, with a comma between "
            "two numbers"
        ) from None
    if not 0 <= value < math.inf:
        raise OptionError(f"{field[:20]!r} in {name} is no probability: it must be from 0 to 1")
    return value


def scaled(numbers: Sequence[float], name: str) -> tuple[float, ...]:
    """Numbers divided by their sum; an `OptionError` where all of them are 0."""
    total = math.fsum(numbers)
    if not total:
        raise OptionError(f"all numbers of {name} are 0: no scale makes them add up to 1")
    return tuple(number / total for number in numbers)


def adds_up(numbers: Sequence[float]) -> bool:
    """Whether numbers add up to 1, but for rounding."""
    return abs(math.fsum(numbers) - 1.0) <= _TOLERANCE


def compare(
    p: Sequence[float], q: Sequence[float], names: Sequence[str] = ()
) -> DistributionComparison:
    """Entropy, cross-entropy and divergence of a truth p and a prediction q.

    Classes without a name are numbered. An `OptionError` if the two differ in length, or one does
    not add up to 1.
    """
    if len(p) != len(q):
        raise OptionError(
            f"p has {len(p)} classes and q has {len(q)}: give a probability for the same ones"
        )
    wrong = [
        f"{name} adds up to {math.fsum(numbers):.6g}"
        for name, numbers in (("p", p), ("q", q))
        if not adds_up(numbers)
    ]
    if wrong:
        raise OptionError(
            f"{' and '.join(wrong)}, and a distribution adds up to 1: change it, or press "
            "“Scale to a sum of 1”"
        )
    with np.errstate(divide="ignore"):
        log_p, log_q = np.log([p]), np.log([q])  # each [1, classes]
    surprisals = (0.0 - log_q[0]).tolist()
    labels = [*names, *(f"class {number}" for number in range(len(names) + 1, len(p) + 1))]
    terms = tuple(
        Term(name, true_share, predicted, surprisal, true_share * surprisal if true_share else 0.0)
        for name, true_share, predicted, surprisal in zip(labels, p, q, surprisals, strict=False)
    )
    return DistributionComparison(
        terms,
        float(scoring.exponentials(log_p).entropy_nats[0]),
        math.fsum(term.nats for term in terms),
        float(scoring.kl_nats(log_p, log_q)[0]),
    )
