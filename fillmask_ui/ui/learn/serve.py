"""What the browser calls: functions of plain JSON values that answer at once."""

from collections.abc import Mapping
from typing import Any

from fillmask_ui.errors import OptionError, unknown
from fillmask_ui.schema import from_values
from fillmask_ui.ui.figure import Request, answer
from fillmask_ui.ui.learn import exercises
from fillmask_ui.ui.learn.figures import FIGURES
from fillmask_ui.ui.session import Session

Json = dict[str, Any]


def figure(session: Session, request: Mapping[str, Any]) -> Json:
    """The pieces of the figure called `name`, as `ui/figure.py: answer` gives them."""
    asked = from_values(Request, request)
    if asked.name not in FIGURES:
        raise OptionError(unknown("figure", asked.name, FIGURES))
    return answer(session, FIGURES[asked.name], asked)


# By the name under which the browser calls them; each takes the session and JSON values.
SERVED = {
    "figure": figure,
    "exercises": exercises.exercises,
    "check": exercises.check,
    "sheet": exercises.sheet,
}
