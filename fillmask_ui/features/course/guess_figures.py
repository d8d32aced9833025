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
from fillmask_ui.ui.figure import FigureInputs, around, control

ROWS = 4  # for guesses of the class, as `course/guess.html` has them
# Words with bars, so few that a projector shows all; the model has at least two of its own.
WORDS = 4
READY, ROUNDS = (group.examples for group in read_sets(Path(__file__).with_name("guesses.yaml")))
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
def _show_guess(request: FigureInputs) -> Any:
    """The class's distribution; beside it the model's, once it is revealed for this sentence."""
    chosen = next((e for e in READY if e.name == request["which"]), None)
    typed = request["sentence"], request["truth"][:100].strip()
    text, truth = (chosen.text, chosen.hidden[0]) if chosen else typed
    masked = find_masked_position(request.model, text)
    lines = []
    for row in range(ROWS):
        word, share = request.text(f"word_{row}"), request.number(f"percent_{row}", 0, 100, 0)
        if word and share:
            lines.append(f"{' '.join(word.split())} {share:g}%")
    guesses = _guesses("\n".join(lines))
    shown_before = request["revealed"] == text and not request.pressed("hide")
    if not (request.pressed("reveal") or shown_before):
        bars = [Bar(guess.word, guess.amount / 100, "candidate") for guess in guesses.guesses]
        bars.append(Bar("no guess", guesses.no_guess, "rest"))
        return {"masked": masked, "truth": "", "bars": bars}, {"revealed": ""}
    if not guesses.guesses:
        raise OptionError("nobody has guessed yet: type a word and its percentage first")
    count = max(2, WORDS - len(guesses.guesses))
    comparison = compare(request.session, request.model, text, guesses, truth, model_words=count)
    html = comparison_html(comparison, "nats")
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
def _show_rounds(request: FigureInputs) -> Any:
    """Losses of both on each sentence and their means, once they are asked for."""
    if not (request.pressed("score") or request.pressed("scored")):
        return {"rounds": ()}
    people, model = [], []
    for number, example in enumerate(ROUNDS):
        truth = example.hidden[0]
        # Infinite where nobody guessed it.
        people.append(_guesses(request[f"guesses_{number}"]).nll_nats(truth))
        scored = request.session.ask(request.model, score_candidate_at, example.text, truth, 0)
        model.append(scored.nll_nats)
    means = {"people": math.fsum(people) / len(ROUNDS), "model": math.fsum(model) / len(ROUNDS)}
    return {"rounds": [*zip(ROUNDS, people, model, strict=True)], "means": means}, {"scored": "1"}
