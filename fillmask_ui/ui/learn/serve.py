"""What the browser calls: functions of plain JSON values that answer at once."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fillmask_ui.errors import FillmaskError
from fillmask_ui.ui.background import Waiting
from fillmask_ui.ui.figure import Asked
from fillmask_ui.ui.learn import exercises
from fillmask_ui.ui.learn.figures import FIGURES
from fillmask_ui.ui.session import Session
from fillmask_ui.ui.widgets import error_message

Json = dict[str, Any]
_MOST_FIELDS = 200


def figure(session: Session, request: Mapping[str, Any]) -> Json:
    """The pieces of a figure: `name`, `model`, and `values` of its controls by their names.

    The answer is of kind `shown` with `pieces` and `set`, `busy` with a `notice` and perhaps a
    `fraction` where it is to be asked for again, or `error` with a `notice`.
    """
    meant = FIGURES.get(str(request.get("name")))
    if meant is None:
        return _error(f"There is no figure {request.get('name')!r}.")
    given = request.get("values")
    fields = list(given.items())[:_MOST_FIELDS] if isinstance(given, dict) else []
    values = {str(name): str(value) for name, value in fields}
    try:
        asked = Asked(session, values)
        if meant.needs_model:
            state = session.model_soon(str(request.get("model") or ""))
            if isinstance(state, Waiting):
                return _busy(state, "Loading the model…")
            asked = Asked(session, values, state.result)
        shown = meant.show(asked)
    except FillmaskError as error:
        return _error(error_message(error))
    if isinstance(shown, Waiting):
        return _busy(shown, "Computing…")
    return {"kind": "shown", **asdict(shown)}


def _error(notice: str) -> Json:
    return {"kind": "error", "notice": notice}


def _busy(state: Waiting, plain: str) -> Json:
    return {"kind": "busy", "notice": state.message or plain, "fraction": state.fraction}


# By the name under which the browser calls them; each takes the session and JSON values.
SERVED = {
    "figure": figure,
    "exercises": exercises.exercises,
    "check": exercises.check,
    "sheet": exercises.sheet,
}
