"""HTML and other texts from the templates of this room, everything in them escaped.

What comes from users, texts, tokens and models is passed as a value and never joined to markup:
escaping is the template engine's work.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import escape

from fillmask_ui.show import numbers

TEMPLATES = Path(__file__).parent / "templates"
# Invisible characters that would change or hide what stands beside them.
_SHOWN_CONTROLS = {i: chr(0x2400 + i) for i in range(32)} | {127: "␡"}
_SHOWN_CONTROLS |= {
    ord(c): f"⟨U+{ord(c):04X}⟩"
    for c in "\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
}


def visible(text: str) -> str:
    r"""Text that any browser can be sent: control characters and lone surrogates are written out.

    Every text in an HTML template passes here.

    >>> visible("a\x00\ud800")
    'a␀\\ud800'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8").translate(_SHOWN_CONTROLS)


def text_html(text: str) -> str:
    r"""Text as HTML that shows just that text, for what takes HTML and no template.

    >>> text_html("<b>\x00")
    '&lt;b&gt;␀'
    """
    return str(escape(visible(text)))


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(TEMPLATES),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=lambda value: visible(value) if type(value) is str else value,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters |= {
    "cell": numbers.cell_text,
    "in_unit": numbers.in_unit,
    "percent": numbers.percent,
}


def render(template: str, **values: Any) -> str:
    """The template of this name below `templates/`, filled in; a value that is missing raises.

    Strings are escaped unless they are `markupsafe.Markup`, as what a template includes is.
    """
    return _ENVIRONMENT.get_template(template).render(**values)
