"""One hidden token of a stored run, as each of its models met it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluatedText, TokenScores
from fillmask_ui.models.choice import ModelChoice
from fillmask_ui.runs.info import RunInfo
from fillmask_ui.runs.plan import model_choice
from fillmask_ui.runs.store import RunStore


@dataclass(frozen=True)
class TokenPlace:
    """Which token of which run."""

    run: str  # its name
    example: int  # id of the text
    position: int  # of the token, special tokens counted, as the model of `side` tokenizes
    other: str = ""  # name of the run that it is compared with; blank for none
    side: int = 0  # 0 for model A, 1 for model B


@dataclass(frozen=True, eq=False)
class MeasuredToken:
    """A hidden token as one model met it."""

    info: RunInfo  # of the run that has the row
    which: str  # `model` or `baseline` of that run
    row: EvaluatedText  # of its text, as this model tokenizes it
    scores: TokenScores  # of this model
    entry: int  # which of the M hidden tokens

    @property
    def choice(self) -> ModelChoice:
        """How the model was asked for; a `DataError` if the run does not say."""
        return model_choice(self.info, self.which)

    @property
    def signature(self) -> dict[str, Any]:
        """Of the model when it was measured, as `ModelSignature.to_dict` gives it."""
        return dict(getattr(self.info, self.which))


def measured_tokens(store: RunStore, place: TokenPlace) -> tuple[MeasuredToken | None, ...]:
    """The token at a place as each model met it: A, and B where there are two.

    Where the two have different tokenizers, the other model's token is the first that shares a
    character with it, or None if none does.

    Raises:
        DataError: if a run is gone, has no such text, or did not hide that token.
    """
    run = store.open(place.run)
    row = run.row(place.example)
    met = [(run.info, "model", row, row.scores)]
    if place.other:
        other = store.open(place.other)
        second = other.row(place.example)
        met.append((other.info, "model", second, second.scores))
    elif row.baseline is not None:
        met.append((run.info, "baseline", row, row.baseline))
    elif row.other is not None:
        met.append((run.info, "baseline", row.other, row.other.scores))
    if not 0 <= place.side < len(met):
        raise DataError(f"run {run.info.name} measured one model: there is no model B")
    own = met[place.side][2]
    entries = np.flatnonzero(own.cols == place.position)
    if not len(entries):
        raise DataError(
            f"token {place.position} of text {place.example} was not hidden in run {run.info.name}"
        )
    start, end = own.spans[entries[0]].tolist()
    found: list[MeasuredToken | None] = []
    for info, which, text, scores in met:
        same = np.array_equal(text.ids, own.ids) and np.array_equal(text.cols, own.cols)
        overlap = (text.spans[:, 0] < end) & (text.spans[:, 1] > start)
        places = entries if same else np.flatnonzero(overlap)
        token = MeasuredToken(info, which, text, scores, int(places[0])) if len(places) else None
        found.append(token)
    return tuple(found)
