"""Exercises on the way from logits to a loss."""

import math

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
from fillmask_ui.scoring import exponentials, nll_nats


def exercises(rng: np.random.Generator, in_course: bool) -> tuple[Exercise, ...]:
    """One probability, one row of logits with a temperature, and one loss in three units."""
    return _probability(rng, in_course), _logits(rng), _units(rng)


def _probability(rng: np.random.Generator, in_course: bool) -> Numeric:
    # The course notes: fox 0.7, cat 0.2, dog 0.1; the true word is fox.
    words: tuple[str, ...] = ("fox", "cat", "dog")
    parts = [0.7, 0.2, 0.1]
    if not in_course:
        words, parts = draw_gap(rng).words[:3], shares(rng, 3)
    loss = loss_nats(parts[0])
    rows = sorted(zip(parts, words, strict=True), reverse=True)
    others = " and ".join(f"P({word}) = {part:g}" for part, word in rows if word != words[0])
    return Numeric(
        text=f"A model predicts a hidden word with these probabilities. The true word is "
        f"“{words[0]}”. What is the loss, in nats?",
        table=(("word", "P"), *((word, f"{part:g}") for part, word in rows)),
        answer=loss,
        unit="nats",
        slips=(
            *loss_slips(loss),
            Slip(1 - parts[0], "That is 1 − P; the loss is −ln P."),
            Slip(
                sum(map(loss_nats, parts)),
                "That adds up the losses of all words; only the true one counts.",
            ),
        ),
        explanation=f"P({words[0]}) = {parts[0]:g}, so the loss is {minus_ln(parts[0])} nats.\n"
        f"{others} play no part of their own: only the true word's probability counts.",
    )


def _logits(rng: np.random.Generator) -> Numeric:
    words = draw_gap(rng).words[:3]
    temperature = float(rng.choice([0.5, 2.0]))
    loss = 0.0
    while not 0.1 < loss < 4:
        logits = rng.choice(np.arange(-2, 5), 3, replace=False) / 2  # [3], from -1 to 2
        cooled = logits / temperature
        loss, plain = nll_nats(np.stack([cooled, logits]), np.array([0, 0])).tolist()
    weights = np.exp(cooled)
    total = weights.sum()
    sums = " + ".join(f"{written(weight)}" for weight in weights)
    probability = 1 / math.exp(loss)
    best = exponentials(cooled[None]).best_ids[0]
    rows = [(word, written(logit, 1)) for word, logit in zip(words, logits, strict=True)]
    return Numeric(
        text="A tiny vocabulary of three words has these logits. They are divided by the "
        f"temperature T = {temperature:g}, then the softmax is taken. The true word is "
        f"“{words[0]}”. What is its loss, in nats?",
        table=(("word", "logit"), *rows),
        answer=loss,
        unit="nats",
        slips=(
            Slip(plain, "That is the loss at T = 1: divide the logits by T first."),
            Slip(probability, "That is the probability of the true word; the loss is −ln of it."),
            *loss_slips(loss),
            Slip(-float(cooled[0]), "That is minus the logit: take the softmax first."),
        ),
        explanation=f"Divided by T: {', '.join(written(value, 2) for value in cooled)}.\n"
        f"Exponentials: {sums} = {written(total)}.\n"
        f"P({words[0]}) = {written(weights[0])} / {written(total)} = {written(probability, 4)}.\n"
        f"Loss = −ln {written(probability, 4)} = {written(loss)} nats; at T = 1 it would be "
        f"{written(plain)}. T = {temperature:g} makes the distribution "
        f"{'flatter' if temperature > 1 else 'sharper'}, and "
        + (
            "the true word has the largest logit."
            if best == 0
            else "the largest logit belongs to another word."
        ),
    )


def _units(rng: np.random.Generator) -> Choice:
    perplexity = int(rng.choice([3, 4, 5, 6, 8, 10, 12, 16, 20, 32]))
    nats = math.log(perplexity)
    bits, decimal = nats / math.log(2), nats / math.log(10)

    def answer(in_bits: float, e_to: float) -> str:
        return f"{written(in_bits)} bits, perplexity {written(e_to, 2)}"

    return choice(
        rng,
        f"A mean loss is {written(nats)} nats. What is it in bits, and as a perplexity?",
        answer(bits, perplexity),
        [
            Option(
                answer(nats * math.log(2), perplexity),
                "Divide by ln 2 = 0.693 to get bits; a bit is less than a nat, so there are more.",
            ),
            Option(
                answer(bits, 2**nats),
                "2 to the power of nats mixes two units: take e to the power of nats, or 2 to "
                "the power of bits.",
            ),
            Option(answer(decimal, perplexity), "Dividing by ln 10 gives neither nats nor bits."),
        ],
        f"Bits: {written(nats)} / ln 2 = {written(nats)} / 0.693 = {written(bits)}.\n"
        f"Perplexity: e^{written(nats)} = {perplexity}, as 2^{written(bits)} is: as hard as a "
        f"choice among {perplexity} equally probable words.",
    )
