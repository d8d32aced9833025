"""The losses of the words of a sentence under two models, as two lines along it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fillmask_ui.comparing.word_contrast import ComparedWord
from fillmask_ui.show.drawing import Scale
from fillmask_ui.show.numbers import in_unit

# In units of the drawing, which are pixels at the usual size of letters.
_LEFT, _TOP, _RIGHT, _BOTTOM = 48, 24, 24, 216
_LABELS = 72  # height of the words below
_LEAST, _MOST = 30, 84  # between two words
_WIDTH = 660  # that a short sentence fills
_MAX_LABEL = 12  # characters of a word


@dataclass(frozen=True)
class LossPoint:
    """One word along the sentence."""

    x: float
    label: str  # the word, cut where it is long
    a: float  # where A's loss stands
    b: float  # where B's does
    own: ComparedWord


@dataclass(frozen=True)
class LossLines:
    """Both lines in a drawing of `width` by `height`."""

    points: tuple[LossPoint, ...]
    y: Scale  # of the losses, in the reader's unit
    left: float
    right: float
    width: float
    height: float

    @classmethod
    def of(cls, words: Sequence[ComparedWord], unit: str) -> LossLines | None:
        """Of the words that both models know; None for fewer than two, which make no line."""
        known = [own for own in words if not own.unknown]
        if len(known) < 2:
            return None
        losses = [
            in_unit(nats, unit) for own in known for nats in (own.nll_nats, own.other_nll_nats)
        ]
        # An impossible word stands at the upper end.
        top = max((loss for loss in losses if math.isfinite(loss)), default=1.0)
        y = Scale(0.0, max(top, 0.1) * 1.04, _BOTTOM, _TOP)
        step = max(_LEAST, min(_MOST, (_WIDTH - _LEFT - _RIGHT) / len(known)))
        points = tuple(
            LossPoint(
                x=_LEFT + (number + 0.5) * step,
                label=own.text if len(own.text) <= _MAX_LABEL else own.text[: _MAX_LABEL - 1] + "…",
                a=y(in_unit(own.nll_nats, unit)),
                b=y(in_unit(own.other_nll_nats, unit)),
                own=own,
            )
            for number, own in enumerate(known)
        )
        right = _LEFT + step * len(known)
        return cls(points, y, _LEFT, right, right + _RIGHT, _BOTTOM + _LABELS)

    def path(self, side: str) -> str:
        """The line of `a` or `b` as an SVG polyline takes it."""
        return " ".join(f"{point.x:.1f},{getattr(point, side):.1f}" for point in self.points)
