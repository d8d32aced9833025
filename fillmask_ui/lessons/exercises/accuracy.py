"""Exercises on what a loss tells and accuracy does not."""

import math

import numpy as np

from fillmask_ui.lessons.exercises.draws import choice, draw_gap, loss_nats, minus_ln
from fillmask_ui.lessons.exercises.exercise import (
    Choice,
    Exercise,
    Item,
    Numeric,
    Option,
    Ordering,
    Slip,
    written,
)


def exercises(rng: np.random.Generator, in_course: bool) -> tuple[Exercise, ...]:
    """Two models that are both wrong, how far apart two such are, and four to be put in order."""
    return _both_wrong(rng, in_course), _apart(rng), _ordered(rng)


def _both_wrong(rng: np.random.Generator, in_course: bool) -> Choice:
    # The course notes; the word that is true, river, stands first.
    close = {"river": 0.3, "stream": 0.4, "water": 0.2}
    far = {"river": 0.01, "mountain": 0.95, "sky": 0.02}
    models = [close, far]
    if not in_course:
        close.update(river=_hundredths(rng, 20, 35), stream=_hundredths(rng, 37, 45))
        far.update(river=_hundredths(rng, 1, 6), mountain=_hundredths(rng, 80, 90))
        if rng.integers(2):
            models.reverse()
    losses = [loss_nats(model["river"]) for model in models]
    best, worst = "AB"[models.index(close)], "AB"[models.index(far)]
    columns = [[f"{word} {value:g}" for word, value in model.items()] for model in models]

    def answer(values: list[float], better: str) -> str:
        return f"A {written(values[0])}, B {written(values[1])} nats: {better} is better"

    return choice(
        rng,
        "“They sailed down the [MASK].” The true word is “river”; both models expect another one "
        "most. What are their losses, and which model is better here?",
        answer(losses, best),
        [
            Option(
                answer([loss / math.log(10) for loss in losses], best),
                "Those are log10; a loss in nats takes ln, the natural logarithm.",
            ),
            Option(
                answer([loss_nats(max(model.values())) for model in models], worst),
                "Those are the losses of each model's own first word; take the true word.",
            ),
            Option(
                "The same, since both are wrong",
                "Accuracy says so; the loss asks how much each gave the true word.",
            ),
        ],
        f"A: {minus_ln(models[0]['river'])} nats; B: {minus_ln(models[1]['river'])} nats.\n"
        f"Accuracy calls both wrong. Model {best} is less surprised by “river”: it pays "
        f"{written(abs(losses[0] - losses[1]))} nats less.",
        (("model A", "model B"), *zip(*columns, strict=True)),
    )


def _hundredths(rng: np.random.Generator, low: int, high: int) -> float:
    return int(rng.integers(low, high + 1)) / 100


def _apart(rng: np.random.Generator) -> Numeric:
    gap = draw_gap(rng)
    high, low = _hundredths(rng, 30, 45), _hundredths(rng, 1, 10)
    difference = loss_nats(low) - loss_nats(high)
    return Numeric(
        text=f"“{gap.sentence}” One model gives the true word “{gap.words[0]}” {100 * high:.0f} %, "
        f"another {100 * low:.0f} %. Both expect another word most. By how many nats is the loss "
        "of the second larger?",
        answer=difference,
        unit="nats",
        slips=(
            Slip(high - low, "That is the difference of the probabilities; take the losses'."),
            Slip(0.0, "Only their accuracy is the same; their losses differ."),
            Slip(difference / math.log(2), "That is in bits (log2); nats take the logarithm ln."),
            Slip(difference / math.log(10), "That is log10; nats take ln."),
            Slip(loss_nats(low), "That is the loss of the second; subtract that of the first."),
            Slip(-difference, "It is larger by a positive number: the second minus the first."),
        ),
        explanation=f"{minus_ln(low)}; {minus_ln(high)}.\nDifference: {written(loss_nats(low))} − "
        f"{written(loss_nats(high))} = {written(difference)} nats, which is "
        f"ln({high:g} / {low:g}). Accuracy calls both wrong.",
    )


def _ordered(rng: np.random.Generator) -> Ordering:
    gap = draw_gap(rng)
    word = gap.words[0]
    # P of the true word and of the best other one. The first model is wrong by its first word, and
    # gives the true word more than the second, which alone is right.
    drawn = [_hundredths(rng, 36, 44), _hundredths(rng, 22, 33)]
    pairs = [
        (drawn[0], drawn[0] + _hundredths(rng, 3, 9)),
        (drawn[1], drawn[1] - _hundredths(rng, 3, 11)),
        (_hundredths(rng, 6, 15), _hundredths(rng, 20, 79)),
        (_hundredths(rng, 1, 4), _hundredths(rng, 20, 94)),
    ]
    places = [0, 1, 2, 3]
    while places == [0, 1, 2, 3]:
        places = rng.permutation(4).tolist()
    items = []
    for name, place in zip("ABCD", places, strict=True):
        truth, rival = pairs[place]
        loss = loss_nats(truth)
        text = f"P({word}) = {truth:.2f}, best other word {rival:.2f}"
        items.append(Item(name, text, loss, f"{written(loss)} nats"))
    names = ["ABCD"[places.index(rank)] for rank in range(4)]  # the lowest loss first
    stated = "; ".join(
        f"{name} {minus_ln(truth)}" for name, (truth, _) in zip(names, pairs, strict=True)
    )
    return Ordering(
        text=f"“{gap.sentence}” The true word is “{word}”. Put four models in order, the lowest "
        "loss first.",
        items=tuple(items),
        explanation=f"Only P({word}) counts: {stated} nats.\nModel {names[1]} alone has the "
        f"right word first, and yet {names[0]}, which is wrong, has the lower loss.",
    )
