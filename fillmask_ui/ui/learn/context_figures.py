"""Figures of the chapters on both sides of a masked word and on next sentence prediction."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fillmask_ui.errors import OptionError
from fillmask_ui.filling import fill, score_candidate_at
from fillmask_ui.lessons.context_sides import SidedText, Sides, View, attention, side_losses
from fillmask_ui.lessons.next_sentence import (
    FOLLOWS,
    RANDOM,
    SentencePair,
    next_probability,
    order_loss,
    pair_loss,
    predicts_next,
    sentence_pair,
)
from fillmask_ui.show.drawing import bars_of
from fillmask_ui.ui.background import Report, Waiting
from fillmask_ui.ui.components import link_to
from fillmask_ui.ui.figure import Asked, Figure, Shown, piece
from fillmask_ui.ui.session import check_text

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


def _show_sides(asked: Asked) -> Shown:
    example = next((one for one in EXAMPLES if asked.pressed(one.key)), None)
    text = example.text if example else asked.text("text", EXAMPLES[0].text)
    word = example.word if example else asked.text("word", EXAMPLES[0].word)
    sides = _sides(asked, text, word)
    views = {"Left only": sides.left(), "Right only": sides.right(), "Both sides": sides.both()}
    controls = {"text": text, "word": word} if example else {}
    return Shown(_view_pieces(asked, views, word), controls)


def _show_cut(asked: Asked) -> Shown:
    text, word = asked.text("text", EXAMPLES[1].text), asked.text("word", EXAMPLES[1].word)
    sides = _sides(asked, text, word)
    if asked.text("kept") == "right":
        views = {"Cut off": sides.right(), "Hidden by masks": sides.hidden("left")}
    else:
        views = {"Cut off": sides.bare()}
        if sides.sign:
            views[f"Cut off, “{sides.sign}” stays"] = sides.left()
        views["Hidden by masks"] = sides.hidden("right")
    if len(views) < 3:
        views["All words"] = sides.both()
    return Shown(_view_pieces(asked, views, word))


def _sides(asked: Asked, text: str, word: str) -> Sides:
    check_text(text)
    if not word.strip():
        raise OptionError("the true word is missing: write the word that belongs into the gap")
    return Sides.of(asked.model, text)


def _view_pieces(asked: Asked, views: Mapping[str, View], word: str) -> dict[str, str]:
    """A piece for each view by its title: bars slide from what they were in the same piece."""
    pieces = {}
    for number, (title, view) in enumerate(views.items(), 1):
        filling = asked.session.ask(asked.model, fill, view.text, top_k=_BARS, joint=0)
        scored = asked.session.ask(
            asked.model, score_candidate_at, view.text, word.strip(), view.mask
        )
        size = filling.signature.vocabulary_size
        bars = bars_of(filling.masks[view.mask], view.mask, asked.model.vocabulary, size, scored)
        pieces[f"view{number}"] = piece(
            "sides",
            "view",
            title=title,
            shown=view,
            scored=scored,
            # In a narrow column the summary says what notes would; and no click writes a word here.
            bars=[replace(bar, note="", key="") for bar in bars],
            link="?" + link_to("explore", text=view.text, words=word.strip()),
        )
    return pieces


def _show_attention(asked: Asked) -> Shown:
    text = asked.text("text", WALDEN)
    check_text(text)
    grids = attention(asked.model, text)
    return Shown({"grids": piece("attention", "both", grids=grids)})


def _show_side_losses(asked: Asked) -> Shown:
    text, model = asked.text("text", ALL_WORDS), asked.model
    check_text(text)

    def work(report: Report) -> SidedText:
        return side_losses(
            model, text, lambda done, of: report(Waiting(f"{done} of {of} words", done / of))
        )

    found = asked.slowly(("side_losses", text), work)
    return Shown({"losses": piece("side_losses", "losses", found=found)})


# ---- Next sentence prediction

FIRST, SECOND = "She put the kettle on the fire.", "Soon the water began to boil."
SEED = 6  # with the embedded model it hides tokens of both sentences


def _pair(asked: Asked) -> SentencePair:
    texts = asked.text("first", FIRST, 500), asked.text("second", SECOND, 500)
    return sentence_pair(asked.model, *texts)


def _truth(asked: Asked) -> int:
    return asked.integer("truth", FOLLOWS, RANDOM, FOLLOWS)


def _by_hand(asked: Asked) -> float:
    return asked.number("probability", 0.01, 0.99, 0.7)


def show_pair(asked: Asked) -> Shown:
    """The tokens of both sentences, each in its segment."""
    pair = _pair(asked)
    tokens = zip(pair.encoding.tokens, pair.encoding.special, pair.segments, strict=True)
    html = piece(
        "sentence_pair",
        "segments",
        tokens=list(tokens),
        predicts=predicts_next(asked.model),
        start=pair.encoding.tokens[0],
    )
    return Shown({"tokens": html})


def show_order(asked: Asked) -> Shown:
    """P(the second sentence follows the first), by the model's head or by the reader."""
    pair, truth, probability = _pair(asked), _truth(asked), _by_hand(asked)
    predicts = predicts_next(asked.model)
    if predicts:
        key = ("next sentence", pair.encoding.ids, pair.segments)
        # The head is loaded when it is first asked for.
        probability = asked.slowly(key, lambda _: next_probability(asked.model, pair))
    # A head may be so sure that nothing is left in float64.
    probability = min(max(probability, 1e-12), 1 - 1e-12)
    html = piece(
        "next_sentence",
        "order",
        predicts=predicts,
        name=asked.model.signature.name,
        classes={"it follows": probability, "it does not": 1 - probability},
        truth=truth,
        true_probability=(probability, 1 - probability)[truth],
        loss=order_loss(probability, truth),
        other_loss=order_loss(probability, 1 - truth),
    )
    return Shown({"order": html})


def show_losses(asked: Asked) -> Shown:
    """The masked-LM loss of the pair, the loss of its order, and their sum."""
    pair, truth, seed = _pair(asked), _truth(asked), asked.integer("seed", 0, 9999, SEED)
    given = _by_hand(asked)
    key = ("pair loss", pair.encoding.ids, pair.segments, truth, seed, given)
    loss = asked.slowly(key, lambda _: pair_loss(asked.model, pair, seed, truth, given))
    html = piece(
        "pretraining_loss",
        "losses",
        predicts=predicts_next(asked.model),
        loss=loss,
        first=asked.text("first", FIRST, 500),
        second=asked.text("second", SECOND, 500),
    )
    return Shown({"losses": html})


_LOCK = {"text": EXAMPLES[0].text, "word": EXAMPLES[0].word, "examples": EXAMPLES}
_SENTENCES = {"first": FIRST, "second": SECOND}
FIGURES: Mapping[str, Figure] = {
    "sides": Figure("One gap from three sides", _show_sides, _LOCK),
    "cut_or_hidden": Figure(
        "A side that is cut off, and one that is hidden",
        _show_cut,
        {"text": EXAMPLES[1].text, "word": EXAMPLES[1].word},
    ),
    "attention": Figure("Who may look at whom", _show_attention, {"text": WALDEN}),
    "side_losses": Figure("Every word from three sides", _show_side_losses, {"text": ALL_WORDS}),
    "sentence_pair": Figure("Two sentences as one text", show_pair, _SENTENCES),
    "next_sentence": Figure("Does the second sentence follow?", show_order, _SENTENCES),
    "pretraining_loss": Figure("Both losses of a pair", show_losses, {**_SENTENCES, "seed": SEED}),
}
