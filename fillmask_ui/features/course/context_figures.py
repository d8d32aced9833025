"""Figures of the chapters on both sides of a masked word and on next sentence prediction."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import fillmask_ui.features.course.next_sentence as pretraining
from fillmask_ui.errors import OptionError
from fillmask_ui.features.course.context_sides import Sides, View, attention, side_losses
from fillmask_ui.features.course.lesson_figure import figure
from fillmask_ui.features.course.pair_head import predicts_next
from fillmask_ui.filling import fill, score_candidate_at
from fillmask_ui.show.drawing import bars_of
from fillmask_ui.ui.components import link_to
from fillmask_ui.ui.figure import Asked, Control, around, control

_BARS = 3  # of one view, beside those of the true word and of all others


@dataclass(frozen=True)
class Example:
    """A sentence with a mask whose sides matter in a way of their own."""

    key: str  # and label of its button
    text: str
    word: str  # the true one


EXAMPLES = (
    Example("lock", "I put the [MASK] into the lock and opened the door.", "key"),
    Example("postman", "The [MASK] barked at the postman.", "dog"),
    Example("tree", "She ate an [MASK] from the tree.", "apple"),
    Example("cup", "I drink a cup of [MASK] every morning.", "tea"),
)
# No model is asked about it: its grids hold for any sentence.
WALDEN = "The [MASK] of Walden Pond is so beautifully blue."
ALL_WORDS = "The boy did not eat the soup because it was too hot."


def _gap(example: Example) -> tuple[Control, Control]:
    """Controls of a sentence with a gap and its true word, each figure with its own."""
    return (
        control("text", "text", "Sentence", example.text, hint="with one [MASK]"),
        control("text", "word", "True word", example.word, short=True),
    )


_BUTTONS = around("group", "Sentences to try", *(control("button", e.key, e.key) for e in EXAMPLES))


@figure("sides", "One gap from three sides", *_gap(EXAMPLES[0]), _BUTTONS)
def _show_sides(asked: Asked) -> Any:
    example = next((one for one in EXAMPLES if asked.pressed(one.key)), None)
    text, word = (example.text, example.word) if example else (asked["text"], asked["word"])
    own = _sides(asked, text, word)
    views = {"Left only": own.left(), "Right only": own.right(), "Both sides": own.both()}
    return _views(asked, views, word), {"text": text, "word": word} if example else {}


@figure(
    "cut_or_hidden",
    "One side cut off, or hidden by masks",
    *_gap(EXAMPLES[1]),
    control("choice", "kept", "Keep the", {"left": "left side", "right": "right side"}, "left"),
    template="sides",
)
def _show_cut(asked: Asked) -> Any:
    own = _sides(asked, asked["text"], asked["word"])
    if asked["kept"] == "right":
        views = {"Cut off": own.right(), "Hidden by masks": own.hidden("left")}
    else:
        views = {"Cut off": own.bare()}
        if own.sign:
            views[f"Cut off, “{own.sign}” stays"] = own.left()
        views["Hidden by masks"] = own.hidden("right")
    if len(views) < 3:
        views["All words"] = own.both()
    return _views(asked, views, asked["word"])


def _sides(asked: Asked, text: str, word: str) -> Sides:
    if not word.strip():
        raise OptionError("the true word is missing: type the word that belongs in the gap")
    return Sides.of(asked.model, text)


def _views(asked: Asked, views: dict[str, View], word: str) -> dict[str, Any]:
    seen = []
    for title, view in views.items():
        found = expected(asked, view.text, word.strip(), _BARS, view.mask)
        # In a narrow column the summary says what notes would; and no click writes a word here.
        plain = [replace(bar, note="", key="") for bar in found.pop("bars")]
        seen.append({"title": title, "view": view, "bars": plain, **found})
    return {"views": seen}


def expected(asked: Asked, text: str, word: str, top_k: int, mask: int = 0) -> dict[str, Any]:
    """The best words at a mask and its true word as `bars`, the latter `scored`, a `link`."""
    filling = asked.session.ask(asked.model, fill, text, top_k=top_k, joint=0)
    scored = asked.session.ask(asked.model, score_candidate_at, text, word, mask)
    size = filling.signature.vocabulary_size
    bars = bars_of(filling.masks[mask], mask, asked.model.vocabulary, size, scored)
    link = "?" + link_to("explore", text=text, words=word)
    return {"bars": bars, "scored": scored, "size": size, "link": link}


_GAP = control("text", "text", "Sentence", WALDEN, hint="with one [MASK]")
_ALL = control(
    "text", "text", "Sentence", ALL_WORDS, hint="without a gap; each word is hidden in turn"
)


@figure("attention", "Who may look at whom", _GAP)
def _show_attention(asked: Asked) -> Any:
    return {"both": attention(asked.model, asked["text"])}


@figure("side_losses", "Every word from three sides", _ALL)
def _show_side_losses(asked: Asked) -> Any:
    measure = partial(side_losses, asked.model, asked["text"])
    return {"found": asked.counted(("side_losses", asked["text"]), "words", measure)}


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


def _pair(asked: Asked) -> pretraining.SentencePair:
    return pretraining.sentence_pair(asked.model, asked["first"][:500], asked["second"][:500])


def _truth(asked: Asked) -> int:
    return pretraining.RANDOM if asked["truth"] == str(pretraining.RANDOM) else pretraining.FOLLOWS


@figure("sentence_pair", "Two sentences as one text", *_SENTENCES)
def _show_pair(asked: Asked) -> Any:
    own = _pair(asked)
    read = zip(own.encoding.tokens, own.encoding.special, own.segments, strict=True)
    return {"read": list(read), "predicts": predicts_next(asked.model)}


@figure(
    "next_sentence",
    "Does the second sentence follow?",
    around("box", "fm-controls", *_SENTENCES),
    around("box", "fm-controls", *_ORDER),
)
def _show_order(asked: Asked) -> Any:
    model, pair, truth, probability = asked.model, _pair(asked), _truth(asked), asked["probability"]
    if predicts_next(model):
        key = ("next sentence", pair.encoding.ids, pair.segments)
        # The head is loaded when it is first asked for.
        probability = asked.slowly(key, lambda _: pretraining.next_probability(model, pair))
    # A head may be so sure that nothing is left in float64.
    probability = min(max(probability, 1e-12), 1 - 1e-12)
    return {
        "predicts": predicts_next(asked.model),
        "name": asked.model.signature.name,
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
def _show_losses(asked: Asked) -> Any:
    pair, truth, seed, given = _pair(asked), _truth(asked), asked["seed"], asked["probability"]
    key = ("pair loss", pair.encoding.ids, pair.segments, truth, seed, given)
    return {
        "predicts": predicts_next(asked.model),
        "loss": asked.slowly(
            key, lambda _: pretraining.pair_loss(asked.model, pair, seed, truth, given)
        ),
        "sentences": (asked["first"][:500], asked["second"][:500]),
    }
