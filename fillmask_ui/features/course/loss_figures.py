"""Figures of the chapters on the loss and on cross-entropy: one softmax, and two distributions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fillmask_ui.features.course.context_figures import expected
from fillmask_ui.features.course.context_sides import MASK
from fillmask_ui.features.course.distributions import adds_up, compare, read_numbers, scaled
from fillmask_ui.features.course.guess_figures import READY
from fillmask_ui.features.course.lesson_figure import figure
from fillmask_ui.features.course.softmax import Softmax, SoftmaxRow, softmax_of, top_tokens
from fillmask_ui.filling.candidates import candidates_of
from fillmask_ui.filling.masked_position import find_masked_position, true_token
from fillmask_ui.filling.prompt import split_words
from fillmask_ui.filling.words import raw_logits_at
from fillmask_ui.show.drawing import Bar
from fillmask_ui.show.sentences import as_unsure
from fillmask_ui.show.words import candidate_names
from fillmask_ui.ui.figure import FigureInputs, around, control

MOST_WORDS = 4  # of the best, in a table that a projector shows whole
MOST_BOXES = 500
COLUMNS = {"1": "logits", "2": "exponentials", "3": "probabilities", "4": "loss"}
ADDED = {"": "as given", "5": "+ 5", "largest": "− largest"}
_row = partial(around, "box", "fm-controls")
# The true word comes second, so that both ends of the temperature tell.
_ONE_MASK = (
    control("text", "sentence", "Sentence", READY[0].text, hint="with one [MASK]", carried=True),
    control("text", "truth", "Hidden word", READY[0].hidden[0], carried=True, short=True),
)


@dataclass(frozen=True)
class _OneMask:
    word: str  # the true one
    target: int  # its id
    logits: np.ndarray  # float32 [V]
    row_ids: tuple[int, ...]  # ids of the words that are shown
    names: Mapping[int | None, str]  # theirs, and of all others

    def softmax(self, **changed: float) -> Softmax:
        return softmax_of(self.logits, self.target, self.row_ids, **changed)


def _requested_mask(request: FigureInputs) -> _OneMask:
    """The mask that the controls `sentence` and `truth` ask about."""
    text, word = request["sentence"], request["truth"][:100].strip()
    model, vocabulary = request.model, request.model.vocabulary
    masked = find_masked_position(model, text)
    target = true_token(model, masked, word)
    ids, positions = (masked.encoding.ids,), (masked.position,)
    logits = request.session.ask(model, raw_logits_at, ids, positions)[0]
    row_ids = top_tokens(logits, target, MOST_WORDS)
    candidates = candidates_of(vocabulary, np.array(row_ids), np.zeros(len(row_ids)))
    names = dict(zip(row_ids, candidate_names(candidates, vocabulary), strict=True))
    return _OneMask(word, target, logits, row_ids, names | {None: "all other words"})


@figure(
    "softmax_table",
    "From logits to the loss of one word",
    _row(*_ONE_MASK),
    _row(
        control("choice", "columns", "Show up to", COLUMNS, "1"),
        control("choice", "added", "Logits", ADDED, ""),
    ),
)
def _show_table(request: FigureInputs) -> Any:
    mask, added = _requested_mask(request), request["added"]
    number = {"5": 5.0, "largest": -float(mask.logits.max())}.get(added, 0.0)
    return {
        "softmax": mask.softmax(added=number),
        "mask": mask,
        "columns": request.integer("columns", 1, len(COLUMNS), 1),
        "added": ADDED.get(added, "") if added else "",
    }


@figure(
    "loss_curve",
    "The loss over the probability",
    control("slider", "percent", "Probability of the true word", 0.1, 100, 0.1, 70, "%"),
    needs_model=False,
)
def _show_curve(request: FigureInputs) -> Any:
    probability = request["percent"] / 100
    return {"p": probability, "nll": -math.log(probability) + 0.0}


@figure(
    "loss_temperature",
    "One distribution at many temperatures",
    *_ONE_MASK,
    control("slider", "temperature", "Temperature T", 0.1, 5, 0.1, 1),
)
def _show_temperature(request: FigureInputs) -> Any:
    mask = _requested_mask(request)
    softmax = mask.softmax(temperature=request["temperature"])
    rows = [_bar(row, mask) for row in softmax.rows]
    return {"softmax": softmax, "plain": mask.softmax(), "mask": mask, "rows": rows}


def _bar(row: SoftmaxRow, mask: _OneMask) -> Bar:
    notes = {mask.target: ("hidden", "the hidden word"), None: ("rest", f"{row.tokens:,} of them")}
    kind, note = notes.get(row.token_id, ("", ""))
    return Bar(mask.names[row.token_id], row.probability, kind, note=note)


@figure("loss_units", "Nats, bits, perplexity", *_ONE_MASK)
def _show_units(request: FigureInputs) -> Any:
    mask = _requested_mask(request)
    softmax = mask.softmax()
    equal = math.exp(softmax.nll_nats)
    surprise = (
        f"as surprising as one of {equal:,.0f} equally likely words" if equal >= 1.5 else "expected"
    )
    unsure = as_unsure(math.exp(softmax.entropy_nats))
    rows = (
        (f"loss of “{mask.word}”", surprise, softmax.nll_nats),
        ("entropy: the loss that the model expects", unsure, softmax.entropy_nats),
    )
    return {"rows": rows, "most": MOST_BOXES}


# ---- Cross-entropy

_WORDS = 4  # of the model, beside the true one and all others
SENTENCE, WORD = "Water freezes when it gets very [MASK].", "cold"


@dataclass(frozen=True)
class TwoDistributions:
    """Two distributions to begin with, as typed."""

    key: str
    label: str
    names: str
    p: str
    q: str


ONE_HOT = (
    TwoDistributions("four", "4 classes", "1, 2, 3, 4", "0, 1, 0, 0", "0.1, 0.7, 0.1, 0.1"),
    TwoDistributions("three", "3 classes", "A, B, C", "0, 1, 0", "0.2, 0.5, 0.3"),
    TwoDistributions("animals", "animals", "fox, cat, dog", "1, 0, 0", "0.7, 0.2, 0.1"),
)
_DRINKS, _TRUTH = "tea, coffee, milk", "0.6, 0.3, 0.1"
SOFT = (
    TwoDistributions("unsure", "drinks", _DRINKS, _TRUTH, "0.3, 0.3, 0.4"),
    TwoDistributions("equal", "q = p", _DRINKS, _TRUTH, _TRUTH),
    TwoDistributions("zero", "zero in q", _DRINKS, _TRUTH, "0.6, 0.4, 0"),
)


@figure(
    "one_hot",
    "A one-hot truth beside a prediction",
    control("choice", "example", "Example", {e.key: e.label for e in ONE_HOT}, ONE_HOT[0].key),
    control("piece", "true"),
    needs_model=False,
)
def _show_one_hot(request: FigureInputs) -> Any:
    example = next(
        (candidate for candidate in ONE_HOT if candidate.key == request["example"]), ONE_HOT[0]
    )
    names, q = split_words(example.names), read_numbers(example.q, "q")
    # Each example has a choice of its own, since they differ in their classes.
    usual = read_numbers(example.p, "p").index(1.0)
    true = request.integer(f"true_{example.key}", 0, len(q) - 1, usual)
    p = [float(number == true) for number in range(len(q))]
    choice = {"example": example.key, "names": names, "true": true}
    return {"choice": choice, "comparison": compare(p, q, names), "unit": "nats"}


@figure(
    "compare_distributions",
    "Two distributions of your own",
    _row(
        around(
            "group",
            "Distributions to begin with",
            *(control("button", preset.key, preset.label) for preset in (*ONE_HOT, *SOFT)),
        ),
        control("choice", "unit", "Unit", {"nats": "nats", "bits": "bits"}, "nats"),
    ),
    _row(
        control("text", "names", "Classes", SOFT[0].names),
        control("text", "p", "Truth p", SOFT[0].p),
        control("text", "q", "Prediction q", SOFT[0].q),
        control("button", "scale", "Scale to a sum of 1"),
    ),
    needs_model=False,
)
def _show_compare(request: FigureInputs) -> Any:
    presets = (*ONE_HOT, *SOFT)
    pressed_preset = next((preset for preset in presets if request.pressed(preset.key)), None)
    typed = {name: getattr(pressed_preset, name, request[name]) for name in ("names", "p", "q")}
    p, q = (read_numbers(typed[name], name) for name in ("p", "q"))
    if request.pressed("scale"):
        p, q = (n if adds_up(n) else scaled(n, name) for name, n in (("p", p), ("q", q)))
        typed |= {"p": _written(p), "q": _written(q)}
    unit = "bits" if request["unit"] == "bits" else "nats"
    comparison = compare(p, q, split_words(typed["names"]))
    changed = typed if pressed_preset or request.pressed("scale") else {}
    return {"comparison": comparison, "unit": unit}, changed


def _written(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.6g}" for number in numbers)


@figure(
    "soft_truth",
    "Cross-entropy for every prediction",
    control("slider", "p", "Truth p(tea)", 0, 1, 0.01, 0.7),
    control("slider", "q", "Prediction q(tea)", 0.01, 0.99, 0.01, 0.4),
    needs_model=False,
)
def _show_soft_truth(request: FigureInputs) -> Any:
    p, q = request["p"], request["q"]
    curve = {
        share: compare((p, 1 - p), (share, 1 - share)).cross_entropy_nats
        for share in (step / 200 for step in range(1, 200))
    }
    comparison = compare((p, 1 - p), (q, 1 - q), ("tea", "coffee"))
    return {"comparison": comparison, "p": p, "q": q, "curve": curve}


@figure(
    "model_truth",
    "The truth and the model's prediction",
    control("text", "text", "Sentence", SENTENCE, hint="with one [MASK]"),
    control("text", "word", "True word", WORD, short=True),
)
def _show_model_truth(request: FigureInputs) -> Any:
    text, word = request["text"], request["word"].strip()
    masked = find_masked_position(request.model, text)
    true_token(request.model, masked, word)  # a softmax is over single tokens
    prediction = expected(request, f"{masked.before}{MASK}{masked.after}", word, _WORDS)
    bars = prediction["bars"]
    # All other words share one row: with p = 0 it adds nothing, whatever they are.
    p = [float(bar.kind == "hidden") for bar in bars]
    comparison = compare(p, [bar.probability for bar in bars], [bar.word for bar in bars])
    return {"comparison": comparison, **prediction}
