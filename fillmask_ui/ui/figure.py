"""Figures of the page: a form of controls and the pieces of HTML that follow it.

The browser sends the values of a figure's controls and gets its pieces (`static/figures.js`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.render import render, render_part
from fillmask_ui.ui.background import Done, Report, Waiting
from fillmask_ui.ui.session import Session

Result = TypeVar("Result")


class Unfinished(Exception):  # noqa: N818 - no error: the browser asks again
    """What a figure needs is still being computed."""

    def __init__(self, state: Waiting) -> None:
        self.state = state


def finished(state: Waiting | Done[Result]) -> Result:
    """The result of slow work; `Unfinished` while it goes on."""
    if isinstance(state, Waiting):
        raise Unfinished(state)
    return state.result


@dataclass(frozen=True)
class Request:
    """A request of the browser for a figure."""

    values: dict[str, str]  # of its controls, by their names
    name: str = ""
    model: str = ""  # reference; blank for the page's default


@dataclass(frozen=True)
class Asked:
    """The values of one figure's controls, and its model."""

    session: Session
    values: Mapping[str, str]  # by the names of the controls
    loaded: MaskedLM | None = None  # None for a figure that needs no model

    @property
    def model(self) -> MaskedLM:
        """The chosen model."""
        if self.loaded is None:
            raise RuntimeError("a figure without a model asks for one: set needs_model")
        return self.loaded

    def slowly(self, question: tuple[Any, ...], work: Callable[[Report], Result]) -> Result:
        """As `Session.slowly` of the model chosen; `Unfinished` while the work goes on."""
        return finished(self.session.slowly(self.model, question, work))

    def text(self, name: str, plain: str = "", most_characters: int = 2_000) -> str:
        """What a control holds, else `plain`; longer texts are cut."""
        return self.values.get(name, plain)[:most_characters]

    def number(self, name: str, low: float, high: float, plain: float) -> float:
        """A number within bounds; else `plain`.

        >>> asked = Asked(None, {"t": "9", "u": "x"})
        >>> asked.number("t", 0, 2, 1), asked.number("u", 0, 2, 1)
        (2.0, 1.0)
        """
        try:
            number = float(self.values.get(name, ""))
        except ValueError:
            return float(plain)
        return min(max(number, float(low)), float(high)) if number == number else float(plain)

    def integer(self, name: str, low: int, high: int, plain: int) -> int:
        """A whole number within bounds; else `plain`."""
        return int(self.number(name, low, high, plain))

    def pressed(self, name: str) -> bool:
        """Whether this button was pressed last, or this box is ticked."""
        return bool(self.values.get(name))


@dataclass(frozen=True)
class Shown:
    """What a figure shows."""

    pieces: Mapping[str, str]  # HTML by the `data-piece` of its place; others stay as they are
    set: Mapping[str, str] = field(
        default_factory=dict
    )  # what controls are to hold, by their names
    waiting: Waiting | None = None  # for the rest; None where this is all


def piece(figure: str, part: str, **values: Any) -> str:
    """The HTML of a part of `page/learn/FIGURE.html`."""
    return render_part(f"page/learn/{figure}.html", part, **values)


@dataclass(frozen=True)
class Figure:
    """One figure: what a screen reader calls it, and what makes its pieces."""

    title: str  # what a screen reader calls it
    # A FillmaskError is for the reader; Unfinished or Waiting has the browser ask again.
    show: Callable[[Asked], Shown | Waiting]
    controls: Mapping[str, Any] = field(default_factory=dict)  # values of `page/learn/NAME.html`
    needs_model: bool = True

    def form_html(self, name: str) -> str:
        """Its controls and the places of its pieces."""
        values = {name: own() if callable(own) else own for name, own in self.controls.items()}
        form = piece(name, "form", **values)
        return render("page/learn/figure.html", name=name, title=self.title, form=form)


def answer(session: Session, figure: Figure, request: Request) -> dict[str, Any]:
    """The JSON answer for a figure.

    Its kind is `shown`, with `pieces` and `set`, or `busy`, with a `notice`, perhaps a `fraction`
    and the `pieces` known so far: then the browser asks again.
    """
    asked = Asked(session, request.values)
    if figure.needs_model:
        state = session.model_soon(request.model)
        if isinstance(state, Waiting):
            return _busy(state, "Loading the model…")
        asked = Asked(session, request.values, state.result)
    try:
        shown = figure.show(asked)
    except Unfinished as work:
        shown = work.state
    if isinstance(shown, Waiting):
        return _busy(shown, "Computing…")
    told = {"pieces": shown.pieces, "set": shown.set}
    return {"kind": "shown", **told} if shown.waiting is None else _busy(shown.waiting) | told


def _busy(state: Waiting, plain: str = "") -> dict[str, Any]:
    return {"kind": "busy", "notice": state.message or plain, "fraction": state.fraction}
