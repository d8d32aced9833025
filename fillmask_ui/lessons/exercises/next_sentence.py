"""Exercises on next sentence prediction."""

import math

import numpy as np

from fillmask_ui.lessons.exercises.draws import loss_nats, loss_slips, minus_ln
from fillmask_ui.lessons.exercises.exercise import Exercise, Numeric, Slip, written

# Two sentences, and whether the second follows.
_PAIRS = (
    ("He opened the door.", "The room was empty.", True),
    ("She bought some milk.", "It cost two euros.", True),
    ("The train was late.", "We waited for an hour.", True),
    ("He opened the door.", "Whales eat fish.", False),
    ("She bought some milk.", "The moon has no air.", False),
    ("The train was late.", "Chess is a game for two.", False),
)


def exercises(rng: np.random.Generator, _in_course: bool) -> tuple[Exercise, ...]:
    """The loss of a pair of sentences, and the loss of both tasks."""
    return _pair(rng), _both(rng)


def _pair(rng: np.random.Generator) -> Numeric:
    first, second, follows = _PAIRS[rng.integers(len(_PAIRS))]
    is_next = int(rng.choice([5, 10, 15, 20, 25, 30, 60, 65, 70, 75, 80, 85])) / 100
    true = is_next if follows else 1 - is_next
    loss = loss_nats(true)
    case = "does" if follows else "does not"
    return Numeric(
        text=f"[CLS] {first} [SEP] {second} [SEP] In the training text the second sentence {case} "
        f"follow the first. The model says P(is next) = {is_next:g}. What is the loss of the pair, "
        "in nats?",
        answer=loss,
        unit="nats",
        slips=(
            Slip(
                loss_nats(1 - true),
                f"That is the loss of the other class; the second sentence {case} follow.",
            ),
            *loss_slips(loss),
        ),
        explanation=(
            f"The true class is “is next”, with P = {is_next:g}.\n"
            if follows
            else f"The true class is “not next”, with P = 1 − {is_next:g} = {true:g}.\n"
        )
        + f"Loss = {minus_ln(true)} nats: cross-entropy again, over two classes.",
    )


def _both(rng: np.random.Generator) -> Numeric:
    count = int(rng.integers(2, 5))
    losses = [int(value) / 10 for value in rng.choice(np.arange(3, 50), count, replace=False)]
    is_next = int(rng.integers(11, 20)) / 20
    pair = loss_nats(is_next)
    mean = sum(losses) / count
    total = mean + pair
    listed = ", ".join(f"{loss:g}" for loss in losses)
    return Numeric(
        text=f"A pair of sentences has {count} masked tokens with the losses {listed} nats, and "
        f"P(is next) = {is_next:g} where the second does follow. BERT adds the mean loss of the "
        "masked tokens and the loss of the pair. What is the sum, in nats?",
        answer=total,
        unit="nats",
        slips=(
            Slip(
                sum(losses) + pair,
                "That adds up all masked tokens; BERT takes their mean, then adds the pair.",
            ),
            Slip(mean, "That is the masked tokens alone; add the loss of the pair."),
            Slip(pair, "That is the loss of the pair alone; add the mean of the masked tokens."),
            Slip(
                (sum(losses) + pair) / (count + 1),
                "The pair is not one more token of the mean: its loss is added to the mean.",
            ),
            Slip(mean + is_next, "Add the loss of the pair, −ln P, not P."),
            Slip(mean + pair / math.log(10), "Take ln, not log10, of P(is next)."),
        ),
        explanation=f"Masked tokens: ({' + '.join(f'{loss:g}' for loss in losses)}) / {count} = "
        f"{written(mean)}.\nPair: {minus_ln(is_next)}.\nSum: {written(mean)} + {written(pair)} = "
        f"{written(total)} nats. A model without this task, as RoBERTa, has the first part alone.",
    )
