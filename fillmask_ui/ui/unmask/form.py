"""What the Unmask tab's form holds, read with care: anybody may send anything."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

from fillmask_ui.errors import OptionError
from fillmask_ui.options import Option, options_of
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.unmasking import ORDERS, UnmaskingConfig, masked_prompt

# Positions that are hidden at the beginning: each is a pass of the model and a column of the grid.
MOST_HIDDEN = 100
SIDES = ("A", "B")
# What a visitor finds: one token after another beside all at once.
TEXT = "[MASK] [MASK] [MASK] [MASK] in the morning, and [MASK] [MASK] [MASK] at night."
PLAIN: dict[str, UnmaskingConfig] = {
    "A": UnmaskingConfig(pieces="fitting"),
    "B": UnmaskingConfig(pieces="fitting", max_steps=1),
}
SOURCES = (
    ("text", "a text with masks"),
    ("prompt", "a beginning and an end"),
    ("length", "nothing but a length"),
)
ORDER_LABELS = {
    "top_prob": "largest probability first",
    "prob_diff": "largest lead first",
    "entropy": "smallest entropy first",
    "left_to_right": "from left to right",
    "none": "at random",
}


@dataclass(frozen=True)
class Control:
    """One option of one side, as its control in the form."""

    name: str  # of the control: side and field
    option: Option
    value: str  # as a visitor finds it; blank for not given
    kind: str  # `choice`, `whole` or `number`
    choices: tuple[tuple[str, str], ...] = ()  # value, label


def controls(side: str) -> list[Control]:
    """The controls of one side, one per option of a decoding, in their order."""
    found = []
    for name, own in options_of(UnmaskingConfig).items():
        value = getattr(PLAIN[side], name)
        kind = "choice" if own.choices else "whole" if name in _WHOLE else "number"
        labels = ORDER_LABELS if own.choices == ORDERS else {}
        choices = tuple((choice, labels.get(choice, choice)) for choice in own.choices)
        shown = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        found.append(Control(f"{side}_{name}", own, shown, kind, choices))
    return found


_WHOLE = {
    name for name, kind in get_type_hints(UnmaskingConfig).items() if int in (kind, *get_args(kind))
}


def config_of(values: Mapping[str, str], side: str) -> UnmaskingConfig:
    """The choices of one side.

    Raises:
        OptionError: for a value that is none; the message names the side and the option.
    """
    given: dict[str, Any] = {}
    for name, own in options_of(UnmaskingConfig).items():
        text = values.get(f"{side}_{name}")
        if text is None:
            given[name] = getattr(PLAIN[side], name)
        elif own.choices:
            given[name] = text
        elif text.strip():
            given[name] = _number(text, own, name in _WHOLE)
    try:
        return UnmaskingConfig(**given)
    except OptionError as error:
        raise OptionError(f"setting {side}: {error}") from error


def _number(text: str, own: Option, whole: bool) -> float:
    try:
        return int(text) if whole else float(text)
    except ValueError:
        kind = "a whole number" if whole else "a number"
        raise OptionError(f"{own.label} must be {kind}; it was {text[:40]!r}") from None


def text_of(values: Mapping[str, str], model: MaskedLM) -> str:
    """The text with its masks, from whatever the reader chose to give.

    Raises:
        OptionError: for a length that is none, or too long for a page.
    """
    source = values.get("source", "text")
    if source == "text":
        return values.get("text", TEXT)
    name = "new_tokens" if source == "prompt" else "length"
    written = values.get(name, "8").strip()
    if not re.fullmatch(r"[0-9]{1,4}", written) or not 1 <= int(written) <= MOST_HIDDEN:
        raise OptionError(
            f"the number of tokens must be from 1 to {MOST_HIDDEN}; it was {written[:40]!r}"
        )
    if source == "length":
        return masked_prompt(model.vocabulary, int(written))
    around = {key: values.get(key, "").strip() for key in ("prefix", "suffix")}
    return masked_prompt(model.vocabulary, int(written), **around)
