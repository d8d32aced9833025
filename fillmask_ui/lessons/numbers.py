"""What the numbers that a text states come from, and how they are written."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fillmask_ui.scoring import nll_nats

# What an expression of the front matter may use. Losses are those of the evaluator's code.
NAMES: Mapping[str, Callable[..., Any]] = {
    "ln": math.log,
    "log2": math.log2,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "nll": lambda target, *logits: nll_nats(np.array([logits], np.float32), np.array([target]))[0],
}
# A decimal, a percentage, or a whole number of two digits or more; smaller ones count things.
_STATED = re.compile(r"(?<![\w.])\d(?:[\d,]*\d)?(?:\.\d+)?(?![\w])(?:\s?\\?%)?")


def computed(expression: str) -> float:
    """The value of an expression of the front matter.

    >>> round(computed("-ln(0.7)"), 3)
    0.357
    """
    return float(eval(expression, {"__builtins__": {}, **NAMES}))  # noqa: S307 - of our own files


def value_of(written: str) -> tuple[float, int]:
    """A number as it is written: its value and its digits after the point.

    >>> value_of("1,000"), value_of("80 %"), value_of("0.357")
    ((1000.0, 0), (80.0, 0), (0.357, 3))
    """
    digits = re.sub(r"[,\\%\s]", "", written)
    return float(digits), len(digits.partition(".")[2])


def stated(text: str) -> list[str]:
    r"""The numbers that a text states, as it writes them, but for small whole ones.

    >>> stated(r"At 0.7 the loss is $0.357$; 15\,% of 1,000 words in 2 texts, and 3 %.")
    ['0.7', '0.357', '15 %', '1,000', '3 %']
    """
    found = _STATED.findall(text.replace("\\,", " ").replace("\\%", "%"))
    return [number.strip() for number in found if not re.fullmatch(r"\d", number.strip())]
