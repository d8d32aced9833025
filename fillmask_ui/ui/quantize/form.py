"""What the Quantize tab's controls hold, checked: plain values in, an `Order` out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fillmask_ui.errors import OptionError
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.onnx_tools.schemes import SCHEMES, find_scheme
from fillmask_ui.texts import TextChoice, TextSource

EMBEDDED, UPLOAD = "embedded", "upload"
PLACES = {EMBEDDED: "Embedded", UPLOAD: "Upload"}
# What a visitor finds: quick ones that need no texts.
PLAIN_SCHEMES = ("int8", "int8-channel", "fp16")
PLAIN_SAMPLES = 100


@dataclass(frozen=True)
class Order:
    """What is to be made and measured."""

    model: ModelChoice
    schemes: tuple[str, ...]  # in the order of the table of schemes
    exclude: tuple[str, ...]  # what stays in full precision
    source: TextSource  # all texts, in their order
    samples: int  # the first so many are measured; those behind them calibrate


def read_order(values: Mapping[str, Any], default_model: str, *, make: bool = True) -> Order:
    """What the controls ask for.

    Args:
        values: by the names of the controls.
        default_model: what a blank model means.
        make: whether the schemes are wanted; without them, what is there is measured.

    Raises:
        OptionError: for values that make no sense.
    """
    chosen = (values["schemes"] or []) if make else []
    for name in chosen:
        find_scheme(str(name))
    if make and not chosen:
        raise OptionError("no scheme is ticked: tick one or more")
    samples = values["samples"]
    if not isinstance(samples, int | float) or not 1 <= samples < 2**63 or samples % 1:
        raise OptionError(
            f"the number of texts must be a whole number, 1 or more; it was {samples}"
        )
    return Order(
        ModelChoice((values["model"] or "").strip() or default_model),
        tuple(name for name in SCHEMES if name in chosen),
        tuple(dict.fromkeys(filter(None, re.split(r"[,\s]+", (values["exclude"] or "").strip())))),
        _source(values["where"], values["upload"]),
        int(samples),
    )


def _source(where: str, upload: str | None) -> TextSource:
    if where == EMBEDDED:
        return TextSource()
    if where != UPLOAD:
        raise OptionError(f"unknown place of texts {where!r}")
    if not upload:
        raise OptionError("no file was uploaded: choose one, or pick the embedded texts")
    return replace(TextChoice(upload).source(), samples=None)
