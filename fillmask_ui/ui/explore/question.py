"""What the Explore tab asks, as the browser sends it: read with care, since anybody may send it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fillmask_ui.filling import MAX_TOP_K
from fillmask_ui.runs.tokens import TokenPlace
from fillmask_ui.ui.explore.editing import Draft
from fillmask_ui.ui.replay import read_place

UNITS = ("nats", "bits")
# The ends of the axis of the bars: 100 %, or with a magnifying glass 10 % and 1 %.
ZOOMS = (1, 10, 100)
LENSES = ("", "mattered")
# What tints the words of a sentence under two models: A - B, or the loss of either.
TINTS = ("difference", "a", "b")


@dataclass(frozen=True)
class Action:
    """A click on what an earlier answer showed."""

    do: str  # `hide`, `restore`, `choose` or `fill`
    token: int = -1  # of the strip: index of the token to hide, or number of the mask
    key: str = ""  # of a bar or row: `mask:token id`, or `all:token id,token id,...`
    version: str = ""  # `version_of` the text that was clicked on


@dataclass(frozen=True)
class Question:
    """The inputs of the tab at one moment."""

    text: str  # of the sentence box
    model: str = ""  # reference of the model picked; blank for the page's default
    compare: str = ""  # reference of a second model to compare it with; blank for none
    top_k: int = 10  # candidates wanted
    words: str = ""  # candidate words as typed, separated by commas
    unit: str = UNITS[0]  # one of `UNITS`
    selected: int = 0  # number of the mask to show, from 0
    draft: Draft = field(default_factory=Draft)  # of the latest answer
    zoom: int = 1  # one of `ZOOMS`
    other: str = ""  # a second sentence to compare with; blank for none
    lens: str = ""  # one of `LENSES`
    tint: str = TINTS[0]  # one of `TINTS`
    run: TokenPlace | None = None  # a token of a run that is shown as the run saw it; None for none
    alone: bool = False  # that token with nothing else hidden
    visitor: str = ""  # who asks; on a public page runs are theirs alone
    action: Action | None = None  # to be carried out on the draft before it is answered

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> "Question":
        """The question of a browser; what is missing or makes no sense is as by default.

        >>> Question.read({"text": "a [MASK]", "top_k": "7", "unit": "pints"})
        Question(text='a [MASK]', model='', compare='', top_k=7, words='', unit='nats', ...)
        """
        hidden = values.get("hidden")
        entries = hidden if isinstance(hidden, list) else []
        known = tuple(word if isinstance(word, str) and word else None for word in entries)
        action = values.get("action")
        return cls(
            text=_text(values.get("text")),
            model=_text(values.get("model")).strip(),
            compare=_text(values.get("compare")).strip(),
            top_k=_whole(values.get("top_k"), 10, 1, MAX_TOP_K),
            words=_text(values.get("words")),
            unit=_one_of(values.get("unit"), UNITS),
            selected=_whole(values.get("selected"), 0, 0, 1_000_000),
            draft=Draft(_text(values.get("base")), known),
            zoom=_one_of(values.get("zoom"), ZOOMS),
            other=_text(values.get("other")),
            lens=_one_of(values.get("lens"), LENSES),
            tint=_one_of(values.get("tint"), TINTS),
            run=read_place(values),
            alone=bool(values.get("alone")),
            visitor=_text(values.get("visitor")),
            action=_action(action) if isinstance(action, dict) else None,
        )


def _action(values: Mapping[str, Any]) -> Action:
    return Action(
        do=_text(values.get("do")),
        token=_whole(values.get("token"), -1, -1, 1_000_000),
        key=_text(values.get("key")),
        version=_text(values.get("version")),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: Any, default: int, least: int, most: int) -> int:
    """A whole number within bounds, as a number or its digits."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        value = int(value)
    if not isinstance(value, int | float) or value != value:
        return default
    return int(max(least, min(most, value)))


def _one_of(value: Any, known: tuple[Any, ...]) -> Any:
    """A value that is known, else the first known one."""
    same = (entry for entry in known if type(value) is type(entry) and value == entry)
    return next(same, known[0])
