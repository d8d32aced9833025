"""Figures of the chapter `loss`: logits, softmax, -ln p, temperature, and three names of a loss."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from fillmask_ui.filling.candidates import candidates_of
from fillmask_ui.lessons.masked_position import Gap, one_gap, true_token
from fillmask_ui.lessons.softmax import Softmax, SoftmaxRow, softmax_of, top_tokens
from fillmask_ui.show.drawing import Bar
from fillmask_ui.show.numbers import loss_text, percent
from fillmask_ui.show.render import render
from fillmask_ui.show.sentences import as_unsure
from fillmask_ui.show.words import candidate_names
from fillmask_ui.ui.explore.examples import Above, Among, Example, First
from fillmask_ui.ui.explore.prediction_view import LossPoint, points_json
from fillmask_ui.ui.figure import Asked, Figure, Shown
from fillmask_ui.ui.session import check_text

# The true word comes second, so that both ends of the temperature tell. A test asks the model.
EXAMPLE = Example(
    "every morning",
    "I drink a cup of [MASK] every morning.",
    "Why does sharpening the distribution make the loss larger?",
    (First("tea"), Among(("tea", "coffee"), 2), Above("tea", "coffee")),
    hidden=("coffee",),
)
MOST_WORDS = 4  # of the best, in a table that a projector shows whole
MOST_BOXES = 500
COLUMNS = (("1", "logits"), ("2", "exponentials"), ("3", "probabilities"), ("4", "loss"))
ADDED = (("", "as given"), ("5", "+ 5"), ("largest", "− largest"))


@dataclass(frozen=True)
class OneMask:
    """The logits at the gap of a reader's sentence."""

    gap: Gap
    word: str  # the true one
    target: int  # its id
    logits: np.ndarray  # float32 [V]
    shown: tuple[int, ...]  # ids of the words that are shown
    names: Mapping[int | None, str]  # theirs, and of all others


def _asked_mask(asked: Asked) -> OneMask:
    """The mask that the controls `sentence` and `truth` ask about."""
    text, word = asked.text("sentence"), asked.text("truth", most_characters=100).strip()
    check_text(text, [word])
    model, vocabulary = asked.model, asked.model.vocabulary
    gap = one_gap(model, text)
    target = true_token(model, gap, word)
    logits = asked.session.logits_at(model, gap.encoding.ids, gap.position)
    shown = top_tokens(logits, target, MOST_WORDS)
    candidates = candidates_of(vocabulary, np.array(shown), np.zeros(len(shown)))
    names = dict(zip(shown, candidate_names(candidates, vocabulary), strict=True))
    return OneMask(gap, word, target, logits, shown, names | {None: "all other words"})


def table(asked: Asked) -> Shown:
    """The columns from logits to the loss, as many as are asked for."""
    mask = _asked_mask(asked)
    added = asked.text("added")
    number = {"5": 5.0, "largest": -float(mask.logits.max())}.get(added, 0.0)
    made = softmax_of(mask.logits, mask.target, mask.shown, added=number)
    values = {
        "made": made,
        "names": mask.names,
        "target": mask.target,
        "columns": asked.integer("columns", 1, len(COLUMNS), 1),
        "added": dict(ADDED).get(added, "") if added else "",
    }
    return Shown({"table": render("page/learn/softmax_table_result.html", **values)})


def curve(asked: Asked) -> Shown:
    """A point on the curve of -ln p, and the three names of its loss."""
    probability = asked.number("percent", 0.1, 100, 70) / 100
    point = _point("", probability, -math.log(probability) + 0.0)
    values = {"nll": point.nll_nats, "points": points_json([point])}
    return Shown({"point": render("page/learn/loss_curve_result.html", **values)})


def _point(word: str, probability: float, nll_nats: float) -> LossPoint:
    texts = (percent(probability), loss_text(nll_nats, "nats"))
    return LossPoint(0, word, True, probability, nll_nats, texts)


def temperature(asked: Asked) -> Shown:
    """The distribution of logits / T as bars, the loss on its curve, and the entropy."""
    mask = _asked_mask(asked)
    heat = asked.number("temperature", 0.1, 5, 1)
    made, plain = (
        softmax_of(mask.logits, mask.target, mask.shown, temperature=t) for t in (heat, 1.0)
    )
    bars = [_bar(row, mask) for row in made.rows]
    values = {
        "made": made,
        "plain": plain,
        "word": mask.word,
        "uniform": math.log(len(mask.logits)),
        "vocabulary_size": len(mask.logits),
        "points": points_json([_point(mask.word, made.probability, made.nll_nats)]),
    }
    return Shown(
        {
            "bars": render("page/learn/lesson_bars.html", bars=bars, who=""),
            "facts": render("page/learn/loss_temperature_result.html", **values),
        }
    )


def _bar(row: SoftmaxRow, mask: OneMask) -> Bar:
    bar = Bar(mask.names[row.token_id], row.probability)
    if row.token_id == mask.target:
        return replace(bar, kind="hidden", note="the hidden word")
    return (
        bar
        if row.token_id is not None
        else replace(bar, kind="rest", note=f"{row.tokens:,} of them")
    )


@dataclass(frozen=True)
class Named:
    """One loss with its three names, and as so many equal words."""

    about: str
    equal_words: str  # what its perplexity means
    nats: float

    @property
    def perplexity(self) -> float:
        return math.exp(self.nats)

    @property
    def boxes(self) -> int:
        """As many as can be drawn."""
        return min(MOST_BOXES, round(self.perplexity))


def units(asked: Asked) -> Shown:
    """Loss and entropy of the reader's mask in nats, bits and as perplexity."""
    mask = _asked_mask(asked)
    made: Softmax = softmax_of(mask.logits, mask.target, mask.shown)
    equal = math.exp(made.nll_nats)
    surprise = f"as surprising as one of {equal:,.0f} equal words" if equal >= 1.5 else "expected"
    unsure = as_unsure(math.exp(made.entropy_nats))
    rows = (
        Named(f"loss of “{mask.word}”", surprise, made.nll_nats),
        Named("entropy: the loss that the model expects", unsure, made.entropy_nats),
    )
    return Shown({"units": render("page/learn/loss_units_result.html", rows=rows)})


_SENTENCE = {"sentence": EXAMPLE.text, "truth": EXAMPLE.hidden[0]}
FIGURES: Mapping[str, Figure] = {
    "softmax_table": Figure(
        "From logits to the loss of one word",
        table,
        {**_SENTENCE, "columns": COLUMNS, "added": ADDED},
    ),
    "loss_curve": Figure("The loss over the probability", curve, needs_model=False),
    "loss_temperature": Figure("One distribution at many temperatures", temperature, _SENTENCE),
    "loss_units": Figure("Nats, bits, perplexity", units, _SENTENCE),
}
