"""Exercises on guessing a hidden word."""

import numpy as np

from fillmask_ui.lessons.exercises.draws import (
    choice,
    draw_gap,
    loss_nats,
    loss_slips,
    minus_ln,
    shares,
)
from fillmask_ui.lessons.exercises.exercise import Choice, Exercise, Numeric, Option, Slip, written


def exercises(rng: np.random.Generator, in_course: bool) -> tuple[Exercise, ...]:
    """The loss of a class, and the least surprised of four predictions."""
    return _class(rng), _lowest(rng, in_course)


def _class(rng: np.random.Generator) -> Numeric:
    gap, parts = draw_gap(rng), shares(rng, 4)
    votes = sorted(zip(parts, gap.words, strict=True), reverse=True)
    truth = parts[0]
    loss = loss_nats(truth)
    return Numeric(
        text=f"A class splits 100 % over its guesses for “{gap.sentence}” The true word is "
        f"“{gap.words[0]}”. What is the loss of the class, in nats?",
        table=(("guess", "share"), *((word, f"{100 * part:.0f} %") for part, word in votes)),
        answer=loss,
        unit="nats",
        slips=(
            *loss_slips(loss),
            Slip(1 - truth, "That is the share of the wrong guesses; the loss is −ln of a share."),
            Slip(loss_nats(votes[0][0]), "That is the loss of the most frequent guess.")
            if votes[0][0] != truth
            else Slip(truth, "That is the share itself; the loss is −ln of it."),
        ),
        explanation=f"The class gave the true word {100 * truth:.0f} %, so P = {truth:g}.\n"
        f"Loss = {minus_ln(truth)} nats. The shares of the wrong guesses play no part.",
    )


def _lowest(rng: np.random.Generator, in_course: bool) -> Choice:
    # The course notes put this question with four probabilities of one true word.
    hundredths = [5, 20, 40, 70] if in_course else rng.choice(np.arange(2, 96), 4, replace=False)
    values = sorted((int(value) / 100 for value in hundredths), reverse=True)
    sentence, word = ("The cat sat on the [MASK].", "mat")
    if not in_course:
        gap = draw_gap(rng)
        sentence, word = gap.sentence, gap.words[0]

    def output(probability: float) -> str:
        return f"P({word}) = {probability:.2f}"

    losses = ", ".join(f"{output(value)}: {written(loss_nats(value))}" for value in values)
    return choice(
        rng,
        f"“{sentence}” The true word is “{word}”. Which of four predictions has the lowest loss?",
        output(values[0]),
        [
            Option(
                output(value),
                f"Its loss is {written(loss_nats(value))} nats, and another gives the true word "
                "more: the loss −ln P falls as P grows.",
            )
            for value in values[1:]
        ],
        f"The loss −ln P falls as P grows, so the largest probability of the true word wins.\n"
        f"In nats: {losses}.",
    )
