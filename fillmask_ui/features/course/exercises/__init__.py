"""The exercises at the end of each chapter: one to three questions, with numbers drawn by a seed.

The same seed gives the same questions. Seed 1 has the numbers of the course notes where these have
the exercise.
"""

import numpy as np

from fillmask_ui.errors import OptionError, unknown
from fillmask_ui.features.course.exercises.exercise import Exercise
from fillmask_ui.features.course.exercises.generator import COURSE_TASKS, ask

COURSE_SEED = 1
MOST_SEED = 9999
EXERCISES = tuple(COURSE_TASKS)  # chapters; the place of one is part of the seed of its numbers


def exercises_of(chapter: str, seed: int) -> tuple[Exercise, ...]:
    """The exercises of a chapter; how many and of what kind is the same for every seed.

    An `OptionError` if the chapter is unknown or the seed not from 1 to `MOST_SEED`.
    """
    if chapter not in EXERCISES:
        raise OptionError(unknown("chapter", chapter, EXERCISES))
    if not 1 <= seed <= MOST_SEED:
        raise OptionError(f"the seed of exercises lies between 1 and {MOST_SEED}; it was {seed}")
    rng = np.random.default_rng([seed, EXERCISES.index(chapter)])
    return ask(COURSE_TASKS[chapter], rng, seed == COURSE_SEED)
