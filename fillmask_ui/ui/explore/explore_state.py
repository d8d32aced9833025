"""The state of the Explore tab, as the browser sends it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fillmask_ui.errors import OptionError
from fillmask_ui.filling import MAX_TOP_K
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.runs.tokens import TokenPlace
from fillmask_ui.ui.explore.sentence_strip import Draft, carried
from fillmask_ui.ui.session import Session, check_text

Json = dict[str, Any]


@dataclass(frozen=True)
class Action:
    """A click in an earlier answer."""

    do: Literal["hide", "restore", "choose", "fill"]
    token: int = -1  # of the strip: index of the token to hide, or number of the mask
    key: str = ""  # of a bar or row: `mask:token id`, or `all:token id,token id,...`
    version: str = ""  # `version_of` the text that was clicked on


@dataclass(frozen=True)
class Question:
    """The state of the tab at one moment, then arguments of single functions."""

    text: str = ""  # of the sentence box
    model: str = ""  # reference of the model picked; blank for the page's default
    compare: str = ""  # reference of the candidate to compare it with; blank for none
    top_k: int = 10  # candidates listed
    words: str = ""  # candidate words as typed, separated by commas
    unit: Literal["nats", "bits"] = "nats"
    selected: int = 0  # number of the mask to show, from 0
    draft: Draft = field(default_factory=Draft)  # of the latest answer
    # The end of the axis of the bars, 100% or magnified 10% and 1%.
    zoom: Literal[1, 10, 100] = 1
    other: str = ""  # a second sentence to compare with; blank for none
    by: Literal["change", "probability"] = "change"  # order of the words of two sides
    # Tint of the words under two models: the difference of the losses, or that of the
    # reference, `a`, or the candidate, `b`.
    tint: Literal["difference", "a", "b"] = "difference"
    run: TokenPlace | None = None  # a token to show as its run saw it
    alone: bool = False  # that token with nothing else hidden
    visitor: str = ""  # visitor's id; runs on a public page are private
    fields: Mapping[str, str] = field(default_factory=dict)  # those of the chosen `Mode`
    action: Action | None = None  # carried out on the draft first

    label: str = ""  # of the download
    start: int = 0  # number of the first word or sentence wanted
    sentences: tuple[str, ...] | None = None  # to compare two models on; None for embedded ones
    order: Literal["kl", "probability", "rank"] = "kl"  # of the hidden words found there
    bin: int = -1  # of their histogram, to list; -1 for all
    guesses: str = ""  # of a class for the hidden word, as typed
    truth: str = ""  # the hidden word, if the draft lacks it

    def __post_init__(self) -> None:
        if not 1 <= self.top_k <= MAX_TOP_K:
            raise OptionError(f"top k must be from 1 to {MAX_TOP_K}; it was {self.top_k}")
        if self.selected < 0 or self.start < 0:
            raise OptionError("numbers of masks and words begin at 0")


@dataclass(frozen=True)
class LoadedQuestion:
    """A question whose model is loaded."""

    question: Question
    model: MaskedLM
    draft: Draft  # of the sentence box, with the words known behind its masks

    @classmethod
    def read(cls, session: Session, question: Question) -> "LoadedQuestion":
        """Load the model of a question; a `FillmaskError` if it or the text is refused."""
        check_text(question.text)
        model = session.model(question.model)
        text, mask_token = question.text, model.vocabulary.mask_token
        return cls(question, model, carried(question.draft, text, mask_token))

    @property
    def text(self) -> str:
        """With the model's own masks."""
        return self.draft.text

    @property
    def mask(self) -> int:
        """Number of the chosen mask, from 0."""
        return self.question.selected if self.question.selected < len(self.draft.hidden) else 0

    @property
    def several(self) -> bool:
        """Whether a mask has to be told from others."""
        return len(self.draft.hidden) > 1
