"""Exercises on which tokens are chosen, and what the model sees in their place."""

import numpy as np

from fillmask_ui.lessons.exercises.draws import choice
from fillmask_ui.lessons.exercises.exercise import Choice, Exercise, Numeric, Option, Slip, written
from fillmask_ui.masking import MaskRecipe

# What each kind is called, by the field of the recipe that has its share.
_KINDS = {
    "mask_share": "shown as [MASK]",
    "random_share": "shown as a random token",
    "unchanged_share": "shown unchanged",
}
# The first word that may be shown stands in for a random token.
_SENTENCES = (
    (("Lunch", "was", "delicious", "."), "gasp"),
    (("The", "train", "was", "late", "."), "seven"),
    (("My", "aunt", "plays", "chess", "."), "rivers"),
    (("It", "rained", "all", "week", "."), "formal"),
    (("Birds", "sing", "at", "dawn", "."), "budget"),
)


def exercises(rng: np.random.Generator, _in_course: bool) -> tuple[Exercise, ...]:
    """An expected count, the kind of a token, and a token that is never chosen."""
    return _count(rng), _kind(rng), _special(rng)


def _count(rng: np.random.Generator) -> Numeric:
    recipe = MaskRecipe()
    name = str(rng.choice(list(_KINDS)))
    tokens, share = 20 * int(rng.integers(5, 51)), getattr(recipe, name)  # from 100 to 1,000
    chosen = tokens * recipe.probability
    expected = chosen * share
    return Numeric(
        text=f"A text has {tokens} tokens that may be chosen. With the shares of BERT, how many "
        f"of them are, on average, chosen and {_KINDS[name]}?",
        answer=expected,
        unit="tokens",
        decimals=1,
        slips=(
            Slip(chosen, f"That is all that are chosen; only {100 * share:g} % of them are meant."),
            Slip(
                tokens * share,
                f"The {100 * share:g} % are a share of the chosen tokens, not of all.",
            ),
            Slip(recipe.probability * share, "That is the share; how many tokens is it?"),
        ),
        explanation=f"Chosen: {100 * recipe.probability:g} % of {tokens} = {written(chosen, 1)}.\n"
        f"Of these {100 * share:g} % are {_KINDS[name]}: {written(chosen, 1)} × {share:g} = "
        f"{written(expected, 2)} tokens. One seed may give more or fewer.",
    )


def _kind(rng: np.random.Generator) -> Choice:
    words, stranger = _SENTENCES[rng.integers(len(_SENTENCES))]
    place = int(rng.integers(len(words) - 1))
    word = words[place]
    label = word
    kinds = {
        "mask": ("[MASK]", label, "It is chosen and shown as [MASK]"),
        "random": (stranger, label, "It is chosen and shown as a random token"),
        "unchanged": (word, label, "It is chosen and shown unchanged"),
        "none": (word, "–", "It is not chosen"),
    }
    kind = str(rng.choice(list(kinds)))
    shown, labelled, right = kinds[kind]
    rows = [
        (other, shown, labelled) if index == place else (other, other, "–")
        for index, other in enumerate(words)
    ]
    reason = (
        f"“{word}” has {'no label, so it is not chosen' if kind == 'none' else 'a label'}"
        + ("" if kind == "none" else ", so it is chosen")
        + f", and the model sees “{shown}” in its place."
    )
    return choice(
        rng,
        f"What happened to “{word}”? A label marks a token whose loss counts.",
        right,
        [Option(text, reason) for name, (_, _, text) in kinds.items() if name != kind],
        reason + " Only the label tells a token that is chosen but unchanged from all the others.",
        (("original", "shown", "label"), *rows),
    )


def _special(rng: np.random.Generator) -> Choice:
    special = str(rng.choice(["[CLS]", "[SEP]", "[PAD]"]))
    ordinary = {
        ".": "Punctuation is text: it may be chosen like any token.",
        "the": "Frequent words may be chosen like any others.",
        "##ing": "A sub-token may be chosen by itself; only with whole words it goes with them.",
        "zebra": "Rare words may be chosen like any others.",
        "7": "Numbers may be chosen like any other tokens.",
    }
    others = [str(token) for token in rng.choice(list(ordinary), 3, replace=False)]
    return choice(
        rng,
        "Which of these tokens is never chosen, whatever the seed?",
        special,
        [Option(token, ordinary[token]) for token in others],
        f"{special} is a special token: the tokenizer adds it, there is nothing to predict. "
        "Ordinary tokens may all be chosen; this evaluator, unlike BERT, leaves out unknown words.",
    )
