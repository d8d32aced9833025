"""Figures of the chapter `guess`: a class splits 100% over its guesses, then sees the model's."""

import math
from pathlib import Path
from typing import Any

from fillmask_ui.errors import OptionError
from fillmask_ui.features.course.lesson_figure import figure
from fillmask_ui.filling import score_candidate_at
from fillmask_ui.filling.guesses import Guesses, parse_guesses
from fillmask_ui.filling.masked_position import find_masked_position
from fillmask_ui.show.drawing import Bar
from fillmask_ui.ui.explore.examples import read_sets
from fillmask_ui.ui.explore.guess_view import compare, comparison_html
from fillmask_ui.ui.figure import Asked, around, control

ROWS = 4  # for guesses of the class, as `course/guess.html` has them
# Words with bars, so few that a projector shows all; the model has at least two of its own.
WORDS = 4
READY, ROUNDS = (own.examples for own in read_sets(Path(__file__).with_name("guesses.yaml")))
_OWN = "own"
_SENTENCES = {example.name: example.name for example in READY} | {_OWN: "our own"}
_TRUTH = control("text", "truth", "Hidden word", "mat", hint="visible only while you type it")
_TYPED = control(
    "text", "sentence", "Our sentence", "The cat sat on the [MASK].", hint="with [MASK] for the gap"
)


@figure(
    "guess",
    "Guesses of the class beside those of the model",
    control("choice", "which", "Sentence", _SENTENCES, READY[0].name),
    around("box", "fm-own-sentence fm-controls", _TYPED, around("box", "fm-own-truth", _TRUTH)),
    control("hidden", "revealed"),
)
def _show_guess(asked: Asked) -> Any:
    """The class's distribution; beside it the model's, once it is revealed for this sentence."""
    chosen = next((e for e in READY if e.name == asked["which"]), None)
    typed = asked["sentence"], asked["truth"][:100].strip()
    text, truth = (chosen.text, chosen.hidden[0]) if chosen else typed
    masked = find_masked_position(asked.model, text)
    rows = [(asked.text(f"word_{i}"), asked.number(f"percent_{i}", 0, 100, 0)) for i in range(ROWS)]
    said = _guesses(
        "\n".join(f"{' '.join(word.split())} {share:g}%" for word, share in rows if word and share)
    )
    shown_before = asked["revealed"] == text and not asked.pressed("hide")
    if not (asked.pressed("reveal") or shown_before):
        bars = [Bar(one.word, one.amount / 100, "candidate") for one in said.guesses]
        bars.append(Bar("no guess", said.no_guess, "rest"))
        return {"masked": masked, "truth": "", "bars": bars}, {"revealed": ""}
    if not said.guesses:
        raise OptionError("nobody has guessed yet: type a word and its percentage first")
    own = max(2, WORDS - len(said.guesses))
    found = compare(asked.session, asked.model, text, said, truth, model_words=own)
    html = comparison_html(found, "nats")
    return {"masked": masked, "truth": truth, "bars": [], "compared": html}, {"revealed": text}


def _guesses(typed: str) -> Guesses:
    return parse_guesses(typed) if typed.strip() else Guesses(percent=True)


@figure(
    "guess_rounds",
    "Three gaps, one score",
    control("hidden", "scored"),
    *(
        control("text", f"guesses_{number}", example.text.replace("[MASK]", "____"))
        for number, example in enumerate(ROUNDS)
    ),
    control("button", "score", "Score both", main=True),
)
def _show_rounds(asked: Asked) -> Any:
    """Losses of both on each sentence and their means, once they are asked for."""
    if not (asked.pressed("score") or asked.pressed("scored")):
        return {"rounds": ()}
    people, model = [], []
    for number, example in enumerate(ROUNDS):
        truth = example.hidden[0]
        # Infinite where nobody guessed it.
        people.append(_guesses(asked[f"guesses_{number}"]).nll_nats(truth))
        scored = asked.session.ask(asked.model, score_candidate_at, example.text, truth, 0)
        model.append(scored.nll_nats)
    means = {"people": math.fsum(people) / len(ROUNDS), "model": math.fsum(model) / len(ROUNDS)}
    return {"rounds": [*zip(ROUNDS, people, model, strict=True)], "means": means}, {"scored": "1"}
