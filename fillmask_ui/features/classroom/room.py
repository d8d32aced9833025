"""A room: students with what they sent, the round that is on, and the finished ones.

Everything a stranger can fill has a bound. Methods are quick and called by the server's event loop
alone; what takes a model is computed in a thread (`judge.py`) and handed to `reveal`.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.features.classroom.class_rounds import ClassSentence, checked_word, smoothed_nll
from fillmask_ui.features.classroom.class_run import ClassRound, ClassRun
from fillmask_ui.filling.guesses import Guesses, key

MOST_STUDENTS = 1000
MOST_ROUNDS = 100
MOST_ROOMS = 50
STALE_SECONDS = 120  # a room whose wall has not asked for so long makes room for another
ROOM_SECONDS = 6 * 3600  # after which a room ends, also before a wall that still asks
MOST_STRUCK = 1000  # words of a round
LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"  # none is taken for another
CODE_LETTERS = 4

Phase = Literal["waiting", "open", "closed", "revealed", "ended"]


@dataclass
class Student:
    """One phone, by the random id that it keeps."""

    split: Guesses | None = None  # in the round that is on
    losses: dict[str, float] = field(default_factory=dict)  # of finished sentences, in nats


@dataclass
class Round:
    """The round that is on."""

    number: int  # counts the sentences shown, so that no answer goes to another sentence
    sentence: ClassSentence
    phase: Phase = "open"
    struck: set[str] = field(default_factory=set)  # keys of words taken from the wall
    finished: ClassRound | None = None


class Room:
    """One class against the model of a reference; `run` is what was finished so far."""

    def __init__(self, model: str, run: ClassRun) -> None:
        self.model, self.run = model, run
        self.opened = self.seen = 0.0  # when the wall asked first and last, by the rooms' clock
        self.version = 0  # of what the wall shows
        self.wall: dict[str, Any] = {}  # as it was drawn last, at its own version
        self.phase_version = secrets.randbelow(2**31)  # of what phones show; new in a new process
        self.round: Round | None = None
        self.ended = False
        self.students: dict[str, Student] = {}
        self._asked = 0  # sentences

    def join(self, student: str) -> None:
        """A phone comes in, or comes back; a `DataError` if the room is full."""
        if student in self.students:
            return
        if len(self.students) >= MOST_STUDENTS:
            raise DataError(f"the class is full: it has {MOST_STUDENTS:,} students")
        self.students[student] = Student()
        self.version += 1

    def answer(self, student: str, number: int, split: Guesses) -> bool:
        """Replace a student's answer to a round; False if the round is not open any more."""
        sender, current = self.students[student], self.round
        if current is None or current.number != number or current.phase != "open":
            return False
        sender.split = split if split.guesses else None  # none at all is taken back
        self.version += 1
        return True

    def for_phone(self, student: str) -> dict[str, Any]:
        """What a phone shows, as JSON."""
        owner, current = self.students[student], self.round
        status: dict[str, Any] = {"version": self.phase_version, "phase": self.phase}
        if current is None:
            return status
        status |= {"round": current.number, **vars(current.sentence), "truth": ""}
        if owner.split:
            status["sent"] = [(guess.word, guess.amount) for guess in owner.split.guesses]
        if current.finished is not None and current.phase == "revealed":
            status["truth"], losses = current.finished.truth, current.finished.losses
            status["own"] = owner.losses.get(current.sentence.text)
            if losses is not None:
                status |= {"people": losses.people, "model": losses.model}
        if owner.losses:
            status["mean"] = sum(owner.losses.values()) / len(owner.losses)
            status["rounds"] = len(owner.losses)
        return status

    @property
    def phase(self) -> Phase:
        return "ended" if self.ended else self.round.phase if self.round else "waiting"

    def is_lecturer(self, secret: str) -> bool:
        return hmac.compare_digest(hashed(secret), self.run.secret_sha256)

    def ask(self, sentence: ClassSentence) -> None:
        """Show a sentence: its round if it is the one on, its result if it was finished."""
        self.ended = False
        if self.round is None or self.round.sentence.text != sentence.text:
            earlier = (past for past in self.run.rounds if past.text == sentence.text)
            done = next(earlier, None)
            if done is None and len(self.run.rounds) >= MOST_ROUNDS:
                raise OptionError(f"a class has at most {MOST_ROUNDS} rounds: open another class")
            for student in self.students.values():
                student.split = None
            self._asked += 1
            phase: Phase = "revealed" if done else "open"
            self.round = Round(self._asked, sentence, phase, finished=done)
        elif self.round.phase == "closed":
            self.round.phase = "open"
        self._changed()

    def close(self) -> None:
        if self.round and self.round.phase == "open":
            self.round.phase = "closed"
            self._changed()

    def tell(self, truth: str) -> None:
        """Name the hidden word of a round that is not yet revealed."""
        if (current := self.round) and current.finished is None:
            current.sentence = replace(current.sentence, truth=checked_word(truth))
            self.version += 1

    def strike(self, word: str) -> None:
        """Take a word that somebody said from the wall and what is kept; losses do not change."""
        current = self.round
        if current is None or len(current.struck) >= MOST_STRUCK:
            return
        words = [guess.word for split in self.splits() for guess in split.guesses]
        words += [share.word for share in current.finished.words] if current.finished else []
        if key(word) not in map(key, words):
            return
        current.struck |= {key(word)}
        if (old := current.finished) is not None:
            current.finished = old.without(current.struck)
            rounds = (current.finished if past is old else past for past in self.run.rounds)
            self.run = replace(self.run, rounds=tuple(rounds))
        self.version += 1

    def splits(self) -> list[Guesses]:
        return [student.split for student in self.students.values() if student.split]

    def reveal(self, number: int, finished: ClassRound, vocabulary_size: int) -> None:
        """Finish the closed round of this number, unless another one is on by now."""
        current = self.round
        if current is None or current.number != number or current.phase != "closed":
            return
        finished = finished.without(current.struck)
        current.phase, current.finished = "revealed", finished
        self.run = replace(self.run, rounds=(*self.run.rounds, finished))
        for student in self.students.values():
            if student.split and (truth := finished.truth):
                student.losses[finished.text] = smoothed_nll(student.split, truth, vocabulary_size)
        self._changed()

    def end(self) -> None:
        """Show who was better; a sentence asked later goes on."""
        self.ended = True
        self._changed()

    def _changed(self) -> None:
        self.version += 1
        self.phase_version += 1


def hashed(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Rooms:
    """All rooms of a page, bounded in number and age."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rooms: dict[str, Room] = {}

    def get(self, code: str) -> Room | None:
        self._end_old()
        return self._rooms.get(code.upper())

    def add(self, room: Room) -> None:
        """Open a room under a free code, or its own; a `DataError` if the page takes no more."""
        self._end_old()
        room.opened = room.seen = self._clock()
        if len(self._rooms) >= MOST_ROOMS:
            oldest = min(self._rooms.values(), key=lambda candidate: candidate.seen)
            if room.seen - oldest.seen < STALE_SECONDS:
                raise DataError(f"all {MOST_ROOMS} classes of this page are taken: try again later")
            del self._rooms[oldest.run.code]
        while not room.run.code or room.run.code in self._rooms:
            code = "".join(secrets.choice(LETTERS) for _ in range(CODE_LETTERS))
            room.run = replace(room.run, code=code)
        self._rooms[room.run.code] = room

    def _end_old(self) -> None:
        rooms, timestamp = self._rooms.values(), self._clock()
        self._rooms = {
            room.run.code: room for room in rooms if timestamp - room.opened <= ROOM_SECONDS
        }
