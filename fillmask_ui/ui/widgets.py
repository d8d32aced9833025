"""Pieces of HTML and the bridges from the browser to Python that tabs are made of.

Every text that comes from a person, a tokenizer or a model's name passes `text_html`; nothing
else in the page's HTML varies but numbers.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import gradio as gr
from gradio.context import Context

if TYPE_CHECKING:
    from fillmask_ui.models import AvailableModel
    from fillmask_ui.ui.session import Session

_STATIC = Path(__file__).parent / "static"
# Invisible characters that would change or hide what stands beside them.
_SHOWN_CONTROLS = {i: chr(0x2400 + i) for i in range(32)} | {127: "␡"}
_SHOWN_CONTROLS |= {
    ord(c): f"⟨U+{ord(c):04X}⟩"
    for c in "\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
}


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


def printable(text: str) -> str:
    r"""Text that any browser can be sent: lone surrogates become escapes.

    >>> printable("a\ud800")
    'a\\ud800'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def text_html(text: str) -> str:
    r"""Text as HTML that shows just that text, invisible control characters made visible.

    >>> text_html("<b>\x00")
    '&lt;b&gt;␀'
    """
    return html.escape(printable(text).translate(_SHOWN_CONTROLS))


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Attributes:
        text: as shown.
        value: the number behind it, unrounded, where it is one.
        share: in [0, 1], draws a bar behind the number.
        kind: `text`, `number`, `code`, or `action` for the cell whose click acts on the row.
        title: longer text on hover, and the label of an action.
    """

    text: str
    value: float | int | None = None
    share: float | None = None
    kind: Literal["text", "number", "code", "action"] = "text"
    title: str = ""

    def to_html(self) -> str:
        """The cell as `<td>`."""
        shown = text_html(self.text)
        title = f' title="{text_html(self.title)}"' if self.title else ""
        value = "" if self.value is None else f' data-value="{self.value!r}"'
        if self.kind == "action":
            label = f' aria-label="{text_html(self.title)}"' if self.title else ""
            return (
                f'<td class="fm-text"><button type="button" class="fm-pick" dir="auto"{title}'
                f"{label}>{shown}</button></td>"
            )
        if self.kind == "code":
            return f'<td class="fm-text"{title}><code dir="auto">{shown}</code></td>'
        if self.kind == "text":
            return f'<td class="fm-text" dir="auto"{title}>{shown}</td>'
        style = ""
        if self.share is not None:
            style = f' style="--share:{max(0.0, min(1.0, self.share)):.4f}"'
        return f'<td class="fm-number"{value}{style}{title}>{shown}</td>'


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Attributes:
        cells: one a column.
        key: handed to Python when the row is clicked; None for rows that do nothing.
        marked: drawn as special, such as the true word.
    """

    cells: Sequence[Cell]
    key: str | None = None
    marked: bool = False

    def to_html(self) -> str:
        """The row as `<tr>`."""
        marked = ' class="fm-marked"' if self.marked else ""
        key = "" if self.key is None else f' data-key="{text_html(self.key)}"'
        cells = "".join(cell.to_html() for cell in self.cells)
        return f"<tr{marked}{key}>{cells}</tr>"


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
    dropped = " ".join(f"fm-drop-{i}" for i, c in enumerate(columns, start=1) if not c.narrow)
    head = "".join(
        f'<th scope="col" class="{"fm-number" if c.number else "fm-text"}"'
        + (f' title="{text_html(c.title)}"' if c.title else "")
        + f">{text_html(c.name)}</th>"
        for c in columns
    )
    body = "".join(row.to_html() for row in rows)
    below = f'<p class="fm-note">{text_html(note)}</p>' if note else ""
    return (
        f'<div class="fm-table-wrap"><table class="fm-table {dropped}"><caption>'
        f"{text_html(caption)}{below}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def notice_html(
    kind: Literal["hint", "error", "busy", "none"], text: str = "", fraction: float | None = None
) -> str:
    """A message to the reader; errors are announced at once, hints when it suits.

    Args:
        kind: of the message.
        text: the message.
        fraction: part done of what is waited for, in [0, 1].
    """
    if kind == "none":
        return '<div role="status"></div>'
    role = "alert" if kind == "error" else "status"
    bar = ""
    if kind == "busy":
        value = "" if fraction is None else f' value="{fraction:.4f}"'
        bar = f'<progress aria-label="progress"{value}></progress>'
    return f'<div class="fm-notice fm-{kind}" role="{role}">{text_html(text)}{bar}</div>'


def facts_html(facts: Iterable[tuple[str, str]], label: str) -> str:
    """Names and values, both as text."""
    items = "".join(
        f'<div><dt>{text_html(name)}</dt><dd dir="auto">{text_html(value)}</dd></div>'
        for name, value in facts
    )
    return f'<dl class="fm-facts" aria-label="{text_html(label)}">{items}</dl>'


def html_block(value: str = "", *, js_on_load: str | None = None, **options: object) -> gr.HTML:
    """HTML without the built-in style for prose, which draws borders around cells."""
    return gr.HTML(value, js_on_load=js_on_load, apply_default_css=False, **options)


def chips_html(texts: Sequence[str], label: str) -> str:
    """Short texts to click on, in the order given."""
    items = "".join(
        f'<button type="button" class="fm-chip" dir="auto" data-key="{i}">{text_html(text)}'
        "</button>"
        for i, text in enumerate(texts)
    )
    return f'<div class="fm-chips" role="group" aria-label="{text_html(label)}">{items}</div>'


def chips(texts: Sequence[str], label: str, **options: object) -> gr.HTML:
    """Texts to click on; the event `row` carries the number of the one clicked on as `key`."""
    return html_block(chips_html(texts, label), js_on_load=static("table.js"), **options)


def token_strip(value: str = "", **options: object) -> gr.HTML:
    """A strip of tokens; its event `token` carries `token`, `action` and `version`."""
    return html_block(value, js_on_load=static("strip.js"), **options)


def clickable_table(value: str = "", **options: object) -> gr.HTML:
    """A table from `table_html`; its event `row` carries the key of the row clicked on."""
    return html_block(value, js_on_load=static("table.js"), **options)


def chart_bridge(chart_id: str, **options: object) -> gr.HTML:
    """Clicks on the plotly chart inside `#chart_id` as the event `mark`, carrying `key`.

    The key is the mark's entry in the trace's `customdata`.
    """
    script = static("chart.js").replace("CHART_ID", chart_id)
    return html_block("", js_on_load=script, visible="hidden", **options)


def model_choices(session: Session) -> list[tuple[str, str]]:
    """Names and references of the models at hand, the default one first."""
    models = {model.reference: _model_label(model) for model in session.models()}
    first = {session.default_model: models.get(session.default_model, session.default_model)}
    return [(label, reference) for reference, label in (first | models).items()]


def _model_label(model: AvailableModel) -> str:
    note = f" · {model.note}" if model.note else ""
    return f"{model.reference}{note}"


def model_picker(session: Session, **options: object) -> gr.Dropdown:
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


def pulse(**options: object) -> gr.HTML:
    """Its event `submit` fires once inputs stop changing; `fillmask.settle()` asks for it.

    Its value is the number of the latest change; an `echo` is given it with the answer.
    """
    return html_block("0", js_on_load=static("pulse.js"), visible="hidden", **options)


def echo(**options: object) -> gr.HTML:
    """Takes the number of the change that has been answered."""
    return html_block("0", js_on_load=static("echo.js"), visible="hidden", **options)
