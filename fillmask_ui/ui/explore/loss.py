"""The points on the curve of -ln p: one per mask."""

import contextlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Filling, ScoredWord, finite
from fillmask_ui.show.numbers import loss_text, percent
from fillmask_ui.ui.session import Session

# Each further one may cost a pass of the model.
MAX_POINTS = 8


@dataclass(frozen=True)
class LossPoint:
    """The hidden word of a mask on the curve, or its first candidate where none is known."""

    mask: int  # its number, from 0
    word: str
    hidden: bool  # whether it is the hidden word
    probability: float
    nll_nats: float  # infinite for an impossible word
    texts: tuple[str, str]  # probability and loss as they are read


def loss_point(filling: Filling, mask: int, hidden: ScoredWord | None, unit: str) -> LossPoint:
    """The point of one mask; `hidden` is its word where that is known and can be scored."""
    best = filling.masks[mask].candidates[0]
    own = hidden or best
    word = own.word.strip() or best.token
    texts = (percent(own.probability), loss_text(own.nll_nats, unit))
    return LossPoint(mask, word, hidden is not None, own.probability, own.nll_nats, texts)


def loss_points(
    session: Session, model: MaskedLM, filling: Filling, words: Sequence[str | None], unit: str
) -> list[LossPoint]:
    """A point for each of the first masks; `words` are what they hide, one entry per mask."""
    points = []
    for mask, word in enumerate(words[:MAX_POINTS]):
        scored: ScoredWord | None = None
        if word is not None:
            # What cannot be scored has no loss; then the point is of the first candidate.
            with contextlib.suppress(OptionError, TextError):
                scored = session.score_at(model, filling.encoding.text, word, mask)
        points.append(loss_point(filling, mask, scored, unit))
    return points


def points_json(points: Sequence[LossPoint]) -> list[dict[str, Any]]:
    """Points as the browser takes them; an infinite loss becomes null."""
    return [finite(asdict(point)) for point in points]
