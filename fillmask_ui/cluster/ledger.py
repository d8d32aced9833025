"""What the processes of an evaluation tell one actor: attempts, blame, how far they are.

A process that ends in the middle leaves no message, so each unit of work is noted before it is
begun. A unit that was begun twice already is measured carefully: what is tried is noted text by
text and batch by batch, so that the next attempt knows in what the last one ended.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

# Of a cell of a pipeline: number of the cell, of the block, and of the part of the block.
Unit = tuple[int, int, int]
# So many processes may end in a step before its texts are treated otherwise. A process that is
# killed by chance must not change a batch; a text that comes to be tried alone has ended two.
TRIES = {"prepare": 2, "batch": 2, "alone": 1}
# A process that has told nothing for so long is not counted.
_SILENT_SECONDS = 20.0


@dataclass(frozen=True)
class Trial:
    """What a process is about to do with some texts: `prepare` them, a `batch`, or one `alone`."""

    step: str
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Attempt:
    """How a unit is to be measured."""

    wanted: bool = True  # no for a cell that was given up
    careful: bool = False  # note each trial
    # Texts that have ended processes while they were prepared: no batch can have them.
    unreadable: frozenset[int] = frozenset()
    # Texts whose batch has ended processes: they are tried alone.
    suspects: frozenset[int] = frozenset()
    alone: frozenset[int] = frozenset()  # of those, texts that have ended processes alone, too


@dataclass
class Reading:
    """What is known of the texts of a cell."""

    expected: int | None = None  # texts in all
    available: int | None = None  # rows of the data
    # Of each reading task that has ended, by the first text of its stretch: units, and of its texts
    # those given, blank and cut, as of `SourceReport`. A task that is run again says the same.
    ended: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)

    @property
    def totals(self) -> tuple[int, int, int, int]:
        """Units, given, blank and cut texts of all tasks that have ended."""
        units, given, blank, cut = (
            sum(column) for column in zip(*self.ended.values(), strict=True)
        )
        return units, given, blank, cut


@dataclass
class Report:
    """What the driver asks for about twice a second."""

    readings: dict[int, Reading] = field(default_factory=dict)  # by cell
    # Of units under way: texts through, by share of the work, and tokens scored.
    under_way: dict[Unit, tuple[float, int]] = field(default_factory=dict)
    workers: int = 0  # that have told something of late
    aside: dict[int, list[int]] = field(default_factory=dict)  # by cell: texts that were set aside


class Ledger:
    """The notes of one pipeline; becomes an actor.

    Args:
        workers: processes that hold the model.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._starts = 0  # since a process last had the model
        self._attempts = Counter[Unit]()
        self._trials: dict[Unit, Trial] = {}  # begun and not ended
        self._blamed = Counter[tuple[Unit, Trial]]()
        self._given_up = set[int]()
        self._heard: dict[str, float] = {}
        self._report = Report()

    def start(self) -> bool:
        """Whether a process that starts should load the model, or too many have ended in that."""
        self._starts += 1
        return self._starts <= 2 * self._workers + 6

    def loaded(self) -> None:
        self._starts = 0

    def begin(self, worker: str, unit: Unit) -> Attempt:
        """Note that a process begins a unit; how it is to do that."""
        self._heard[worker] = time.monotonic()
        self._attempts[unit] += 1
        if trial := self._trials.pop(unit, None):
            self._blamed[unit, trial] += 1
        blamed: dict[str, set[int]] = {"prepare": set(), "batch": set(), "alone": set()}
        for (own, trial), times in self._blamed.items():
            if own == unit and times >= TRIES[trial.step]:
                blamed[trial.step].update(trial.ids)
        self._report.under_way[unit] = (0.0, 0)
        return Attempt(
            self.wants(unit[0]),
            self._attempts[unit] > 1,
            *(frozenset(blamed[step]) for step in ("prepare", "batch", "alone")),
        )

    def give_up(self, cell: int) -> None:
        """Nobody wants the rest of a cell."""
        self._given_up.add(cell)

    def attempt(self, unit: Unit, trial: Trial) -> None:
        """Note what is about to be tried."""
        self._trials[unit] = trial

    def tell(self, worker: str, unit: Unit, texts: float, tokens: int) -> None:
        """How far a unit is."""
        self._heard[worker] = time.monotonic()
        if unit in self._report.under_way:
            self._report.under_way[unit] = (texts, tokens)

    def end(self, unit: Unit, aside: Iterable[int]) -> None:
        """A unit is measured."""
        self._trials.pop(unit, None)
        self._report.under_way.pop(unit, None)
        if ids := sorted(aside):
            known = self._report.aside.setdefault(unit[0], [])
            known += [index for index in ids if index not in known]

    def wants(self, cell: int) -> bool:
        """Whether the rest of a cell is wanted."""
        return cell not in self._given_up

    def read(self, cell: int, expected: int | None, available: int | None) -> None:
        """What is known of the texts of a cell when they are open."""
        reading = self._report.readings.setdefault(cell, Reading())
        reading.expected, reading.available = expected, available

    def read_all(
        self, cell: int, first: int, available: int | None, counts: tuple[int, int, int, int]
    ) -> None:
        """A reading task has come to its end."""
        reading = self._report.readings.setdefault(cell, Reading())
        reading.ended[first] = counts
        if available is not None:
            reading.available = available

    def report(self) -> Report:
        now = time.monotonic()
        # Of those that have ended, some were heard a moment ago.
        heard = sum(now - at < _SILENT_SECONDS for at in self._heard.values())
        self._report.workers = min(self._workers, heard)
        return self._report
