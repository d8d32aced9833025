"""Figures of the course, and HTML as a browser would see it, without one."""

from contextlib import suppress
from typing import Any

from fillmask_ui.features.course.exercises.exercise import Choice, Exercise, Numeric
from fillmask_ui.features.course.learn_figures import FIGURES
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.ui.figure import FigureInputs, Shown
from fillmask_ui.ui.job import Unfinished
from fillmask_ui.ui.session import Session


def show_figure(session: Session, model: MaskedLM | None, name: str, **values: Any) -> Shown:
    """What a figure shows of some values, asked again until it is known."""
    request = FigureInputs(session, {key: str(value) for key, value in values.items()}, model)
    for _ in range(300):  # each waits for a moment
        with suppress(Unfinished):
            return FIGURES[name].show(request)
    raise AssertionError(f"{name} went on for minutes")


def right_response(exercise: Exercise) -> str:
    """What a reader types, chooses or orders who is right."""
    if isinstance(exercise, Numeric):
        return f"{exercise.answer:.{exercise.decimals + 1}f}"
    return (
        str(exercise.right) if isinstance(exercise, Choice) else ",".join(map(str, exercise.order))
    )
