"""Figures of the chapters on both sides of a masked word and on next sentence prediction."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import fillmask_ui.features.course.next_sentence as pretraining
from fillmask_ui.errors import OptionError
from fillmask_ui.features.course.context_sides import (
    Sides,
    View,
    attention,
    head_map,
    side_losses,
)
from fillmask_ui.features.course.lesson_figure import figure
from fillmask_ui.features.course.pair_head import predicts_next
from fillmask_ui.filling import fill, score_candidate_at
from fillmask_ui.show.drawing import bars_of
from fillmask_ui.ui.components import link_to
from fillmask_ui.ui.figure import Control, FigureInputs, around, control

_BARS = 3  # of one view, beside those of the true word and of all others


@dataclass(frozen=True)
class GapExample:
    """A sentence with a mask whose sides matter in a way of their own."""

    key: str  # and label of its button
    text: str
    word: str  # the true one


EXAMPLES = (
    GapExample("lock", "I put the [MASK] into the lock and opened the door.", "key"),
    GapExample("postman", "The [MASK] barked at the postman.", "dog"),
    GapExample("tree", "She ate an [MASK] from the tree.", "apple"),
    GapExample("cup", "I drink a cup of [MASK] every morning.", "tea"),
)
# No model is asked about it: its grids hold for any sentence.
WALDEN = "The [MASK] of Walden Pond is so beautifully blue."
ALL_WORDS = "The boy did not eat the soup because it was too hot."


def _gap(example: GapExample) -> tuple[Control, Control]:
    """Controls of a sentence with a gap and its true word, each figure with its own."""
    return (
        control("text", "text", "Sentence", example.text, hint="with one [MASK]"),
        control("text", "word", "True word", example.word, short=True),
    )


_BUTTONS = around("group", "Sentences to try", *(control("button", e.key, e.key) for e in EXAMPLES))


@figure("sides", "One gap from three sides", *_gap(EXAMPLES[0]), _BUTTONS)
def _show_sides(request: FigureInputs) -> Any:
    example = next((candidate for candidate in EXAMPLES if request.pressed(candidate.key)), None)
    text, word = (example.text, example.word) if example else (request["text"], request["word"])
    sentence = _sides(request, text, word)
    views = {
        "Left only": sentence.left(),
        "Right only": sentence.right(),
        "Both sides": sentence.both(),
    }
    return _views(request, views, word), {"text": text, "word": word} if example else {}


@figure(
    "cut_or_hidden",
    "One side cut off, or hidden by masks",
    *_gap(EXAMPLES[1]),
    control("choice", "kept", "Keep the", {"left": "left side", "right": "right side"}, "left"),
    template="sides",
)
def _show_cut(request: FigureInputs) -> Any:
    sentence = _sides(request, request["text"], request["word"])
    if request["kept"] == "right":
        views = {"Cut off": sentence.right(), "Hidden by masks": sentence.hidden("left")}
    else:
        views = {"Cut off": sentence.bare()}
        if sentence.sign:
            views[f"Cut off, “{sentence.sign}” stays"] = sentence.left()
        views["Hidden by masks"] = sentence.hidden("right")
    if len(views) < 3:
        views["All words"] = sentence.both()
    return _views(request, views, request["word"])


def _sides(request: FigureInputs, text: str, word: str) -> Sides:
    if not word.strip():
        raise OptionError("the true word is missing: type the word that belongs in the gap")
    return Sides.of(request.model, text)


def _views(request: FigureInputs, views: dict[str, View], word: str) -> dict[str, Any]:
    seen = []
    for title, view in views.items():
        prediction = expected(request, view.text, word.strip(), _BARS, view.mask)
        # In a narrow column the summary says what notes would; and no click writes a word here.
        plain = [replace(bar, note="", key="") for bar in prediction.pop("bars")]
        seen.append({"title": title, "view": view, "bars": plain, **prediction})
    return {"views": seen}


def expected(
    request: FigureInputs, text: str, word: str, top_k: int, mask: int = 0
) -> dict[str, Any]:
    """The best words at a mask and its true word as `bars`, the latter `scored`, a `link`."""
    filling = request.session.ask(request.model, fill, text, top_k=top_k, joint=0)
    scored = request.session.ask(request.model, score_candidate_at, text, word, mask)
    size = filling.signature.vocabulary_size
    bars = bars_of(filling.masks[mask], mask, request.model.vocabulary, size, scored)
    link = "?" + link_to("explore", text=text, words=word)
    return {"bars": bars, "scored": scored, "size": size, "link": link}


_GAP = control("text", "text", "Sentence", WALDEN, hint="with one [MASK]")
_ALL = control(
    "text", "text", "Sentence", ALL_WORDS, hint="without a gap; each word is hidden in turn"
)


@figure("attention", "Who may look at whom", _GAP)
def _show_attention(request: FigureInputs) -> Any:
    return {"grids_of_models": attention(request.model, request["text"])}


@figure(
    "heads",
    "What one head looks at",
    _GAP,
    control("dial", "layer", "Layer", 3, low=1, high=99),
    control("dial", "head", "Head", 2, low=1, high=99),
)
def _show_heads(request: FigureInputs) -> Any:
    text, layer, head = request["text"], request["layer"], request["head"]
    # The first opens a part of the model that nothing else needs.
    seen = request.slowly(
        ("head", text, layer, head), lambda _: head_map(request.model, text, layer, head)
    )
    return {"seen": seen}, {"layer": str(seen.layer), "head": str(seen.head)}


@figure("side_losses", "Every word from three sides", _ALL)
def _show_side_losses(request: FigureInputs) -> Any:
    measure = partial(side_losses, request.model, request["text"])
    return {"losses_by_side": request.counted(("side_losses", request["text"]), "words", measure)}


# ---- Next sentence prediction

FIRST, SECOND = "She put the kettle on the fire.", "Soon the water began to boil."
SEED = 6  # with the embedded model it hides tokens of both sentences
_SENTENCES = (
    control("text", "first", "First sentence", FIRST, carried=True),
    control("text", "second", "Second sentence", SECOND, carried=True),
)
_TRUTHS = {str(pretraining.FOLLOWS): "follows", str(pretraining.RANDOM): "is from elsewhere"}
_SLIDER = control("slider", "probability", "Your P(it follows)", 0.01, 0.99, 0.01, 0.7)
# What only a model without the head needs stands in a box that another one hides.
_ORDER = (
    control("choice", "truth", "In truth, the second sentence", _TRUTHS, str(pretraining.FOLLOWS)),
    around("box", "fm-by-hand", _SLIDER),
)


def _pair(request: FigureInputs) -> pretraining.SentencePair:
    return pretraining.sentence_pair(request.model, request["first"][:500], request["second"][:500])


def _truth(request: FigureInputs) -> int:
    is_random = request["truth"] == str(pretraining.RANDOM)
    return pretraining.RANDOM if is_random else pretraining.FOLLOWS


@figure("sentence_pair", "Two sentences as one text", *_SENTENCES)
def _show_pair(request: FigureInputs) -> Any:
    pair = _pair(request)
    read = zip(pair.encoding.tokens, pair.encoding.special, pair.segments, strict=True)
    return {"read": list(read), "predicts": predicts_next(request.model)}


@figure(
    "next_sentence",
    "Does the second sentence follow?",
    around("box", "fm-controls", *_SENTENCES),
    around("box", "fm-controls", *_ORDER),
)
def _show_order(request: FigureInputs) -> Any:
    model, pair, truth = request.model, _pair(request), _truth(request)
    probability = request["probability"]
    if predicts_next(model):
        key = ("next sentence", pair.encoding.ids, pair.segments)
        # The head is loaded when it is first asked for.
        probability = request.slowly(key, lambda _: pretraining.next_probability(model, pair))
    # A head may be so sure that nothing is left in float64.
    probability = min(max(probability, 1e-12), 1 - 1e-12)
    return {
        "predicts": predicts_next(request.model),
        "name": request.model.signature.name,
        "classes": {"it follows": probability, "it does not": 1 - probability},
        "truth": truth,
        "true_probability": (probability, 1 - probability)[truth],
        "loss": pretraining.order_loss(probability, truth),
        "other_loss": pretraining.order_loss(probability, 1 - truth),
    }


@figure(
    "pretraining_loss",
    "Both losses of a pair",
    control("hidden", "first", "", FIRST, carried=True),
    control("hidden", "second", "", SECOND, carried=True),
    control("dial", "seed", "Seed of the masks", SEED),
    *_ORDER,
)
def _show_losses(request: FigureInputs) -> Any:
    pair, truth = _pair(request), _truth(request)
    seed, probability = request["seed"], request["probability"]
    key = ("pair loss", pair.encoding.ids, pair.segments, truth, seed, probability)
    return {
        "predicts": predicts_next(request.model),
        "loss": request.slowly(
            key, lambda _: pretraining.pair_loss(request.model, pair, seed, truth, probability)
        ),
        "sentences": (request["first"][:500], request["second"][:500]),
    }
