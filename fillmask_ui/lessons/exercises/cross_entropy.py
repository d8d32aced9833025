"""Exercises on the truth and the prediction as two distributions."""

import math
from collections.abc import Sequence

import numpy as np

from fillmask_ui.lessons.exercises.draws import choice, shares
from fillmask_ui.lessons.exercises.exercise import Choice, Exercise, Numeric, Option, Slip, written
from fillmask_ui.scoring import entropy_nats


def exercises(rng: np.random.Generator, in_course: bool) -> tuple[Exercise, ...]:
    """Which distributions a loss is between, the empirical one of a class, and a divergence."""
    return _between(rng, in_course), _empirical(rng, in_course), _divergence(rng)


def _between(rng: np.random.Generator, in_course: bool) -> Choice:
    # The course notes: four classes, the second is true, and the prediction gives it 0.7.
    prediction, place = [0.1, 0.7, 0.1, 0.1], 1
    if not in_course:
        prediction, place = shares(rng, 4), int(rng.integers(4))
    best = prediction[place]
    truth, wrong_truth = _one_hot(4, place), _one_hot(4, (place + 1) % 4)
    certain = [0.0] * 4
    certain[place] = best
    return choice(
        rng,
        f"Of four classes, number {place + 1} is true, and a model predicts {_list(prediction)}. "
        f"Its loss −ln {best:g} is the cross-entropy between two distributions: which?",
        f"{_list(truth)} and {_list(prediction)}",
        [
            Option(
                f"{_list(wrong_truth)} and {_list(prediction)}",
                f"That has the 1 at class {(place + 1) % 4 + 1}; class {place + 1} is true.",
            ),
            Option(
                f"{_list([0.25] * 4)} and {_list(prediction)}",
                "One true class is known, so the truth is no uniform distribution.",
            ),
            Option(
                f"{_list(certain)} and {_list(prediction)}",
                f"{_list(certain)} is no distribution: it adds up to {best:g}, not 1.",
            ),
        ],
        f"The empirical distribution has all its mass on the true class: {_list(truth)}.\n"
        f"H = −Σ p ln q = −1 × ln {best:g} = {written(_cross_entropy(truth, prediction))} nats: "
        "all other terms are multiplied by 0.",
    )


def _empirical(rng: np.random.Generator, in_course: bool) -> Choice:
    # The course notes: P(A) = 0.2, P(B) = 0.5, P(C) = 0.3, and B is true.
    prediction, place = [0.2, 0.5, 0.3], 1
    if not in_course:
        prediction, place = shares(rng, 3), int(rng.integers(3))
    name, truth = "ABC"[place], _one_hot(3, place)
    given = ", ".join(
        f"P({letter}) = {part:g}" for letter, part in zip("ABC", prediction, strict=True)
    )
    others = [index for index in range(3) if index != place]
    half = [0.5 if index in (place, others[0]) else 0.0 for index in range(3)]
    return choice(
        rng,
        f"A model predicts {given}; class {name} is true. What is the empirical distribution over "
        "A, B, C?",
        _list(truth),
        [
            Option(
                _list(prediction),
                "That is what the model predicts; the empirical distribution is what was observed.",
            ),
            Option(
                _list(_one_hot(3, others[0])),
                f"That says class {'ABC'[others[0]]}; class {name} was observed.",
            ),
            Option(_list(half), f"Class {name} alone was observed, so it has all the mass."),
        ],
        f"Class {name} was observed, so it has probability 1 and the others 0: {_list(truth)}.\n"
        f"The loss is −ln {prediction[place]:g} = {written(_cross_entropy(truth, prediction))} "
        "nats, the cross-entropy of this distribution and the prediction.",
    )


def _divergence(rng: np.random.Generator) -> Numeric:
    while True:
        p, q = shares(rng, 3, 0.1), shares(rng, 3, 0.1)
        divergence = _cross_entropy(p, q) - _entropy(p)
        if divergence > 0.05:
            break
    crossed, entropy = _cross_entropy(p, q), _entropy(p)
    terms = " − ".join(f"{a:g} × ln {b:g}" for a, b in zip(p, q, strict=True))
    own = " − ".join(f"{a:g} × ln {a:g}" for a in p)
    return Numeric(
        text="People fill a gap with one of three words (p); a model predicts q. What is the "
        "Kullback-Leibler divergence KL(p ‖ q), in nats?",
        table=(
            ("word", "p", "q"),
            *(
                (word, f"{a:g}", f"{b:g}")
                for word, a, b in zip(("tea", "coffee", "milk"), p, q, strict=True)
            ),
        ),
        answer=divergence,
        unit="nats",
        slips=(
            Slip(crossed, "That is the cross-entropy; subtract the entropy of p."),
            Slip(entropy, "That is the entropy of p; subtract it from the cross-entropy."),
            Slip(
                _cross_entropy(q, p) - _entropy(q),
                "That is KL(q ‖ p): the logarithms are weighted by p, not by q.",
            ),
            Slip(divergence / math.log(2), "That is in bits (log2); nats take the logarithm ln."),
            Slip(-divergence, "A divergence is never negative: cross-entropy minus entropy."),
        ),
        explanation=f"Cross-entropy H(p, q) = −{terms} = {written(crossed)}.\n"
        f"Entropy H(p) = −{own} = {written(entropy)}.\n"
        f"KL = {written(crossed)} − {written(entropy)} = {written(divergence)} nats: what it costs "
        "on average to expect q where p is true.",
    )


def _one_hot(size: int, place: int) -> list[float]:
    return [float(index == place) for index in range(size)]


def _list(values: Sequence[float]) -> str:
    return f"[{', '.join(f'{value:g}' for value in values)}]"


def _cross_entropy(p: Sequence[float], q: Sequence[float]) -> float:
    return -float(np.dot(p, np.log(q)))


def _entropy(p: Sequence[float]) -> float:
    return float(entropy_nats(np.log([p]))[0])
