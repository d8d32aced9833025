"""A round put to the model, and what the wall shows of it: HTML from templates."""

import math
from collections.abc import Sequence
from typing import Any

import segno

from fillmask_ui.errors import OptionError
from fillmask_ui.filling.guesses import Guess, Guesses
from fillmask_ui.filling.prompt import normalise_masks
from fillmask_ui.lessons.class_rounds import Sentence, Split, Standing, pool, standing
from fillmask_ui.lessons.masked_position import find_masked_position
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.runs.class_run import ClassRound, RoundLosses, WordShare
from fillmask_ui.show.bars import Axis, Row
from fillmask_ui.show.numbers import loss_number
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
    found, axis = standing(rounds), Axis.shares()
    curve = [own.losses for own in rounds if own.losses and own.losses.model is not None]
    shown |= {"rows": _rows(room, finished), "axis": axis, "standing": found, "rounds": rounds}
    shown["curve"] = curve if len(curve) > 1 else None
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


def verdict(found: Standing) -> str:
    """Who was better and by how much, in a sentence."""
    gap = found.people_nats - found.model_nats
    who = "class" if gap < 0 else "model"
    of = f"over {found.sentences} sentences" if found.sentences > 1 else "on the first sentence"
    if loss_number(found.people_nats, "nats") == loss_number(found.model_nats, "nats"):
        return f"Class and model are level {of}."
    by = f"the {who} by {abs(gap):.2f} nats a sentence {of}"
    if found.interval is None:
        return f"Ahead: {by}."
    low, high = found.interval.low, found.interval.high
    if gap < 0:
        low, high = -high, -low
    between = f"95% interval {low:+.2f} to {high:+.2f}".replace("-", "−")
    if low > 0:
        return f"Better: {by} ({between})."
    return f"Ahead: {by}, which is not settled ({between} holds zero)."


def qr_rows(address: str) -> list[list[bool]]:
    """The modules of a QR code, with its quiet zone; True is dark."""
    code = segno.make(address, micro=False, error="m")
    return [[bool(cell) for cell in row] for row in code.matrix_iter(border=2)]
