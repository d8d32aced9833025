"""Figures of the page: a form of controls and the pieces of HTML that follow it.

The browser sends the values of a figure's controls and gets its pieces (`static/figures.js`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.render import macros, render
from fillmask_ui.ui.job import Report, Waiting
from fillmask_ui.ui.session import Session

Result = TypeVar("Result")

MOST_SEED = 9_999  # of a dial without bounds
MOST_CHARACTERS = 2_000  # of what a control holds


@dataclass(frozen=True)
class Request:
    """A request of the browser for a figure."""

    values: dict[str, str]  # of its controls, by their names
    name: str = ""
    model: str = ""  # reference; blank for the page's default


@dataclass(frozen=True)
class Control:
    """A control of a form, or several of them, drawn by a macro of `page/controls.html`."""

    kind: str  # name of the macro
    label: str
    name: str = ""
    # More parameters of the macro; a function is called for its value.
    settings: Mapping[str, Any] = field(default_factory=dict)
    parts: Sequence["Control"] = ()  # what it surrounds

    @property
    def parameters(self) -> dict[str, Any]:
        parameters = {"name": self.name, "label": self.label}
        for name, setting in self.settings.items():
            parameters[name] = setting() if callable(setting) else setting
        return parameters

    def each(self) -> Iterator["Control"]:
        yield self
        for part in self.parts:
            yield from part.each()


def control(kind: str, name: str, label: str = "", *settings: Any, **more: Any) -> Control:
    """A control with the parameters of its macro; `value` is what it holds at first."""
    _, _, *names = macros("page/controls.html")[kind].arguments
    return Control(kind, label, name, dict(zip(names, settings, strict=False)) | more)


def around(kind: str, label: str, *parts: Control) -> Control:
    """A `group` or `fold` with a label, or a `box` with a class, around some controls."""
    return Control(kind, label, parts=parts)


@dataclass(frozen=True)
class FigureInputs:
    """The values of one figure's controls, and its model."""

    session: Session
    values: Mapping[str, str]  # by the names of the controls
    model: Any = None  # the chosen `MaskedLM`; None for a figure that needs none
    controls: Mapping[str, Control] = field(default_factory=dict)
    title: str = ""  # of the figure

    def slowly(self, question: tuple[Any, ...], work: Callable[[Report], Result]) -> Result:
        """As `Session.slowly` of the model chosen; `Unfinished` while the work goes on."""
        return self.session.slowly(self.model, question, work, title=self._job_title)

    @property
    def _job_title(self) -> str:
        return f"the figure “{self.title}”"

    def counted(
        self,
        question: tuple[Any, ...],
        things: str,
        work: Callable[[Callable[[int, int], None]], Result],
        model: MaskedLM | None = None,
    ) -> Result:
        """As `slowly`; `work` tells how many `things` are done, of how many."""

        def run(report: Report) -> Result:
            return work(lambda done, of: report(Waiting(f"{done} of {of} {things}", done / of)))

        return self.session.slowly(model or self.model, question, run, title=self._job_title)

    def __getitem__(self, name: str) -> Any:
        """What a declared control holds, else its first value; numbers are within its bounds."""
        control = self.controls[name]
        settings = control.settings
        if control.kind not in ("slider", "dial"):
            return self.text(name, settings.get("value", ""))
        read = self.integer if isinstance(settings.get("step", 1), int) else self.number
        return read(
            name, settings.get("low", 0), settings.get("high", MOST_SEED), settings["value"]
        )

    def text(self, name: str, plain: str = "") -> str:
        """What a control holds, else `plain`; longer texts are cut."""
        return self.values.get(name, plain)[:MOST_CHARACTERS]

    def number(self, name: str, low: float, high: float, plain: float) -> float:
        """A number within bounds; else `plain`.

        >>> asked = FigureInputs(None, {"t": "9", "u": "x"})
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
    set: Mapping[str, str] = field(default_factory=dict)  # of controls, by their names
    waiting: Waiting | None = None  # for the rest; None where this is all


@dataclass(frozen=True)
class InteractiveFigure:
    """A figure: controls, a function, and a template whose macros are its pieces."""

    name: str
    title: str  # for screen readers
    form: Sequence[Control]
    # Gives the values of the template, and perhaps what controls are to hold. A FillmaskError is
    # for the reader; Unfinished has the browser ask again.
    values: Callable[[FigureInputs], Any]
    template: str
    needs_model: bool = True

    @property
    def controls(self) -> dict[str, Control]:
        return {
            control.name: control for top in self.form for control in top.each() if control.name
        }

    def show(self, request: FigureInputs) -> Shown:
        """All pieces: the macros without parameters."""
        result = self.values(replace(request, controls=self.controls, title=self.title))
        values, control_values = result if isinstance(result, tuple) else (result, {})
        pieces = macros(self.template, **values).items()
        html = {name: str(macro()) for name, macro in pieces if not macro.arguments}
        return Shown(html, control_values)

    def form_html(self) -> str:
        """Its controls and the places of its pieces, which a macro `form(fields)` may arrange."""
        template_macros = macros(self.template)
        pieces = [
            name
            for name, macro in template_macros.items()
            if not macro.arguments
            and not (name in self.controls and self.controls[name].kind == "piece")
        ]
        values = {"figure": self, "layout": template_macros.get("form"), "pieces": pieces}
        return render("ui/figure.html", **values)


def answer(
    session: Session,
    show: Callable[[FigureInputs], Shown],
    request: Request,
    needs_model: bool = True,
) -> dict[str, Any]:
    """The JSON answer for a figure: `shown`, or `busy`, with which the browser asks again."""
    model = session.model_soon(request.model) if needs_model else None
    content = show(FigureInputs(session, request.values, model))
    reply = {"kind": "shown", "pieces": content.pieces, "set": content.set}
    return reply if content.waiting is None else reply | content.waiting.busy_answer()
