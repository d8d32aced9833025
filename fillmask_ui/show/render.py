"""HTML and other texts from the templates of this room, everything in them escaped.

What comes from users, texts, tokens and models is passed as a value and never joined to markup:
escaping is the template engine's work.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fillmask_ui.show import numbers

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        # A Markdown template writes no HTML; everything else does.
        autoescape=select_autoescape(disabled_extensions=("md",), default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "cell": numbers.cell_text,
        "interval": numbers.interval_text,
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
