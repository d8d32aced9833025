"""Figures of the course without a browser."""

from contextlib import suppress
from typing import Any

from fillmask_ui.protocol import MaskedLM
from fillmask_ui.ui.figure import Asked, Shown, Unfinished
from fillmask_ui.ui.learn.learn_figures import FIGURES
from fillmask_ui.ui.session import Session


def show_figure(session: Session, model: MaskedLM | None, name: str, **values: Any) -> Shown:
    """What a figure shows of some values, asked again until it is known."""
    asked = Asked(session, {key: str(value) for key, value in values.items()}, model)
    for _ in range(300):  # each waits for a moment
        with suppress(Unfinished):
            return FIGURES[name].show(asked)
    raise AssertionError(f"{name} went on for minutes")
