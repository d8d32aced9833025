"""The exercises at the end of each chapter: one to three questions, with numbers drawn by a seed.

Seed 1 has the numbers of the course notes where these have an exercise; any other draws them, and
whoever takes the same seed gets the same questions.
"""

from collections.abc import Callable, Mapping

import numpy as np

from fillmask_ui.errors import OptionError, unknown
from fillmask_ui.lessons.exercises import (
    accuracy,
    certainty,
    cross_entropy,
    guess,
    ledger,
    loss,
    masking,
    next_sentence,
    senses,
    sides,
)
from fillmask_ui.lessons.exercises.exercise import Choice, Exercise, Feedback, Numeric, Ordering

__all__ = [
    "COURSE_SEED",
    "EXERCISES",
    "MOST_SEED",
    "Choice",
    "Exercise",
    "Feedback",
    "Numeric",
    "Ordering",
    "exercises_of",
]

COURSE_SEED = 1
MOST_SEED = 9999
# Chapter -> what draws its exercises; the flag asks for the numbers of the course notes.
EXERCISES: Mapping[str, Callable[[np.random.Generator, bool], tuple[Exercise, ...]]] = {
    "guess": guess.exercises,
    "loss": loss.exercises,
    "both-sides": sides.exercises,
    "masking": masking.exercises,
    "ledger": ledger.exercises,
    "cross-entropy": cross_entropy.exercises,
    "accuracy": accuracy.exercises,
    "certainty": certainty.exercises,
    "senses": senses.exercises,
    "next-sentence": next_sentence.exercises,
}


def exercises_of(chapter: str, seed: int) -> tuple[Exercise, ...]:
    """The exercises of a chapter; how many and of what kind is the same for every seed.

    Args:
        chapter: its name in links.
        seed: from 1 to `MOST_SEED`.

    Raises:
        OptionError: for a chapter that there is not, or another seed.

    >>> exercises_of("loss", COURSE_SEED)[0].solution
    '0.357 nats'
    """
    if chapter not in EXERCISES:
        raise OptionError(unknown("chapter", chapter, EXERCISES))
    if not 1 <= seed <= MOST_SEED:
        raise OptionError(f"the seed of exercises lies between 1 and {MOST_SEED}; it was {seed}")
    rng = np.random.default_rng([seed, list(EXERCISES).index(chapter)])
    while True:
        drawn = EXERCISES[chapter](rng, seed == COURSE_SEED)
        if all(own.refuses_slips for own in drawn if isinstance(own, Numeric)):
            return drawn
