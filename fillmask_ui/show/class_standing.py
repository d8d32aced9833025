"""Who was better, a class or the model."""

from fillmask_ui.lessons.class_rounds import Standing
from fillmask_ui.show.numbers import loss_number


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
