"""HTML and other texts from the templates of this room, everything in them escaped.

What comes from users, texts, tokens and models is passed as a value and never joined to markup:
escaping is the template engine's work.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context, select_autoescape
from jinja2.runtime import Context
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
    r"""Text that any browser can be sent and that shows what it holds.

    Invisible control characters become visible ones, lone surrogates escapes. Every text in an
    HTML template passes here.

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


@pass_context
def _shown(context: Context, value: Any) -> Any:
    markdown = str(context.name).endswith(".md")
    return visible(value) if type(value) is str and not markdown else value


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        # A Markdown template writes no HTML; everything else does.
        autoescape=select_autoescape(disabled_extensions=("md",), default=True),
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "cell": numbers.cell_text,
        "in_unit": numbers.in_unit,
        "interval": numbers.interval_text,
        "percent": numbers.percent,
        "signed_percent": numbers.signed_percent,
    }
    return environment


def render(template: str, **values: Any) -> str:
    """A template filled in.

    Args:
        template: file name below `templates/`.
        values: what it names; one that is missing raises. Strings are escaped unless they are
            `markupsafe.Markup`, as is what `render` made and a template includes.
    """
    return _environment().get_template(template).render(**values)
