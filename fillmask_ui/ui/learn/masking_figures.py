"""Figures of the chapter "What gets masked"."""

from collections.abc import Mapping
from dataclasses import dataclass

from fillmask_ui.filling.words import characters
from fillmask_ui.lessons import masked_text
from fillmask_ui.lessons.masked_text import Shares
from fillmask_ui.masking import KINDS, MaskRecipe
from fillmask_ui.records import Candidate, ScoredWord
from fillmask_ui.show.render import render
from fillmask_ui.ui.background import Waiting
from fillmask_ui.ui.figure import Asked, Figure, Shown
from fillmask_ui.ui.learn.second_model import MOST_SEED, SEED, TEXT, name_of

MANY_SEEDS = 1_000
_RATE = 15  # percent
LUNCH = "Lunch was delicious."


def _tokens(asked: Asked) -> Shown:
    """Each token of a text: original, shown, label."""
    vocabulary = asked.model.vocabulary
    text = masked_text.mask_text(
        asked.model, asked.text("text", TEXT), _seed(asked), _recipe(asked)
    )
    tokens = [
        {
            "kind": token.kind,
            "fixed": token.fixed,
            "original": name_of(vocabulary, token.token_id, token.position),
            "shown": name_of(vocabulary, token.shown_id, token.position),
        }
        for token in text.tokens
    ]
    counts = {kind: sum(token.kind == kind for token in text.tokens) for kind in KINDS}
    values = {"tokens": tokens, "counts": counts, "free": text.free, "seed": _seed(asked)}
    return Shown({"tokens": render("page/learn/masking_result.html", **values)})


@dataclass(frozen=True)
class _Row:
    """A share in the table of shares."""

    name: str
    of: str  # what it is a share of
    expected: float
    counts: tuple[int, int]  # with one seed, with many
    totals: tuple[int, int]  # that they are shares of


def _shares(asked: Asked) -> Shown | Waiting:
    """What one seed and a thousand choose, beside the expected shares."""
    recipe, seed = _recipe(asked), _seed(asked)
    vocabulary = asked.model.vocabulary
    encoding = masked_text.encoded(asked.model, asked.text("text", TEXT))
    one = masked_text.shares(encoding, vocabulary, recipe, [seed])
    # A busy machine may take a second; turning the dial then costs nothing.
    state = asked.session.slowly(
        asked.model,
        ("shares", encoding.ids, recipe),
        lambda _: masked_text.shares(encoding, vocabulary, recipe, range(MANY_SEEDS)),
    )
    if isinstance(state, Waiting):
        return state
    many = state.result
    values = {
        "rows": _rows(recipe, one, many),
        "seeds": (f"seed {seed}", f"{MANY_SEEDS:,} seeds"),
        "free": one.tokens,
        "rate": recipe.probability,
        "no_token": (1 - recipe.probability) ** one.tokens,
        "empty": many.empty,
        "many": MANY_SEEDS,
    }
    return Shown({"shares": render("page/learn/mask_shares_result.html", **values)})


def _rows(recipe: MaskRecipe, one: Shares, many: Shares) -> list[_Row]:
    expected = (recipe.mask_share, recipe.random_share, recipe.unchanged_share)
    chosen = (one.chosen, many.chosen)
    first = _Row("chosen", "tokens", recipe.probability, chosen, (one.tokens, many.tokens))
    counts = zip(KINDS, expected, one.kinds, many.kinds, strict=True)
    kinds = [_Row(kind, "chosen", share, (a, b), chosen) for kind, share, a, b in counts]
    return [first, *kinds]


@dataclass(frozen=True)
class _Way:
    """One way in which a word is shown, and what the model then expects in its place."""

    kind: str  # of `KINDS`
    seed: int  # that chooses this word in this way, and no other
    before: str  # the text to the left
    shown: str  # what the model reads in place of the word
    after: str  # the text to the right
    true: ScoredWord  # the original token
    guess: Candidate  # the model's best


def _kinds(asked: Asked) -> Shown:
    """One word chosen in three ways, and what the model then expects there."""
    model = asked.model
    vocabulary = model.vocabulary
    encoding = masked_text.encoded(model, asked.text("text", LUNCH))
    ways = []
    for alone in masked_text.each_kind(encoding, vocabulary, _seed(asked, 0)):
        place, ids = alone.position, tuple(alone.hidden.input_ids.tolist())
        said = asked.session.fill_at(model, ids, place, encoding.ids[place], top_k=1)
        start, end = characters(encoding, place)
        ways.append(
            _Way(
                alone.kind,
                alone.seed,
                encoding.text[:start],
                name_of(vocabulary, ids[place], place),
                encoding.text[end:],
                said.scored[0],
                said.candidates[0],
            )
        )
    word = name_of(vocabulary, encoding.ids[place], place)
    return Shown({"kinds": render("page/learn/mask_kinds_result.html", ways=ways, word=word)})


def _seed(asked: Asked, plain: int = SEED) -> int:
    return asked.integer("seed", 0, MOST_SEED, plain)


def _recipe(asked: Asked) -> MaskRecipe:
    return MaskRecipe(probability=asked.integer("rate", 1, 60, _RATE) / 100)


_CONTROLS = {"text": TEXT, "seed": SEED, "rate": _RATE}
FIGURES: Mapping[str, Figure] = {
    "masking": Figure("A text, masked by a seed", _tokens, _CONTROLS),
    "mask_shares": Figure("Shares of one seed and of many", _shares, _CONTROLS),
    "mask_kinds": Figure("One word, masked in three ways", _kinds, {"text": LUNCH}),
}
