"""The losses that the curve of -ln p shows: one point per mask."""

import contextlib
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


def loss_points(
    session: Session, model: MaskedLM, filling: Filling, words: tuple[str | None, ...], unit: str
) -> tuple[LossPoint, ...]:
    """A point for each of the first masks; `words` are what they hide, one entry per mask."""
    points = []
    for mask, word in enumerate(words[:MAX_POINTS]):
        best = filling.masks[mask].candidates[0]
        scored: ScoredWord | None = None
        if word is not None:
            # What cannot be scored has no loss; then the point is of the first candidate.
            with contextlib.suppress(OptionError, TextError):
                scored = session.score_at(model, filling.encoding.text, word, mask)
        name = scored.word if scored else best.word.strip() or best.token
        own = scored or best
        texts = (percent(own.probability), loss_text(own.nll_nats, unit))
        points.append(
            LossPoint(mask, name, scored is not None, own.probability, own.nll_nats, texts)
        )
    return tuple(points)


def points_dict(points: tuple[LossPoint, ...]) -> list[dict[str, Any]]:
    """Points as the browser takes them; an infinite loss becomes null."""
    return [finite(asdict(point)) for point in points]
