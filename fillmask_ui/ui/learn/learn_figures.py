"""The figures of all chapters, by the names that the texts use, and what the browser calls."""

from collections.abc import Mapping
from typing import Any

from fillmask_ui.errors import OptionError, unknown
from fillmask_ui.schema import from_values
from fillmask_ui.ui.figure import Figure, Request, answer
from fillmask_ui.ui.learn import (
    context_figures,
    exercise_view,
    guess_figures,
    loss_figures,
    masking_figures,
    sense_figures,
    uncertainty_figures,
)
from fillmask_ui.ui.session import Session

_ROOMS = (
    guess_figures,
    loss_figures,
    context_figures,
    masking_figures,
    uncertainty_figures,
    sense_figures,
)
FIGURES = {
    own.name: own for room in _ROOMS for own in vars(room).values() if isinstance(own, Figure)
}


def figure(session: Session, request: Mapping[str, Any]) -> dict[str, Any]:
    """The pieces of the figure called `name`, as `ui/figure.py: answer` gives them."""
    asked = from_values(Request, request)
    if asked.name not in FIGURES:
        raise OptionError(unknown("figure", asked.name, FIGURES))
    own = FIGURES[asked.name]
    return answer(session, own.show, asked, own.needs_model)


# By the name under which the browser calls them; each takes the session and JSON values.
SERVED = {
    "figure": figure,
    "exercises": exercise_view.exercises,
    "check": exercise_view.check,
    "sheet": exercise_view.sheet,
}
