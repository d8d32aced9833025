"""Pieces of HTML and the bridges from the browser to Python that tabs are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import gradio as gr
from gradio.context import Context

from fillmask_ui.errors import FillmaskError
from fillmask_ui.show.render import render

if TYPE_CHECKING:
    from fillmask_ui.ui.session import Session

_STATIC = Path(__file__).parent / "static"
# Of an event that is quick and no endpoint for programs.
QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}


def static(name: str) -> str:
    """A script or style sheet that ships with the page."""
    return (_STATIC / name).read_text(encoding="utf-8")


def page() -> gr.Blocks:
    """The page that is being built, for its load event.

    Raises:
        RuntimeError: outside of `with gr.Blocks()`.
    """
    if Context.root_block is None:
        raise RuntimeError("a tab is built inside a gr.Blocks")
    return Context.root_block


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Attributes:
        text: as shown.
        value: the number behind it, unrounded, where it is one.
        share: in [0, 1], draws a bar behind the number.
        kind: `text`, `number`, `code`, `action` for a button, or `marked` for a word that is
            marked in what stands around it.
        title: longer text on hover, and the label of an action.
        key: of an action that does something else than a click on its row.
        before: text before a marked word.
        after: text behind a marked word.
    """

    text: str
    value: float | int | None = None
    share: float | None = None
    kind: Literal["text", "number", "code", "action", "marked"] = "text"
    title: str = ""
    key: str | None = None
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Attributes:
        cells: one per column.
        key: handed to Python when the row is clicked; None for rows that do nothing.
        marked: drawn as special, such as the true word.
    """

    cells: Sequence[Cell]
    key: str | None = None
    marked: bool = False


@dataclass(frozen=True)
class Column:
    """A column's heading.

    Attributes:
        name: as shown.
        title: what it means, on hover.
        number: right-aligned.
        narrow: false hides it on a narrow screen.
    """

    name: str
    title: str = ""
    number: bool = False
    narrow: bool = True


def table_html(caption: str, columns: Sequence[Column], rows: Iterable[Row], note: str = "") -> str:
    """A table that can be read out, copied and clicked.

    Args:
        caption: its title.
        columns: headings.
        rows: of as many cells.
        note: a sentence below the title.
    """
    return render("page/rows.html", caption=caption, columns=columns, rows=rows, note=note)


def notice_html(
    kind: Literal["hint", "error", "busy", "none"], text: str = "", fraction: float | None = None
) -> str:
    """A message to the reader.

    Args:
        kind: of the message; `none` clears the place for it.
        text: the message.
        fraction: part done of what is waited for, in [0, 1].
    """
    return render("page/notice.html", kind=kind, text=text, fraction=fraction)


def error_message(error: FillmaskError) -> str:
    """What went wrong as a sentence, with a capital unless it starts with a name.

    >>> error_message(FillmaskError("the text is empty")), error_message(FillmaskError("'x' is"))
    ('The text is empty', "'x' is")
    """
    message = str(error)
    starts_with_word = message.split(" ", 1)[0].isalpha()
    return message[:1].upper() + message[1:] if starts_with_word else message


def error_html(error: FillmaskError) -> str:
    """A notice of what went wrong."""
    return notice_html("error", error_message(error))


def facts_html(facts: Iterable[tuple[str, str]], label: str) -> str:
    """Names and values, both as text."""
    return render("page/pairs.html", facts=facts, label=label)


def html_block(value: str = "", *, js_on_load: str | None = None, **options: Any) -> gr.HTML:
    """HTML without the built-in style for prose, which draws borders around cells."""
    return gr.HTML(value, js_on_load=js_on_load, apply_default_css=False, **options)


def clickable_table(value: str = "", **options: Any) -> gr.HTML:
    """Tables, chips or buttons; the event `row` carries the `key` of the one clicked on."""
    return html_block(value, js_on_load=static("table.js"), **options)


def bridge(script: str, value: str = "", **names: str) -> gr.HTML:
    """An invisible script of the page; what it triggers are events of the component.

    Args:
        script: a file in `static/`, which says what it does.
        value: that the script starts with.
        names: what stands in the script in capitals -> what it is here.
    """
    source = static(script)
    for name, meant in names.items():
        source = source.replace(name, meant)
    return html_block(value, js_on_load=source, visible="hidden")


def model_choices(session: Session) -> list[tuple[str, str]]:
    """Names and references of the models at hand, the default one first."""
    labels = {
        model.reference: f"{model.reference} · {model.note}" if model.note else model.reference
        for model in session.models()
    }
    first = {session.default_model: labels.get(session.default_model, session.default_model)}
    return [(label, reference) for reference, label in (first | labels).items()]


def model_picker(session: Session, **options: Any) -> gr.Dropdown:
    """A choice among the models at hand, or any reference typed in."""
    return gr.Dropdown(
        model_choices(session),
        value=session.default_model,
        label="Model",
        info="at hand" if session.public else "or type org/name, a folder, an .onnx file",
        allow_custom_value=True,  # the session says what may be loaded, and why not
        filterable=True,
        **options,
    )
