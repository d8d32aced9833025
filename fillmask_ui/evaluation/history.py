"""The mean after ever more texts, for a curve that settles while an evaluation runs."""

from dataclasses import dataclass

from fillmask_ui.evaluation.rows import EvaluatedText
from fillmask_ui.intervals import RatioMoments
from fillmask_ui.records import SkippedText

MAX_ENTRIES = 200


@dataclass(frozen=True)
class MeanSoFar:
    """The mean loss after some of the texts."""

    texts: int  # measured so far
    means: tuple[float, ...]  # mean NLL in nats, one per model
    lows: tuple[float | None, ...]  # lower end of each 95 % interval; None while there is none
    highs: tuple[float | None, ...]  # upper end of each


class History:
    """Entries at even distances, at most `MAX_ENTRIES`: where there are more, every second goes."""

    def __init__(self) -> None:
        self._moments: list[RatioMoments] = []
        self._every = 1
        self.entries: list[MeanSoFar] = []

    def add(self, row: EvaluatedText | SkippedText) -> None:
        if isinstance(row, SkippedText):
            return
        other = row.other.scores if row.other is not None else row.baseline
        scores = [row.scores] if other is None else [row.scores, other]
        self._moments = self._moments or [RatioMoments() for _ in scores]
        for moments, own in zip(self._moments, scores, strict=True):
            moments.add(float(own.nll_nats.sum()), len(own.nll_nats))
        if self._moments[0].texts % self._every == 0:
            self.entries.append(self._entry())
        if len(self.entries) >= MAX_ENTRIES:
            self._every *= 2
            self.entries = self.entries[1::2]

    def _entry(self) -> MeanSoFar:
        intervals = [moments.interval() for moments in self._moments]
        return MeanSoFar(
            self._moments[0].texts,
            tuple(moments.ratio for moments in self._moments),
            tuple(interval.low if interval else None for interval in intervals),
            tuple(interval.high if interval else None for interval in intervals),
        )

    def means(self) -> tuple[MeanSoFar, ...]:
        """All entries, the newest last."""
        if not self._moments or (self.entries and self.entries[-1].texts == self._moments[0].texts):
            return tuple(self.entries)
        return (*self.entries, self._entry())
