"""What a browser sent: anybody can send it by hand, with parts left out or of other types."""

from collections.abc import Mapping
from typing import Any


def text_of(value: Any) -> str:
    """What was typed or picked, without white space around it; blank for what is no text.

    >>> text_of(" embedded "), text_of(None), text_of(["embedded"])
    ('embedded', '', '')
    """
    return value.strip() if isinstance(value, str) else ""


def part_of(event: Any, name: str) -> Any:
    """What a `gr.EventData` carries under a name; None where it does not."""
    try:
        return getattr(event, name)
    except (AttributeError, TypeError):  # the latter where its data is no object
        return None


def parameters_of(sent: Any) -> dict[str, str]:
    """The parameters of a link, those alone that are texts.

    >>> parameters_of({"tab": "learn", "run": ["a", "b"]}), parameters_of("tab=learn")
    ({'tab': 'learn'}, {})
    """
    pairs = dict(sent).items() if isinstance(sent, Mapping) else ()
    return {name: value for name, value in pairs if isinstance(value, str)}
