"""The state of the page in its address, so that a link reproduces the view."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from fillmask_ui.ui.links import MAX_TEXT_CHARACTERS


@dataclass(frozen=True)
class ExploreState:
    """What a link to the Explore tab holds.

    Attributes:
        text: the sentence.
        model: reference of the model.
        k: candidates shown.
        words: candidate words, separated by commas.
        unit: `nats` or `bits`.
    """

    text: str
    model: str
    k: int
    words: str = ""
    unit: str = "nats"


def read(
    parameters: Mapping[str, str], default: ExploreState, *, most: int, units: tuple[str, ...]
) -> ExploreState:
    """The state of an address; what is missing or makes no sense is as in `default`.

    Args:
        parameters: of the address.
        default: of an address without parameters.
        most: the largest k.
        units: those known.

    >>> read({"k": "7", "unit": "pints"}, ExploreState("a [MASK]", "embedded", 10), most=100,
    ...      units=("nats", "bits"))
    ExploreState(text='a [MASK]', model='embedded', k=7, words='', unit='nats')
    """
    k = parameters.get("k", "")
    unit = parameters.get("unit", default.unit)
    return ExploreState(
        text=parameters.get("text", default.text),
        model=parameters.get("model", "").strip() or default.model,
        k=max(1, min(most, int(k))) if k.isdecimal() and len(k) < 10 else default.k,
        words=parameters.get("words", default.words),
        unit=unit if unit in units else default.unit,
    )


def write_script(default: ExploreState) -> str:
    """JavaScript that takes text, model, k, words and unit and writes them to the address."""
    plain = json.dumps(
        {
            "text": default.text,
            "model": default.model,
            "k": default.k,
            "words": default.words,
            "unit": default.unit,
        }
    )
    return (
        "(text, model, k, words, unit) => { window.fillmask.remember("
        f"{{ text, model, k, words, unit }}, {plain}, {MAX_TEXT_CHARACTERS}); }}"
    )
