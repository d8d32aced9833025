"""Makes a figure of a lesson of a function."""

from collections.abc import Callable
from typing import Any

from fillmask_ui.ui.figure import Control, FigureInputs, InteractiveFigure, around


def figure(
    name: str, title: str, *form: Control, needs_model: bool = True, template: str = ""
) -> Callable[[Callable[[FigureInputs], Any]], InteractiveFigure]:
    """Make a figure of a function; its controls stand in one row if they are not all boxes."""
    boxed = all(part.kind == "box" for part in form)
    rows = form if boxed else (around("box", "fm-controls", *form),)
    path = f"course/{template or name}.html"
    return lambda values: InteractiveFigure(name, title, rows, values, path, needs_model)
