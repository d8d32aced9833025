"""What two models say of one text, A before B in every field; nothing is rounded.

Probabilities are normalised over the whole vocabulary of the model that gives them.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

from fillmask_ui.records import Filling, finite


@dataclass(frozen=True)
class ComparedCandidate:
    """One word at one mask under both models; None where a model cannot spell it there."""

    word: str  # without the tokenizer's marks, or as asked
    token: str | None  # of A's vocabulary where it is one token there
    token_id: int | None  # the same
    other_token: str | None  # of B's vocabulary where it is one token there
    other_token_id: int | None  # the same
    probability: float | None  # under A
    other_probability: float | None  # under B
    nll_nats: float | None
    other_nll_nats: float | None
    # Among all V tokens, 1 for the best; None for a word of several tokens.
    rank: int | None
    other_rank: int | None
    listed: bool  # whether it is in the top k of A
    other_listed: bool  # whether it is in the top k of B
    asked: bool = False  # whether the user asked about it

    @property
    def difference(self) -> float | None:
        """P under B less P under A."""
        if self.probability is None or self.other_probability is None:
            return None
        return self.other_probability - self.probability

    @property
    def rank_change(self) -> int | None:
        """Places that B puts it above where A does; negative below."""
        if self.rank is None or self.other_rank is None:
            return None
        return self.rank - self.other_rank


@dataclass(frozen=True)
class MaskComparison:
    """One mask under both models."""

    position: int  # of the mask among A's tokens
    other_position: int  # of the mask among B's tokens
    entropy_nats: float
    other_entropy_nats: float
    kl_nats: float | None  # KL(A || B); None where the tokenizers differ
    js_nats: float | None  # Jensen-Shannon divergence; the same
    flipped: bool  # whether the first words differ
    # The top k of both and the words asked about; the larger of both probabilities decides which
    # comes first.
    candidates: tuple[ComparedCandidate, ...]


@dataclass(frozen=True)
class ComparedJoint:
    """All masks of a text filled together, under both models."""

    text: str
    token_ids: tuple[int, ...] | None  # of A; None where A has no such tokens
    nll_nats: float | None  # -ln of the joint probability; None where it needs other tokens
    other_nll_nats: float | None
    listed: bool  # whether A lists it
    other_listed: bool  # whether B lists it


@dataclass(frozen=True)
class Comparison:
    """Two models at the masks of one text."""

    first: Filling  # what A says, as `fill` gives it
    second: Filling  # what B says
    masks: tuple[MaskComparison, ...]  # from left to right
    joint: tuple[ComparedJoint, ...]  # joint fillings that either lists, the most probable first
    by_word: bool  # whether the tokenizers differ, so that words are compared, not tokens
    notes: tuple[str, ...] = ()  # what a reader should know

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values: those of A's filling, each mask with a `compare`.

        Joint fillings of either model, where there are any, are in `joint_compare`.
        """
        shared = {
            "model": self.second.signature.name,
            "signature": str(self.second.signature),
            "by_word": self.by_word,
            "notes": list(self.notes),
        }
        values = self.first.to_dict()
        for mask, compared in zip(values["masks"], self.masks, strict=True):
            mask["compare"] = shared | asdict(compared)
        if self.joint:
            values["joint_compare"] = [asdict(joint) for joint in self.joint]
        return values

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict` as JSON; what is infinite (the loss of an impossible token) becomes null."""
        return json.dumps(
            finite(self.to_dict()), ensure_ascii=False, allow_nan=False, indent=indent
        )
