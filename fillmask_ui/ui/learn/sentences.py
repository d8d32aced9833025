"""Figures of the chapter on next sentence prediction."""

from collections.abc import Mapping
from dataclasses import dataclass

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
from fillmask_ui.show.render import render
from fillmask_ui.ui.background import Waiting
from fillmask_ui.ui.figure import Asked, Figure, Shown

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
    "sentence_pair": Figure("Two sentences as one text", show_pair, _SENTENCES),
    "next_sentence": Figure("Does the second sentence follow?", show_order, _SENTENCES),
    "pretraining_loss": Figure("Both losses of a pair", show_losses, {**_SENTENCES, "seed": SEED}),
}
