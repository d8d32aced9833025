"""What the browser calls about the variant of a row that was chosen: functions of JSON values."""

from collections.abc import Mapping
from typing import Any

from fillmask_ui.errors import OptionError, unknown
from fillmask_ui.schema import from_values
from fillmask_ui.ui.figure import Figure, Request, answer
from fillmask_ui.ui.quantize import diagnosis_view
from fillmask_ui.ui.session import Session

# Panels below the table, by name: the form of each is `page/quantize/NAME.html`, a section of class
# `fm-figure` with that name as `data-figure`. Its controls `variant` and `baseline` hold the
# references of the row that was chosen and of the model that it was made from.
FIGURES: dict[str, Figure] = {"diagnose": diagnosis_view.FIGURE}


def figure(session: Session, request: Mapping[str, Any]) -> dict[str, Any]:
    """The pieces of a panel, as `ui/figure.py: answer` gives them."""
    asked = from_values(Request, request)
    if asked.name not in FIGURES:
        raise OptionError(unknown("panel", asked.name, FIGURES))
    return answer(session, FIGURES[asked.name], asked)


# By the name under which the browser calls them; each takes the session and JSON values.
SERVED = {"figure": figure}
