"""A token of a stored run asked about once more, of the very input that the model read then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fillmask_ui.errors import FillmaskError, ModelError
from fillmask_ui.evaluation.replay import Reading, replay, with_stored
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import MaskFilling
from fillmask_ui.runs.tokens import MeasuredToken

if TYPE_CHECKING:
    from fillmask_ui.models.progress import ProgressCallback
    from fillmask_ui.ui.session import Session

# Batches round float32 in the seventh digit, and bfloat16 in the third.
_ROUNDING_NATS = 0.05


@dataclass(frozen=True, eq=False)
class Replayed:
    """What a model says of a token as a run asked for it."""

    token: MeasuredToken
    model: MaskedLM
    reading: Reading  # what it read
    mask: MaskFilling  # what it says; figures that the run has stored are the run's
    changed: str  # a sentence where the model says something else by now; else blank


def replayed(
    session: Session,
    token: MeasuredToken,
    *,
    top_k: int,
    on_progress: ProgressCallback | None = None,
) -> Replayed:
    """Ask the model of a run about one of its tokens again.

    Raises:
        FillmaskError: if the run does not say which model it had, or that is gone or replaced.
    """
    choice = token.choice
    try:
        model = session.model(choice, on_progress)
    except FillmaskError as error:
        raise ModelError(
            f"run {token.info.name} measured {choice.reference}, which cannot be had now: {error}"
        ) from error
    scheme = token.info.config.scheme
    reading = replay(token.row, scheme, model.vocabulary, token.entry)
    found = session.fill_at(
        model, tuple(reading.ids.tolist()), reading.position, reading.true_id, top_k=top_k
    )
    now, then = found.scored[0].nll_nats, float(token.scores.nll_nats[token.entry])
    changed = ""
    if now != then and not abs(now - then) < _ROUNDING_NATS:
        changed = (
            f"The run has a loss of {then:.4f} nats, and asked again the model gives {now:.4f}: it "
            "or what runs it has changed since. The candidates are those of today."
        )
    return Replayed(token, model, reading, with_stored(found, token.scores, token.entry), changed)
