"""A round put to the model, and what the wall shows of it: HTML from templates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import segno

from fillmask_ui.errors import OptionError
from fillmask_ui.filling.guesses import Guess, Guesses, key
from fillmask_ui.filling.prompt import normalise_masks
from fillmask_ui.lessons.class_rounds import Pooled, Sentence, standing
from fillmask_ui.lessons.masked_position import find_masked_position
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.runs.class_run import ClassRound, RoundLosses, WordShare
from fillmask_ui.show.bars import Axis, Row
from fillmask_ui.show.class_standing import verdict
from fillmask_ui.show.render import render
from fillmask_ui.ui.classroom.room import Room
from fillmask_ui.ui.explore.guess_view import compare
from fillmask_ui.ui.session import Session, check_text

PUT_TO_MODEL = 12  # words of the class, the most frequent ones
ROWS = 8  # on the wall
_GAP = "____"


def check_sentence(model: MaskedLM, text: str) -> None:
    """A `FillmaskError` unless the model can be asked about the one gap of a sentence."""
    check_text(text)
    find_masked_position(model, text)


def judge(
    session: Session, model: MaskedLM, sentence: Sentence, pooled: Pooled, students: Sequence[float]
) -> ClassRound:
    """A closed round beside the model; `students` are the losses of each, in nats."""
    if not pooled.students:
        raise OptionError("nobody has answered: open the sentence again, or go on to another")
    asked = [*pooled.words.values()][:PUT_TO_MODEL]
    said = Guesses(tuple(Guess(word, 100 * share) for word, share in asked), percent=True)
    found = compare(session, model, sentence.text, said, sentence.truth)
    words = [
        WordShare(own.word, _share(pooled, own.word), own.other_probability) for own in found.words
    ]
    rest = max(0.0, 1.0 - math.fsum(own.people for own in words[:-1]))
    losses = None
    if found.losses is not None:
        people = pooled.nll_nats(sentence.truth, model.signature.vocabulary_size)
        mean = math.fsum(students) / len(students)
        losses = RoundLosses(people, mean, found.losses.model)
    return ClassRound(
        sentence.text,
        sentence.question,
        sentence.truth,
        pooled.students,
        tuple(words[:-1]),
        WordShare("", rest, words[-1].model),
        losses,
    )


def _share(pooled: Pooled, word: str) -> float:
    return pooled.words.get(key(word), ("", 0.0))[1]


# ---- What the wall shows


def wall_html(room: Room) -> dict[str, str]:
    """The pieces of the wall by the places where they go."""
    joined, answered = room.counts()
    now, rounds = room.round, room.run.rounds
    sentence = now.sentence if now else None
    before, _, after = (
        normalise_masks(sentence.text, _GAP).partition(_GAP) if sentence else ("",) * 3
    )
    finished = now.finished if now and room.phase == "revealed" else None
    shown: dict[str, Any] = {
        "phase": room.phase,
        "joined": joined,
        "answered": answered,
        "sentence": sentence,
        "gap": (before, after),
        "finished": finished,
    }
    rows, axis = _rows(room, finished), Axis.shares()
    found = standing(rounds)
    curve = Curve.of(rounds) if found and found.sentences > 1 else None
    shown |= {"rows": rows, "axis": axis, "standing": found, "curve": curve, "rounds": rounds}
    shown["verdict"] = verdict(found) if found else ""
    pieces = ("sentence", "said", "main", "side")
    return {name: render(f"page/class/{name}.html", **shown) for name in pieces}


def _rows(room: Room, finished: ClassRound | None) -> list[Row]:
    """The words with the class's bars, and the model's once they are shown."""
    axis, now = Axis.shares(), room.round
    if now is None:
        return []
    title = "the key x takes it from the wall"
    if finished is not None:
        words, rest = finished.words, finished.rest
        truth = key(finished.truth)
    else:
        pooled = room.pooled()
        words = tuple(WordShare(word, share, None) for word, share in pooled.words.values())
        rest, truth = WordShare("", pooled.unplaced, None), ""
        if not pooled.students:
            return []
    kept = [own for own in words if key(own.word) not in now.struck or key(own.word) == truth]
    shown = kept if finished is not None else kept[:ROWS]
    shown = _most(shown, truth) if finished is not None else shown
    rows = [
        Row(
            own.word,
            axis.pair((own.people, own.model), ("candidate", "reference")),
            key=own.word,
            title=title,
            truth=bool(truth) and key(own.word) == truth,
        )
        for own in shown
    ]
    people = rest.people + sum(own.people for own in words if own not in shown)
    model = rest.model
    if model is not None:
        model += sum(own.model or 0.0 for own in words if own not in shown)
    notes = (f"{len(now.struck)} struck",) if now.struck else ()
    marks = axis.pair(
        (min(people, 1.0), None if model is None else min(model, 1.0)), ("candidate", "reference")
    )
    return [*rows, Row("other words, or none", marks, notes=notes)]


def _most(words: Sequence[WordShare], truth: str) -> list[WordShare]:
    """The hidden word and those with the longest bars."""
    order = sorted(words, key=lambda own: max(own.people, own.model or 0.0), reverse=True)
    chosen = [own for own in order if key(own.word) != truth][: ROWS - 1]
    return [own for own in words if key(own.word) == truth or own in chosen]


@dataclass(frozen=True)
class Curve:
    """Losses of both, round by round, and where they stand in a drawing."""

    points: tuple[tuple[int, float, float], ...]  # round, class, model
    top: float  # end of the axis of losses, in nats

    @classmethod
    def of(cls, rounds: Sequence[ClassRound]) -> "Curve":
        both = [(own.losses.people, own.losses.model) for own in rounds if own.losses]
        known = [(people, model) for people, model in both if model is not None]
        points = tuple((number, *own) for number, own in enumerate(known, start=1))
        return cls(points, max(1.0, *(max(own) for own in known)))


def qr_rows(address: str) -> list[list[bool]]:
    """The modules of a QR code, with its quiet zone; True is dark."""
    code = segno.make(address, micro=False, error="m")
    return [[bool(cell) for cell in row] for row in code.matrix_iter(border=2)]
