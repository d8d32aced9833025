"""Figures of the chapter on both sides: what a model gains from the words right of a gap."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fillmask_ui.errors import OptionError
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
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import ScoredWord
from fillmask_ui.show.drawing import Bar, Scale, bars_of
from fillmask_ui.show.render import render
from fillmask_ui.ui.background import Report, Waiting
from fillmask_ui.ui.components import link_to
from fillmask_ui.ui.figure import Asked, Figure, Shown
from fillmask_ui.ui.session import Session, check_text

# Bars of one view, beside those of the true word and of all others.
_BARS = 3
TITLES = {
    "left": "Left only",
    "bare": "Cut off",
    "right": "Right only",
    "hidden": "Hidden by masks",
    "both": "Both sides",
}


@dataclass(frozen=True)
class Example:
    """A sentence with a gap whose sides matter in a way of their own."""

    key: str  # of its button
    label: str
    text: str
    word: str  # the true one


EXAMPLES = (
    Example("lock", "lock", "I put the [MASK] into the lock and opened the door.", "key"),
    Example("postman", "postman", "The [MASK] barked at the postman.", "dog"),
    Example("tree", "tree", "She ate an [MASK] from the tree.", "apple"),
    Example("cup", "cup", "I drink a cup of [MASK] every morning.", "tea"),
)
# No model is asked about it: its grids hold for any sentence.
WALDEN = "The [MASK] of Walden Pond is so beautifully blue."
ALL_WORDS = "The boy did not eat the soup because it was too hot."


@dataclass(frozen=True)
class Seen:
    """What the model makes of one view."""

    title: str
    view: View
    scored: ScoredWord  # the true word
    bars: tuple[Bar, ...]
    link: str  # to the same in the Explore tab


def seen(session: Session, model: MaskedLM, view: View, word: str, title: str) -> Seen:
    """The distribution at the gap of a view, and the loss of the true word."""
    filling = session.fill(model, view.text, top_k=_BARS, joint=0)
    scored = session.score_at(model, view.text, word, view.gap)
    size = filling.signature.vocabulary_size
    bars = bars_of(filling.masks[view.gap], view.gap, model.vocabulary, size, scored)
    # In a narrow column the summary says what the notes would; and no click writes a word here.
    bars = tuple(replace(bar, note="", key="") for bar in bars)
    return Seen(title, view, scored, bars, "?" + link_to("explore", text=view.text, words=word))


def _show_sides(asked: Asked) -> Shown:
    example = next((one for one in EXAMPLES if asked.pressed(one.key)), None)
    text = example.text if example else asked.text("text", EXAMPLES[0].text)
    word = example.word if example else asked.text("word", EXAMPLES[0].word)
    sides = _sides(asked.model, text, word)
    views = {TITLES[view.key]: view for view in (sides.left(), sides.right(), sides.both())}
    controls = {"text": text, "word": word} if example else {}
    return Shown(_pieces(asked, views, word), controls)


def _show_cut(asked: Asked) -> Shown:
    text, word = asked.text("text", EXAMPLES[1].text), asked.text("word", EXAMPLES[1].word)
    sides = _sides(asked.model, text, word)
    side = "right" if asked.text("kept") == "right" else "left"
    other = "right" if side == "left" else "left"
    views = {TITLES["bare"]: sides.bare() if side == "left" else sides.right()}
    if side == "left" and sides.sign:
        views[f"Cut off, “{sides.sign}” stays"] = sides.left()
    views[TITLES["hidden"]] = sides.hidden(other)
    if len(views) < 3:
        views["All words"] = sides.both()
    return Shown(_pieces(asked, views, word))


def _sides(model: MaskedLM, text: str, word: str) -> Sides:
    check_text(text)
    if not word.strip():
        raise OptionError("the true word is missing: write the word that belongs into the gap")
    return Sides.of(model, text)


def _pieces(asked: Asked, views: Mapping[str, View], word: str) -> dict[str, str]:
    """A piece for each view by its title: bars slide from what they were in the same piece."""
    found = [
        seen(asked.session, asked.model, view, word.strip(), title) for title, view in views.items()
    ]
    return {
        f"view{number}": render("page/learn/sides_view.html", seen=one)
        for number, one in enumerate(found, 1)
    }


def _show_attention(asked: Asked) -> Shown:
    text = asked.text("text", WALDEN)
    check_text(text)
    grids = attention(asked.model, text)
    return Shown({"grids": render("page/learn/attention_grids.html", grids=grids)})


def _show_side_losses(asked: Asked) -> Shown | Waiting:
    text, model = asked.text("text", ALL_WORDS), asked.model
    check_text(text)

    def work(report: Report) -> SidedText:
        return side_losses(
            model, text, lambda done, of: report(Waiting(f"{done} of {of} words", done / of))
        )

    state = asked.session.slowly(model, ("side_losses", text), work)
    if isinstance(state, Waiting):
        return state
    found = state.result
    return Shown({"losses": render("page/learn/side_losses_result.html", **_drawing(found))})


def _drawing(found: SidedText) -> dict[str, object]:
    """Values of the template: where each word and each loss stands."""
    highest = max(max(word.left, word.right, word.both) for word in found.words)
    losses = Scale(0, highest, 200, 12)
    places = Scale(-0.5, len(found.words) - 0.5, 40, 700)
    means = {side: found.mean(side) for side in ("left", "right", "both")}
    return {"found": found, "losses": losses, "places": places, "means": means}


def _titled(values: Sequence[Example]) -> Mapping[str, object]:
    return {"examples": values, "text": values[0].text, "word": values[0].word}


FIRST, SECOND = "She put the kettle on the fire.", "Soon the water began to boil."
SEED = 6  # with the embedded model it hides tokens of both sentences


@dataclass(frozen=True)
class Token:
    """One token of a pair."""

    text: str
    special: bool


@dataclass(frozen=True)
class Segment:
    """One sentence of a pair, with the special tokens that go with it."""

    name: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True)
class Class:
    """One of the two answers."""

    name: str
    probability: float
    true: bool


def _pair(asked: Asked) -> SentencePair:
    texts = asked.text("first", FIRST, 500), asked.text("second", SECOND, 500)
    return sentence_pair(asked.model, *texts)


def _truth(asked: Asked) -> int:
    return asked.integer("truth", FOLLOWS, RANDOM, FOLLOWS)


def _by_hand(asked: Asked) -> float:
    return asked.number("probability", 0.01, 0.99, 0.7)


def show_pair(asked: Asked) -> Shown:
    """The tokens of both sentences as the model reads them."""
    encoding, segments = (pair := _pair(asked)).encoding, pair.segments
    rows = [
        Segment(
            name,
            tuple(
                Token(token, special)
                for token, special, own in zip(
                    encoding.tokens, encoding.special, segments, strict=True
                )
                if own == number
            ),
        )
        for number, name in enumerate("AB")
    ]
    html = render(
        "page/learn/sentence_pair_tokens.html",
        segments=rows,
        count=len(encoding),
        predicts=predicts_next(asked.model),
        start=encoding.tokens[0],
    )
    return Shown({"tokens": html})


def show_order(asked: Asked) -> Shown | Waiting:
    """P(the second sentence follows the first), by the model's head or by the reader."""
    pair, truth = _pair(asked), _truth(asked)
    predicts = predicts_next(asked.model)
    probability = _by_hand(asked)
    if predicts:
        key = ("next sentence", pair.encoding.ids, pair.segments)
        # The head is loaded when it is first asked for.
        state = asked.session.slowly(
            asked.model, key, lambda _: next_probability(asked.model, pair)
        )
        if isinstance(state, Waiting):
            return state
        probability = state.result
    # A head may be so sure that nothing is left in float64.
    probability = min(max(probability, 1e-12), 1 - 1e-12)
    rows = [
        Class("it follows", probability, truth == FOLLOWS),
        Class("it does not", 1 - probability, truth == RANDOM),
    ]
    html = render(
        "page/learn/next_sentence_result.html",
        predicts=predicts,
        name=asked.model.signature.name,
        rows=rows,
        true_probability=rows[truth].probability,
        loss=order_loss(probability, truth),
        other_loss=order_loss(probability, 1 - truth),
    )
    return Shown({"order": html})


