"""A class against the model: the losses of its rounds as a table, and who was better."""

from collections.abc import Iterable

from fillmask_ui.lessons.class_rounds import Standing
from fillmask_ui.runs.class_run import ClassRound
from fillmask_ui.show.numbers import loss_number
from fillmask_ui.show.table import Table

_COLUMNS = ("sentence", "hidden word", "answers", "class", "mean student", "model")


def rounds_table(rounds: Iterable[ClassRound]) -> Table:
    """Losses in nats, a row for each round."""
    rows = []
    for own in rounds:
        losses = own.losses
        numbers = (losses.people, losses.student, losses.model) if losses else (None,) * 3
        rows.append((own.text, own.truth or None, own.answers, *numbers))
    return Table.of(_COLUMNS, rows)


def verdict(found: Standing) -> str:
    """Who was better and by how much, in a sentence."""
    gap = found.difference_nats
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
