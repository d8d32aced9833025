"""The templates that ship (`templates.yaml`)."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from fillmask_ui.schema import from_trusted_values


@dataclass(frozen=True)
class SlotExample:
    """A template to click on."""

    name: str  # on its button
    template: str
    words: str  # to look at, separated by commas; blank for those of the largest spread
    thin: str  # what it does not show


@cache
def slot_examples() -> tuple[SlotExample, ...]:
    """All of them."""
    text = Path(__file__).with_name("templates.yaml").read_text(encoding="utf-8")
    return from_trusted_values(tuple[SlotExample, ...], yaml.safe_load(text), "templates.yaml")
