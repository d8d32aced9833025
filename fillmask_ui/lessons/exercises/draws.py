"""What the exercises of several chapters draw and compute."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fillmask_ui.lessons.exercises.exercise import Choice, Option, Slip, Table, written
from fillmask_ui.scoring import nll_nats


@dataclass(frozen=True)
class Gap:
    """A sentence with a hidden word, and words that could stand there."""

    sentence: str
    words: tuple[str, ...]  # the true one first


_GAPS = (
    Gap("The cat sat on the [MASK].", ("mat", "sofa", "floor", "chair")),
    Gap("The quick brown [MASK] ran away.", ("fox", "cat", "dog", "bear")),
    Gap("She drank a cup of [MASK].", ("tea", "coffee", "water", "milk")),
    Gap("They sailed down the [MASK].", ("river", "stream", "coast", "bay")),
    Gap("He opened the [MASK] and went in.", ("door", "gate", "house", "shop")),
    Gap("We met in the [MASK] at noon.", ("park", "city", "hall", "office")),
)


def draw_gap(rng: np.random.Generator) -> Gap:
    """A sentence, any of whose words is the true one."""
    gap = _GAPS[rng.integers(len(_GAPS))]
    return Gap(gap.sentence, tuple(str(word) for word in rng.permutation(gap.words)))


def shares(rng: np.random.Generator, count: int, step: float = 0.05) -> list[float]:
    """Probabilities that differ, are multiples of a step, and add up to 1.

    >>> sum(shares(np.random.default_rng(3), 4)), len(set(shares(np.random.default_rng(3), 4)))
    (1.0, 4)
    """
    steps = round(1 / step)
    while True:
        cuts = np.sort(rng.choice(np.arange(1, steps), count - 1, replace=False))
        parts = np.diff([0, *cuts, steps]).tolist()
        if len(set(parts)) == count:
            return [part / steps for part in parts]


def loss_nats(probability: float) -> float:
    """The loss of a word of this probability, by the code of the evaluator.

    >>> round(loss_nats(0.7), 3)
    0.357
    """
    others = np.array([[probability, 1 - probability]])
    return float(nll_nats(np.log(others), np.array([0]))[0])


def loss_slips(nats: float) -> tuple[Slip, ...]:
    """What is given in place of a loss in nats when one takes another logarithm or no minus."""
    return (
        Slip(nats / math.log(2), "That is the loss in bits (log2); nats take the logarithm ln."),
        Slip(nats / math.log(10), "That is log10; a loss in nats takes ln, the natural logarithm."),
        Slip(-nats, "The sign is missing: ln of a number below 1 is negative, minus it the loss."),
    )


def minus_ln(probability: float) -> str:
    """The calculation of one loss.

    >>> minus_ln(0.7)
    '−ln 0.7 = 0.357'
    """
    return f"−ln {probability:g} = {written(loss_nats(probability))}"


def choice(
    rng: np.random.Generator,
    text: str,
    right: str,
    wrong: Sequence[Option],
    explanation: str,
    table: Table = (),
) -> Choice:
    """A choice whose options stand in any order."""
    options = [Option(right), *wrong]
    places = rng.permutation(len(options)).tolist()
    return Choice(
        text=text,
        explanation=explanation,
        table=table,
        options=tuple(options[place] for place in places),
        right=places.index(0),
    )