def show_losses(asked: Asked) -> Shown | Waiting:
    """The masked-LM loss of the pair, the loss of its order, and their sum."""
    pair, truth, seed = _pair(asked), _truth(asked), asked.integer("seed", 0, 9999, SEED)
    given = _by_hand(asked)
    key = ("pair loss", pair.encoding.ids, pair.segments, truth, seed, given)
    state = asked.session.slowly(
        asked.model, key, lambda _: pair_loss(asked.model, pair, seed, truth, given)
    )
    if isinstance(state, Waiting):
        return state
    html = render(
        "page/learn/pretraining_loss_result.html",
        predicts=predicts_next(asked.model),
        loss=state.result,
        first=asked.text("first", FIRST, 500),
        second=asked.text("second", SECOND, 500),
    )
    return Shown({"losses": html})


_SENTENCES = {"first": FIRST, "second": SECOND}
FIGURES: Mapping[str, Figure] = {
    "sides": Figure("One gap from three sides", _show_sides, _titled(EXAMPLES)),
    "cut_or_hidden": Figure(
        "A side that is cut off, and one that is hidden", _show_cut, _titled(EXAMPLES[1:2])
    ),
    "attention": Figure("Who may look at whom", _show_attention, {"text": WALDEN}),
    "side_losses": Figure("Every word from three sides", _show_side_losses, {"text": ALL_WORDS}),
    "sentence_pair": Figure("Two sentences as one text", show_pair, _SENTENCES),
    "next_sentence": Figure("Does the second sentence follow?", show_order, _SENTENCES),
    "pretraining_loss": Figure("Both losses of a pair", show_losses, {**_SENTENCES, "seed": SEED}),
}
