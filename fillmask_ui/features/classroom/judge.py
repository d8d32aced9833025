"""A round put to the model, and what the wall shows of it: HTML from templates."""

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import islice
from typing import Any

from starlette.concurrency import run_in_threadpool

from fillmask_ui.errors import OptionError
from fillmask_ui.features.classroom.class_rounds import Standing, pool, smoothed_nll, standing
from fillmask_ui.features.classroom.class_run import ClassRound, RoundLosses, WordShare
from fillmask_ui.features.classroom.room import Room, Round
from fillmask_ui.filling.guesses import Guesses, key
from fillmask_ui.filling.prompt import normalise_masks
from fillmask_ui.show.bars import Axis, BarRow
from fillmask_ui.show.numbers import is_zero, signed
from fillmask_ui.show.render import render
from fillmask_ui.ui.explore.guess_view import compare
from fillmask_ui.ui.session import Session

PUT_TO_MODEL = 12  # words of the class, the most frequent ones
ROWS = 8  # on the wall


async def reveal(session: Session, room: Room) -> None:
    """Close the round that is on, and finish it beside the model, asked in a thread."""
    room.close()
    now, splits = room.round, room.splits()
    if now is None or now.phase != "closed":
        raise OptionError("no round is open: show a sentence first")
    if not splits:
        raise OptionError("nobody has answered: open the sentence again, or ask another one")
    sentence, pooled = now.sentence, pool(splits)
    said = replace(pooled, guesses=pooled.guesses[:PUT_TO_MODEL])
    model = await run_in_threadpool(session.model, room.model)
    asked = (session, model, sentence.text, said, sentence.truth)
    found = await run_in_threadpool(compare, *asked)
    *words, others = (
        WordShare(
            own.word,
            pooled.share(own.word),
            own.candidate_probability,
            found.parts.get(own.word, 1),
        )
        for own in found.words
    )
    rest = WordShare("", max(0.0, 1.0 - math.fsum(own.people for own in words)), others.model)
    losses, size = None, model.signature.vocabulary_size
    if found.losses is not None:
        people, *each = (smoothed_nll(own, sentence.truth, size) for own in (pooled, *splits))
        losses = RoundLosses(people, math.fsum(each) / len(each), found.losses.model)
    known = (sentence.text, sentence.question, sentence.truth, len(splits))
    room.reveal(now.number, ClassRound(*known, tuple(words), rest, losses), size)


# ---- What the wall shows


def wall(room: Room) -> dict[str, Any]:
    """What the wall shows, as JSON; its `html` by the places where it goes. Kept for a version."""
    if room.wall.get("version") == room.version:
        return room.wall
    # The version first: what changes meanwhile is shown at the next look.
    told: dict[str, Any] = {"version": room.version, "phase": room.phase}
    now, splits, found = room.round, room.splits(), standing(room.run.rounds)
    told |= {"joined": len(room.students), "answered": len(splits)}
    told["text"] = now.sentence.text if now else ""
    finished = now.finished if now and told["phase"] == "revealed" else None
    losses = finished.losses if finished else None
    shown = {
        **told,
        "sentence": now.sentence if now else None,
        "gapped": normalise_masks(told["text"], "____"),
        "finished": finished,
        "rows": _rows(now, splits) if now and (finished or splits) else [],
        "axis": Axis.shares(),
        "standing": found,
        "rounds": room.run.rounds,
        "verdict": verdict(found) if found else "",
    }
    pieces = ("sentence", "said", "main", "side")
    html = {name: render(f"classroom/{name}.html", **shown) for name in pieces}
    room.wall = told | {"html": html, "losses": asdict(losses) if losses else None}
    return room.wall


def _rows(now: Round, splits: Sequence[Guesses]) -> list[BarRow]:
    axis, found = Axis.shares(), now.finished
    if found is None:
        guesses = (own for own in pool(splits).guesses if key(own.word) not in now.struck)
        words = tuple(WordShare(own.word, own.amount / 100, None) for own in islice(guesses, ROWS))
        others = max(0.0, 1.0 - math.fsum(own.people for own in words))
        found = ClassRound("", "", "", 0, words, WordShare("", others, None))
    shown, rest = found.longest(ROWS)
    *marks, mark_of_others = (
        axis.pair((own.people, own.model), ("candidate", "reference")) for own in (*shown, rest)
    )
    title = "Press x to remove it from the wall"
    rows = [
        BarRow(
            own.word, mark, key=own.word, title=title, truth=bool(found.truth) and own is shown[0]
        )
        for own, mark in zip(shown, marks, strict=True)
    ]
    notes = (f"{len(now.struck)} struck",) if now.struck else ()
    return [*rows, BarRow("other words, or none", mark_of_others, notes=notes)]


def verdict(found: Standing) -> str:
    """Who was better and by how much, in a sentence."""
    count, gap = len(found.losses), found.people_nats - found.model_nats
    of = f"over {count} sentences" if count > 1 else "on the first sentence"
    if is_zero(gap, 2):
        return f"The class and the model are level {of}."
    by = f"by {abs(gap):.2f} nats per sentence {of}"
    leader = "class" if gap < 0 else "model"
    if found.interval is None:
        return f"The {leader} is ahead {by}."
    low, high = found.interval.low, found.interval.high
    if gap < 0:
        low, high = -high, -low
    between = f"95% interval {signed(low, 2)} to {signed(high, 2)}"
    if low > 0:
        return f"The {leader} wins {by} ({between})."
    return f"The {leader} is ahead {by}, which could be chance ({between})."
