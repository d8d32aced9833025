"""What is kept of a class that guessed before its wall: sums of its rounds, nothing of a student.

<root>/<name>/class.json   written anew, whole, after each round
"""

import csv
import json
import math
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TextIO

from fillmask_ui.errors import DataError, opening, unknown
from fillmask_ui.files import finished_file, writing
from fillmask_ui.filling.guesses import key
from fillmask_ui.runs.store import ELSEWHERE
from fillmask_ui.schema import from_json

CLASS_FILE = "class.json"
FORMAT = 1
# A cell that begins with one of these is a formula to a spreadsheet, and strangers typed the words.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
COLUMNS = (
    *("round", "sentence", "hidden_word", "answers", "word", "is_hidden_word", "class_share"),
    *("model_probability", "class_nll_nats", "mean_student_nll_nats", "model_nll_nats"),
)


@dataclass(frozen=True)
class WordShare:
    """A word at the gap."""

    word: str
    people: float  # share of the class's 100 %, in [0, 1]
    model: float | None  # probability; None if the model cannot spell it


@dataclass(frozen=True)
class RoundLosses:
    """-ln of what the hidden word got, in nats; `lessons/class_rounds.py` says of what."""

    people: float  # of the pooled distribution of the class
    student: float  # mean over the students' own
    model: float | None  # None if the model cannot spell the word


@dataclass(frozen=True)
class ClassRound:
    """A round whose answer was shown."""

    text: str  # with a mask
    question: str
    truth: str  # the hidden word; blank if it is unknown
    answers: int  # students who answered
    words: tuple[WordShare, ...]  # the hidden word, then those of the class, then of the model
    rest: WordShare  # all other words: what the class did not place, too
    losses: RoundLosses | None = None  # None if nobody knows the hidden word

    def without(self, struck: set[str]) -> "ClassRound":
        """With these words, by their keys, among the others; the hidden word stays."""
        gone = struck - {key(self.truth)}
        kept = [own for own in self.words if key(own.word) not in gone]
        return replace(self, words=tuple(kept), rest=self._others(kept))

    def longest(self, most: int) -> tuple[list[WordShare], WordShare]:
        """At most so many words, the hidden one and the longest bars, and all others as one."""
        first = 1 if self.truth else 0
        order = sorted(self.words[first:], key=lambda own: -max(own.people, own.model or 0.0))
        kept = [own for own in self.words if own in (*self.words[:first], *order[: most - first])]
        return kept, self._others(kept)

    def _others(self, kept: Sequence[WordShare]) -> WordShare:
        """All words but these."""
        gone, model = [own for own in self.words if own not in kept], self.rest.model
        if model is not None:
            model = min(1.0, model + math.fsum(own.model or 0.0 for own in gone))
        return WordShare("", self.rest.people + math.fsum(own.people for own in gone), model)


@dataclass(frozen=True)
class ClassRun:
    """A class and its finished rounds."""

    model: Mapping[str, Any]  # its signature, as of `RunInfo`
    code: str  # in the address of the room
    secret_sha256: str  # of the lecturer's secret, with which the room opens again
    rounds: tuple[ClassRound, ...] = ()
    name: str = ""  # of the folder
    created: str = ""  # ISO 8601, UTC
    kind: str = "class"
    format: int = FORMAT


class ClassStore:
    """The classes under the folder of the runs; `clock` gives the time for names."""

    def __init__(
        self, root: Path, clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc)
    ) -> None:
        self.root = root
        self._clock = clock

    def save(self, run: ClassRun) -> ClassRun:
        """Write a class, whole or not at all; the first time it gets its name."""
        if not run.name:
            now = self._clock()
            name = f"{now:%Y%m%d-%H%M%S}-{run.code}-class"
            run = replace(run, name=name, created=now.isoformat(timespec="seconds"))
        folder = self.root / run.name
        with writing(self.root, ELSEWHERE):
            folder.mkdir(parents=True, exist_ok=True)
            with finished_file(folder / CLASS_FILE) as fresh:
                fresh.write_text(json.dumps(asdict(run), indent=1, ensure_ascii=False), "utf-8")
        return run

    def names(self) -> list[str]:
        """Names of all classes, oldest first."""
        found = self.root.iterdir() if self.root.is_dir() else ()
        return sorted(own.name for own in found if (own / CLASS_FILE).exists())

    def find(self, name: str) -> str | None:
        """The class with this name or the only one that begins so; None if there is none."""
        found = [own for own in self.names() if name and own.startswith(name)]
        return name if name in found else found[0] if len(found) == 1 else None

    def open(self, name: str) -> ClassRun:
        """A stored class; a `DataError` if there is none, or it cannot be read."""
        full = self.find(name)
        if full is None:
            raise DataError(unknown("class", name, self.names()[-5:]))
        path = self.root / full / CLASS_FILE
        with opening("a class", path):
            run = from_json(ClassRun, path.read_bytes(), f"run {full}: {CLASS_FILE}")
        if run.format != FORMAT:
            raise DataError(f"run {full} has format {run.format}: open it with a newer fillmask-ui")
        return replace(run, name=full)

    def delete(self, name: str) -> str:
        """Remove a class, and give its name back."""
        with writing(self.root / name):
            shutil.rmtree(self.root / name)
        return name


def write_csv(rounds: Iterable[ClassRound], target: TextIO) -> None:
    """A row for each word of each round; losses in nats stand in every row of their round."""
    rows = csv.writer(target, lineterminator="\n")
    rows.writerow(COLUMNS)
    for number, own in enumerate(rounds, start=1):
        losses = own.losses
        numbers = (losses.people, losses.student, losses.model) if losses else ("", "", "")
        head = (number, _plain(own.text), _plain(own.truth), own.answers)
        for word in own.words:
            is_truth = int(bool(own.truth) and word is own.words[0])
            rows.writerow((*head, _plain(word.word), is_truth, word.people, word.model, *numbers))
        rows.writerow((*head, "", 0, own.rest.people, own.rest.model, *numbers))


def _plain(text: str) -> str:
    """Text that no spreadsheet runs as a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
