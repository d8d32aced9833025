"""What is kept of a class that guessed before its wall: sums of its rounds, nothing of a student.

<root>/<name>/class.json   written anew, whole, after each round
"""

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any, TextIO

from fillmask_ui.errors import opening
from fillmask_ui.files import csv_cell, write_text, writing
from fillmask_ui.filling.guesses import key
from fillmask_ui.runs.store import ELSEWHERE, RunStore
from fillmask_ui.schema import from_json

CLASS_FILE = "class.json"
COLUMNS = (
    *("round", "sentence", "hidden_word", "answers", "word", "is_hidden_word", "class_share"),
    *("model_probability", "class_nll_nats", "mean_student_nll_nats", "model_nll_nats"),
)


@dataclass(frozen=True)
class WordShare:
    """A word at the gap."""

    word: str
    people: float  # share of the class's 100%, in [0, 1]
    model: float | None  # probability; None if the model cannot spell it
    sub_tokens: int = 1  # with more its probability is not part of the model's 100%


@dataclass(frozen=True)
class RoundLosses:
    """Losses on the hidden word, in nats; `class_rounds.py` defines the distribution."""

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
        remaining = [share for share in self.words if key(share.word) not in gone]
        return replace(self, words=tuple(remaining), rest=self._others(remaining))

    def longest(self, most: int) -> tuple[list[WordShare], WordShare]:
        """At most so many words, the hidden one and the longest bars, and all others as one."""
        first = 1 if self.truth else 0
        order = sorted(self.words[first:], key=lambda share: -max(share.people, share.model or 0.0))
        chosen = {*self.words[:first], *order[: most - first]}
        longest = [share for share in self.words if share in chosen]
        return longest, self._others(longest)

    def _others(self, listed: Sequence[WordShare]) -> WordShare:
        listed_shares = set(listed)
        gone, model = [share for share in self.words if share not in listed_shares], self.rest.model
        if model is not None:
            model = min(1.0, model + math.fsum(share.model or 0.0 for share in gone))
        return WordShare("", self.rest.people + math.fsum(share.people for share in gone), model)


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


class ClassStore(RunStore):
    """The classes under the folder of the runs."""

    file = CLASS_FILE

    def save(self, run: ClassRun) -> ClassRun:
        """Write a class, whole or not at all; the first time it gets its name."""
        if not run.name:
            created = self._clock()
            name = f"{created:%Y%m%d-%H%M%S}-{run.code}-class"
            run = replace(run, name=name, created=created.isoformat(timespec="seconds"))
        folder = self.root / run.name
        with writing(self.root, ELSEWHERE):
            folder.mkdir(parents=True, exist_ok=True)
        write_text(json.dumps(asdict(run), indent=1, ensure_ascii=False), folder / CLASS_FILE)
        return run

    def read(self, name: str) -> ClassRun:
        """A stored class, by its name as for `folder`; a `DataError` if it cannot be read."""
        folder = self.folder(name)
        with opening("a class", folder / CLASS_FILE):
            content = (folder / CLASS_FILE).read_bytes()
        run = from_json(ClassRun, content, f"run {folder.name}: {CLASS_FILE}")
        return replace(run, name=folder.name)


def write_csv(rounds: Iterable[ClassRound], target: TextIO) -> None:
    """A row for each word of each round; losses in nats stand in every row of their round."""
    rows = csv.writer(target, lineterminator="\n")
    rows.writerow(COLUMNS)
    for number, class_round in enumerate(rounds, start=1):
        numbers = astuple(class_round.losses) if class_round.losses else ("", "", "")
        head = (number, class_round.text, class_round.truth, class_round.answers)
        for word in (*class_round.words, class_round.rest):
            is_truth = int(bool(class_round.truth) and word is class_round.words[0])
            row = (*head, word.word, is_truth, word.people, word.model, *numbers)
            rows.writerow(map(csv_cell, row))
