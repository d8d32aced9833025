"""Figures of the chapter `guess`: a class splits 100 % over its guesses, then sees the model's."""

import math
from collections.abc import Mapping
from pathlib import Path

from fillmask_ui.errors import OptionError
from fillmask_ui.filling import score_candidate_at
from fillmask_ui.filling.guesses import Guesses, parse_guesses
from fillmask_ui.lessons.masked_position import MaskedPosition, find_masked_position
from fillmask_ui.show.drawing import Bar
from fillmask_ui.ui.explore.examples import read_sets
from fillmask_ui.ui.explore.guess_view import compare, comparison_html
from fillmask_ui.ui.figure import Asked, Figure, Shown, piece
from fillmask_ui.ui.session import check_text

ROWS = 4  # for guesses of the class
# Words with bars, so few that a projector shows all; the model has at least two of its own.
WORDS = 4
READY, ROUNDS = (own.examples for own in read_sets(Path(__file__).with_name("guesses.yaml")))


def guess(asked: Asked) -> Shown:
    """The class's distribution; beside it the model's, once it is revealed for this sentence."""
    text, truth = _sentence(asked)
    check_text(text, [truth])
    masked = find_masked_position(asked.model, text)
    said = _split(asked)
    shown_before = asked.text("revealed") == text and not asked.pressed("hide")
    if not (asked.pressed("reveal") or shown_before):
        bars = [Bar(one.word, one.amount / 100, "candidate") for one in said.guesses]
        left = Bar("no guess", said.no_guess, "rest")
        html = piece("guess", "own", bars=[*bars, left])
        return Shown({"sentence": _sentence_html(masked), "result": html}, {"revealed": ""})
    if not said.guesses:
        raise OptionError("nobody has guessed yet: write a word and its percent first")
    own = max(2, WORDS - len(said.guesses))
    found = compare(asked.session, asked.model, text, said, truth, model_words=own)
    pieces = {"sentence": _sentence_html(masked, truth), "result": comparison_html(found, "nats")}
    return Shown(pieces, {"revealed": text})


def _sentence(asked: Asked) -> tuple[str, str]:
    """The text with its mask, and the word that stood there."""
    chosen = next((e for e in READY if e.name == asked.text("which", READY[0].name)), None)
    if chosen is not None:
        return chosen.text, chosen.hidden[0]
    return asked.text("sentence"), asked.text("truth", most_characters=100).strip()


def _split(asked: Asked) -> Guesses:
    """The rows that have both a word and a percent."""
    rows = [(asked.text(f"word_{i}"), asked.number(f"percent_{i}", 0, 100, 0)) for i in range(ROWS)]
    typed = [f"{' '.join(word.split())} {percent:g}%" for word, percent in rows if word and percent]
    return parse_guesses("\n".join(typed)) if typed else Guesses(percent=True)


def _sentence_html(masked: MaskedPosition, truth: str = "") -> str:
    return piece("guess", "gap", masked=masked, truth=truth)


def rounds(asked: Asked) -> Shown:
    """Losses of both on each sentence and their means, once they are asked for."""
    if not (asked.pressed("score") or asked.pressed("scored")):
        return Shown({"result": ""})
    people, model = [], []
    for number, example in enumerate(ROUNDS):
        typed, truth = asked.text(f"guesses_{number}"), example.hidden[0]
        said = parse_guesses(typed) if typed.strip() else Guesses(percent=True)
        people.append(said.nll_nats(truth))  # infinite where nobody guessed it
        scored = asked.session.ask(asked.model, score_candidate_at, example.text, truth, 0)
        model.append(scored.nll_nats)
    means = {"people": math.fsum(people) / len(ROUNDS), "model": math.fsum(model) / len(ROUNDS)}
    html = piece(
        "guess_rounds",
        "result",
        rounds=list(zip(ROUNDS, people, model, strict=True)),
        means=means,
        infinite=math.inf,
    )
    return Shown({"result": html}, {"scored": "1"})


_READY_NAMES = [(example.name, example.name) for example in READY]
FIGURES: Mapping[str, Figure] = {
    "guess": Figure(
        "Guesses of the class beside those of the model",
        guess,
        {"ready": _READY_NAMES, "rows": ROWS},
    ),
    "guess_rounds": Figure("Three gaps, one score", rounds, {"rounds": ROUNDS}),
}
