"""The inputs of the Explore tab in a link, so that it reproduces the view."""

import json
from collections.abc import Mapping
from dataclasses import replace

from fillmask_ui.filling import MAX_TOP_K
from fillmask_ui.ui.explore.view import UNITS, Question
from fillmask_ui.ui.links import MAX_TEXT_CHARACTERS

# Parameter of a link -> field of a question.
FIELDS = {"text": "text", "model": "model", "k": "top_k", "words": "words", "unit": "unit"}


def read(parameters: Mapping[str, str], default: Question) -> Question:
    """The question of a link; what is missing or makes no sense is as in `default`.

    >>> read({"k": "7", "unit": "pints"}, Question("a [MASK]", "embedded"))
    Question(text='a [MASK]', model='embedded', top_k=7, words='', unit='nats', ...)
    """
    k = parameters.get("k", "")
    unit = parameters.get("unit", default.unit)
    return replace(
        default,
        text=parameters.get("text", default.text),
        model=parameters.get("model", "").strip() or default.model,
        top_k=max(1, min(MAX_TOP_K, int(k))) if k.isdecimal() and len(k) < 10 else default.top_k,
        words=parameters.get("words", default.words),
        unit=unit if unit in UNITS else default.unit,
    )


def write_script(default: Question) -> str:
    """JavaScript that takes the inputs in the order of `FIELDS` and writes them to the address."""
    plain = json.dumps({name: getattr(default, field) for name, field in FIELDS.items()})
    names = ", ".join(FIELDS)
    remember = f"window.fillmask.remember({{ {names} }}, {plain}, {MAX_TEXT_CHARACTERS})"
    return f"({names}) => {{ {remember}; }}"
