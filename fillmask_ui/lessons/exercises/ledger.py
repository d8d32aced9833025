"""Exercises on the losses of many tokens as one number."""

import math

import numpy as np

from fillmask_ui.lessons.exercises.draws import choice, loss_nats, minus_ln
from fillmask_ui.lessons.exercises.exercise import Choice, Exercise, Numeric, Option, Slip, written

_TOKENS = ("water", "pond", "blue", "walk", "green", "stone", "night", "voice")


def exercises(rng: np.random.Generator, _in_course: bool) -> tuple[Exercise, ...]:
    """A sum, a mean over the chosen tokens alone, and what unchanged tokens do to it."""
    return _sum(rng), _mean(rng), _flattered(rng)


def _sum(rng: np.random.Generator) -> Numeric:
    values = [int(value) / 20 for value in rng.choice(np.arange(1, 19), 3, replace=False)]
    tokens = [str(token) for token in rng.choice(_TOKENS, 3, replace=False)]
    losses = [loss_nats(value) for value in values]
    total = sum(losses)
    return Numeric(
        text="Three tokens of a text are chosen. What is the loss of the text, summed over them, "
        "in nats?",
        table=(
            ("token", "P(original)"),
            *((token, f"{value:g}") for token, value in zip(tokens, values, strict=True)),
        ),
        answer=total,
        unit="nats",
        slips=(
            Slip(total / 3, "That is the mean; the sum is asked for."),
            Slip(
                loss_nats(sum(values) / 3),
                "That is −ln of the mean probability: first take each loss, then add them up.",
            ),
            Slip(total / math.log(2), "That is in bits (log2); nats take the logarithm ln."),
            Slip(total / math.log(10), "That is log10; nats take ln."),
            Slip(-total, "The sign is missing: a loss is minus the logarithm."),
            Slip(math.prod(values), "That is the product of the probabilities; take −ln of it."),
        ),
        explanation=f"{'; '.join(map(minus_ln, values))}.\nSum: "
        f"{' + '.join(map(written, losses))} = {written(total)} nats. It is also −ln of the "
        "product of the three probabilities.",
    )


def _mean(rng: np.random.Generator) -> Numeric:
    chosen = int(rng.integers(3, 6))
    tokens = chosen * int(rng.integers(5, 9)) + int(rng.integers(1, chosen))
    losses = [int(value) / 10 for value in rng.choice(np.arange(2, 60), chosen, replace=False)]
    mean, total = float(np.mean(losses)), sum(losses)
    return Numeric(
        text=f"A text has {tokens} tokens, of which {chosen} are chosen. Their losses in nats are "
        f"{', '.join(f'{loss:g}' for loss in losses)}. What mean loss does the evaluator state, "
        "in nats?",
        answer=mean,
        unit="nats",
        slips=(
            Slip(total, f"That is the sum; the mean divides it by the {chosen} chosen tokens."),
            Slip(
                total / tokens,
                f"That divides by all {tokens} tokens; only the {chosen} chosen ones count.",
            ),
            Slip(float(np.median(losses)), "That is the median; the mean is asked for."),
        ),
        explanation=f"Sum: {' + '.join(f'{loss:g}' for loss in losses)} = {written(total, 1)}.\n"
        f"Mean over the {chosen} chosen tokens: {written(total, 1)} / {chosen} = {written(mean)} "
        "nats. Tokens that are not chosen have no loss, so they do not count at all.",
    )


def _flattered(rng: np.random.Generator) -> Choice:
    masked = int(rng.integers(26, 40)) / 10
    random, unchanged = masked + int(rng.integers(8, 16)) / 10, int(rng.integers(2, 6)) / 10
    rows = (("masked", 80, masked), ("random", 10, random), ("unchanged", 10, unchanged))
    mean = sum(count * loss for _, count, loss in rows) / 100
    kept = (80 * masked + 10 * random) / 90
    return choice(
        rng,
        f"The mean over all 100 chosen tokens is {written(mean, 2)} nats; without the unchanged "
        f"ones it is {written(kept, 2)}. Why do unchanged tokens flatter the mean?",
        "The model sees the word itself there, so it is nearly sure of it and loses little",
        [
            Option(
                "They are easier words than the others",
                "They are chosen at random like the others: what differs is what the model sees.",
            ),
            Option(
                "They count as zero in the mean",
                f"They count with their own loss, {unchanged:g} nats each.",
            ),
            Option(
                "They are not chosen, so they only make the text longer",
                "They are chosen and have a loss; tokens that are not chosen do not count at all.",
            ),
        ],
        f"The model sees an unchanged word itself, so P(original) is large: {unchanged:g} nats "
        f"against {masked:g} for a masked one.\nWith them: (80 × {masked:g} + 10 × {random:g} + "
        f"10 × {unchanged:g}) / 100 = {written(mean, 2)}; without: {written(kept, 2)} nats.",
        (
            ("kind", "tokens", "mean loss in nats"),
            *((kind, str(count), f"{loss:g}") for kind, count, loss in rows),
        ),
    )
