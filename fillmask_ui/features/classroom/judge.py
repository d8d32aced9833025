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
    """Close the open round, and finish it beside the model, which is asked in a thread."""
    room.close()
    current, splits = room.round, room.splits()
    if current is None or current.phase != "closed":
        raise OptionError("no round is open: show a sentence first")
    if not splits:
        raise OptionError("nobody has answered: open the sentence again, or ask another one")
    sentence, pooled = current.sentence, pool(splits)
    frequent = replace(pooled, guesses=pooled.guesses[:PUT_TO_MODEL])
    model = await run_in_threadpool(session.model, room.model)
    comparison = await run_in_threadpool(
        compare, session, model, sentence.text, frequent, sentence.truth
    )
    words = [
        WordShare(
            word.word,
            pooled.share(word.word),
            word.candidate_probability,
            comparison.parts.get(word.word, 1),
        )
        for word in comparison.words
    ]
    rest = words.pop()  # the last one stands for all other words
    people_rest = max(0.0, 1.0 - math.fsum(word.people for word in words))
    losses, size = None, model.signature.vocabulary_size
    if comparison.losses is not None:
        people = smoothed_nll(pooled, sentence.truth, size)
        students = [smoothed_nll(split, sentence.truth, size) for split in splits]
        mean = math.fsum(students) / len(students)
        losses = RoundLosses(people, mean, comparison.losses.model)
    finished = ClassRound(
        sentence.text,
        sentence.question,
        sentence.truth,
        len(splits),
        tuple(words),
        WordShare("", people_rest, rest.model),
        losses,
    )
    room.reveal(current.number, finished, size)


# ---- What the wall shows


def wall(room: Room) -> dict[str, Any]:
    """What the wall shows, as JSON; its `html` by the places where it goes. Kept for a version."""
    if room.wall.get("version") == room.version:
        return room.wall
    # The version first: what changes meanwhile is shown at the next look.
    status: dict[str, Any] = {"version": room.version, "phase": room.phase}
    current, splits, result = room.round, room.splits(), standing(room.run.rounds)
    status |= {
        "joined": len(room.students),
        "answered": len(splits),
        "text": current.sentence.text if current else "",
    }
    finished = current.finished if current and status["phase"] == "revealed" else None
    losses = finished.losses if finished else None
    values = {
        **status,
        "sentence": current.sentence if current else None,
        "gapped": normalise_masks(status["text"], "____"),
        "finished": finished,
        "rows": _rows(current, splits) if current and (finished or splits) else [],
        "axis": Axis.shares(),
        "standing": result,
        "rounds": room.run.rounds,
        "verdict": verdict(result) if result else "",
    }
    html = {
        name: render(f"classroom/{name}.html", **values)
        for name in ("sentence", "said", "main", "side")
    }
    room.wall = status | {"html": html, "losses": asdict(losses) if losses else None}
    return room.wall


def _rows(current: Round, splits: Sequence[Guesses]) -> list[BarRow]:
    axis, finished = Axis.shares(), current.finished
    if finished is None:
        guesses = (guess for guess in pool(splits).guesses if key(guess.word) not in current.struck)
        words = tuple(
            WordShare(guess.word, guess.amount / 100, None) for guess in islice(guesses, ROWS)
        )
        unlisted = max(0.0, 1.0 - math.fsum(word.people for word in words))
        finished = ClassRound("", "", "", 0, words, WordShare("", unlisted, None))
    longest, rest = finished.longest(ROWS)
    roles = ("candidate", "reference")
    title = "Press x to remove it from the wall"
    rows = [
        BarRow(
            share.word,
            axis.pair((share.people, share.model), roles),
            key=share.word,
            title=title,
            truth=bool(finished.truth) and share is longest[0],
        )
        for share in longest
    ]
    notes = (f"{len(current.struck)} struck",) if current.struck else ()
    rest_mark = axis.pair((rest.people, rest.model), roles)
    return [*rows, BarRow("other words, or none", rest_mark, notes=notes)]


def verdict(result: Standing) -> str:
    """Who was better and by how much, in a sentence."""
    count, gap = len(result.losses), result.people_nats - result.model_nats
    of = f"over {count} sentences" if count > 1 else "on the first sentence"
    if is_zero(gap, 2):
        return f"The class and the model are level {of}."
    by = f"by {abs(gap):.2f} nats per sentence {of}"
    leader = "class" if gap < 0 else "model"
    if result.interval is None:
        return f"The {leader} is ahead {by}."
    low, high = result.interval.low, result.interval.high
    if gap < 0:
        low, high = -high, -low
    between = f"95% interval {signed(low, 2)} to {signed(high, 2)}"
    if low > 0:
        return f"The {leader} wins {by} ({between})."
    return f"The {leader} is ahead {by}, which could be chance ({between})."
