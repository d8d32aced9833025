"""Exercises on what a model sees to the left and to the right of a gap."""

import math
from dataclasses import dataclass

import numpy as np

from fillmask_ui.lessons.exercises.draws import choice, loss_nats
from fillmask_ui.lessons.exercises.exercise import Choice, Exercise, Numeric, Option, Slip, written


@dataclass(frozen=True)
class _Sides:
    """A sentence around a gap."""

    left: str
    word: str
    right: str

    @property
    def text(self) -> str:
        return f"{self.left} ____ {self.right}."


_SENTENCES = (
    _Sides("The water of the", "lake", "is beautifully blue today"),
    _Sides("She ate her", "soup", "with a silver spoon"),
    _Sides("He put the", "letter", "into an envelope"),
    _Sides("They fed the", "horse", "with hay and carrots"),
    _Sides("The", "pilot", "landed the plane in the fog"),
    _Sides("I locked the", "door", "with an old key"),
)


def exercises(rng: np.random.Generator, _in_course: bool) -> tuple[Exercise, ...]:
    """What each kind of model sees, what a side is worth, and two ways to hide one."""
    first, second, third = rng.choice(len(_SENTENCES), 3, replace=False)
    return (
        _seen(rng, _SENTENCES[first]),
        _worth(rng, _SENTENCES[second]),
        _hidden(rng, _SENTENCES[third]),
    )


def _seen(rng: np.random.Generator, sides: _Sides) -> Choice:
    causal = bool(rng.integers(2))
    model = "causal model (it reads from left to right)" if causal else "bidirectional model"
    left, right = f"“{sides.left}” alone", f"“{sides.right}” alone"
    both = f"“{sides.left}” and “{sides.right}”"
    causal_sees = "A causal model predicts each token from those to its left."
    bidirectional_sees = "A bidirectional model, as a masked one is, uses both sides of the gap."
    why = causal_sees if causal else bidirectional_sees
    return choice(
        rng,
        f"“{sides.text}” A {model} predicts the word in the gap. Which words can it use for that?",
        left if causal else both,
        [
            Option(both if causal else left, why),
            Option(right, f"No common model reads from the right alone. {why}"),
            Option(
                f"“{sides.left} {sides.word} {sides.right}”, the hidden word included",
                f"Then there would be nothing to predict. {why}",
            ),
        ],
        f"{causal_sees} {bidirectional_sees}\nHere the gap has “{sides.left}” on its left and "
        f"“{sides.right}” on its right.",
    )


def _worth(rng: np.random.Generator, sides: _Sides) -> Numeric:
    given_left, given_both = (
        rng.integers(1, 16) / 100,
        rng.integers(4, 19) / 20,
    )  # from 0.01 to 0.15, and from 0.2 to 0.9
    before, after = loss_nats(given_left), loss_nats(given_both)
    saved = before - after
    rows = (("the left side", f"{given_left:g}"), ("both sides", f"{given_both:g}"))
    return Numeric(
        text=f"“{sides.text}” A model gives the true word “{sides.word}” these probabilities. "
        "By how many nats does the right side lower the loss?",
        table=(("the model sees", f"P({sides.word})"), *rows),
        answer=saved,
        unit="nats",
        slips=(
            Slip(
                given_both - given_left,
                "That is the difference of the probabilities; take that of the losses.",
            ),
            Slip(-saved, "The loss gets lower, by a positive number: first minus second."),
            Slip(saved / math.log(2), "That is in bits (log2); nats take the logarithm ln."),
            Slip(saved / math.log(10), "That is log10; nats take ln."),
            Slip(after, "That is the loss with both sides; by how much is it lower?"),
            Slip(before, "That is the loss with the left side; by how much does it fall?"),
        ),
        explanation=f"Left side: −ln {given_left:g} = {written(before)}. "
        f"Both sides: −ln {given_both:g} = {written(after)}.\n"
        f"Difference: {written(before)} − {written(after)} = {written(saved)} nats, which is also "
        f"ln({given_both:g} / {given_left:g}).",
    )


def _hidden(rng: np.random.Generator, sides: _Sides) -> Choice:
    cut = bool(rng.integers(2))
    words = len(sides.right.split())
    cut_off = f"[CLS] {sides.left} [MASK] [SEP]"
    masked = f"[CLS] {sides.left} {' '.join(['[MASK]'] * (words + 1))} . [SEP]"
    length = "Masks still tell the model how many tokens follow; what is cut off tells nothing."
    return choice(
        rng,
        f"“{sides.text}” The right side is to be {'cut off' if cut else 'masked'}, and the model "
        "predicts the word in the gap. Which input does that?",
        cut_off if cut else masked,
        [
            Option(
                masked if cut else cut_off,
                "There the right side is masked, but still there. " + length
                if cut
                else "There the right side is cut off: not even its length is left. " + length,
            ),
            Option(
                f"[CLS] {sides.left} [MASK] {sides.right} . [SEP]",
                "There the model sees both sides.",
            ),
            Option(
                f"[CLS] [MASK] {sides.right} . [SEP]", "There the left side is gone, not the right."
            ),
        ],
        f"Cut off: {cut_off}\nMasked: {masked}\n{length} To the model the cut "
        "is the end of a text, so some of the loss is due to that.",
    )
