"""A round put to the model, and what the wall shows of it: HTML from templates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import segno

from fillmask_ui.errors import OptionError
from fillmask_ui.filling.guesses import Guess, Guesses
from fillmask_ui.filling.prompt import normalise_masks
from fillmask_ui.lessons.class_rounds import Sentence, Split, pool, standing
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
    session: Session, model: MaskedLM, sentence: Sentence, splits: Sequence[Split]
) -> ClassRound:
    """A closed round beside the model."""
    if not splits:
        raise OptionError("nobody has answered: open the sentence again, or go on to another")
    pooled, size = pool(splits), model.signature.vocabulary_size
    asked = [*pooled.shares.values()][:PUT_TO_MODEL]
    said = Guesses(tuple(Guess(word, 100 * share) for word, share in asked), percent=True)
    found = compare(session, model, sentence.text, said, sentence.truth)
    *words, others = (
        WordShare(own.word, pooled.share(own.word), own.other_probability) for own in found.words
    )
    rest = max(0.0, 1.0 - math.fsum(own.people for own in words))
    losses = None
    if found.losses is not None:
        each = [own.nll_nats(sentence.truth, size) for own in splits]
        people, mean = pooled.nll_nats(sentence.truth, size), math.fsum(each) / len(each)
        losses = RoundLosses(people, mean, found.losses.model)
    known = (sentence.text, sentence.question, sentence.truth, len(splits))
    return ClassRound(*known, tuple(words), WordShare("", rest, others.model), losses)


# ---- What the wall shows


def wall_html(room: Room) -> dict[str, str]:
    """The pieces of the wall by the places where they go."""
    now, rounds = room.round, room.run.rounds
    sentence = now.sentence if now else None
    before, _, after = (
        normalise_masks(sentence.text, _GAP).partition(_GAP) if sentence else ("",) * 3
    )
    finished = now.finished if now and room.phase == "revealed" else None
    shown: dict[str, Any] = {
        "phase": room.phase,
        "joined": len(room.students),
        "answered": len(room.splits()),
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
    axis, now, splits = Axis.shares(), room.round, room.splits()
    if now is None or not (finished or splits):
        return []
    if finished is None:
        pooled = pool(splits)
        words = tuple(WordShare(word, share, None) for word, share in pooled.shares.values())
        shares = ClassRound("", "", "", 0, words, WordShare("", pooled.unplaced, None))
        finished = shares.without(now.struck)
    shown, rest = finished.longest(ROWS)
    rows = []
    for own in (*shown, rest):
        marks = axis.pair((own.people, own.model), ("candidate", "reference"))
        if own is rest:
            notes = (f"{len(now.struck)} struck",) if now.struck else ()
            rows.append(Row("other words, or none", marks, notes=notes))
        else:
            truth = bool(finished.truth) and own is shown[0]
            title = "the key x takes it from the wall"
            rows.append(Row(own.word, marks, key=own.word, title=title, truth=truth))
    return rows


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
