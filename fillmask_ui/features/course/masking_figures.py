"""Figures of the chapters on what gets masked and on the sum of its losses."""

from collections.abc import Callable
from functools import partial
from typing import Any

import fillmask_ui.features.course.token_losses as ledger
from fillmask_ui.errors import TextError
from fillmask_ui.evaluation.summary import GroupFigures, ModelFigures
from fillmask_ui.features.course.lesson_figure import figure
from fillmask_ui.features.course.masked_text import (
    MaskedText,
    each_kind,
    encoded,
    hide,
    mask_text,
    shares,
)
from fillmask_ui.filling import fill_at
from fillmask_ui.masking import DEFAULT_SHARES, KINDS, UNCHANGED, MaskRecipe
from fillmask_ui.protocol import MaskedLM, Vocabulary
from fillmask_ui.records import Encoding
from fillmask_ui.show.words import named
from fillmask_ui.text_words import characters
from fillmask_ui.ui.figure import Asked, around, control

# With this seed the text has chosen tokens of all three kinds in a vocabulary of whole words.
TEXT = "The old woman drinks a cup of tea and her cat waits under the table."
SEED = 4
LUNCH = "Lunch was delicious."
MANY_SEEDS = 1_000
# A longer text has more tokens in each seed, so fewer seeds do.
POOLED_SEEDS = 200
_POOLED_TOKENS = 20_000  # that the model is made to read
_ALL = 9_999  # lines: more than a text can have
_UNCHANGED = round(100 * DEFAULT_SHARES[UNCHANGED])  # percent
_SEEDED = control("text", "text", "Your text", TEXT), control("dial", "seed", "Seed", SEED)
_RATE = control("slider", "rate", "Mask rate", 1, 60, 1, 15, "%")


def _recipe(asked: Asked) -> MaskRecipe:
    return MaskRecipe(probability=asked["rate"] / 100)


def _name(vocabulary: Vocabulary, token_id: int, position: int) -> str:
    """A token at a place of a text, as people write it; the first one ends no word."""
    if token_id == vocabulary.mask_id:
        return "[MASK]"
    return named(vocabulary, token_id, first=position <= 1)


def _names(model: MaskedLM, text: MaskedText) -> list[tuple[str, str]]:
    name = partial(_name, model.vocabulary)
    return [
        (name(own.token_id, own.position), name(own.shown_id, own.position)) for own in text.tokens
    ]


@figure(
    "masking",
    "A text, masked by a seed",
    control("text", "text", "Your text", TEXT, lines=2),
    _SEEDED[1],
    _RATE,
)
def _show_tokens(asked: Asked) -> Any:
    text = mask_text(asked.model, asked["text"], asked["seed"], _recipe(asked))
    return {"text": text, "names": _names(asked.model, text), "seed": asked["seed"]}


@figure("mask_shares", "Shares of one seed and of many", *_SEEDED, _RATE)
def _show_shares(asked: Asked) -> Any:
    recipe, seed, vocabulary = _recipe(asked), asked["seed"], asked.model.vocabulary
    encoding = encoded(asked.model, asked["text"])
    one = shares(encoding, vocabulary, recipe, [seed])
    # A busy machine may take a second; turning the dial then costs nothing.
    many = asked.slowly(
        ("shares", encoding.ids, recipe),
        lambda _: shares(encoding, vocabulary, recipe, range(MANY_SEEDS)),
    )
    counted = {f"seed {seed}": one, f"{MANY_SEEDS:,} seeds": many}
    none = {"free": one.tokens, "empty": many.empty, "many": MANY_SEEDS}
    return {"recipe": recipe, "kinds": KINDS, "counted": counted, **none}


@figure(
    "mask_kinds",
    "One word, masked in three ways",
    control("text", "text", "A short text", LUNCH, hint="the last word is chosen"),
    control("dial", "seed", "First seed to try", 0),
)
def _show_kinds(asked: Asked) -> Any:
    vocabulary = asked.model.vocabulary
    encoding = encoded(asked.model, asked["text"])
    ways = []
    # Each seed chooses this word in this way, and no other.
    for alone in each_kind(encoding, vocabulary, asked["seed"]):
        place, ids = alone.position, tuple(alone.hidden.input_ids.tolist())
        said = asked.session.ask(asked.model, fill_at, ids, place, encoding.ids[place], top_k=1)
        ways.append((alone, _name(vocabulary, ids[place], place), said))
    hidden = characters(encoding, place)
    word = _name(vocabulary, encoding.ids[place], place)
    return {
        "ways": ways,
        "word": word,
        "around": (encoding.text[: hidden.start], encoding.text[hidden.end :]),
    }


# ---- The losses of a text


@figure(
    "ledger",
    "The loss of a text, line by line",
    *_SEEDED,
    around(
        "group",
        "Lines",
        control("button", "more", "Next line", main=True),
        control("button", "all", "All lines"),
        control("button", "first", "Start again"),
        control("button", "evaluate", "Run the evaluator"),
    ),
    control("hidden", "lines", value="1"),
    control("hidden", "evaluated"),
)
def _show_losses(asked: Asked) -> Any:
    """The losses as far as they are revealed, and on demand what the evaluator says."""
    model, seed = asked.model, asked["seed"]
    text = mask_text(model, asked["text"], seed)
    lines = ledger.token_losses(model, text)
    if not lines:
        return _without_lines(model, text, seed), {"lines": "1", "evaluated": ""}
    shown = len(lines)
    if not asked.pressed("all"):
        wanted = 1 if asked.pressed("first") else asked.integer("lines", 1, _ALL, 1)
        shown = min(wanted + asked.pressed("more"), shown)
    # The evaluator has its say until the text or the seed is another.
    question = f"{seed} {text.encoding.text}"
    asks = asked.pressed("evaluate") or asked.values.get("evaluated") == question
    values = {
        "names": _names(model, text),
        "revealed": lines[:shown],
        "count": len(lines),
        "mean": lines[-1].mean_nats,
        "figures": ledger.evaluated(model, text.encoding.text, seed) if asks else None,
    }
    return values, {"lines": str(shown), "evaluated": question if asks else ""}


def _without_lines(model: MaskedLM, text: MaskedText, seed: int) -> dict[str, Any]:
    """What to say where a seed chooses no token, and which one does."""
    other = seed + 1
    while not len(hide(text.encoding, model.vocabulary, other).cols):
        other += 1
    share = (1 - MaskRecipe().probability) ** text.free
    empty = {"seed": seed, "other": other, "free": text.free, "share": share}
    return {"revealed": (), "empty": empty, "figures": None}


@figure("ledger_kinds", "The loss of each kind of token", *_SEEDED)
def _show_kind_losses(asked: Asked) -> Any:
    model, seed = asked.model, asked["seed"]
    text = mask_text(model, asked["text"], seed)
    seeds, pooled = _pooled(asked, text.encoding)
    one = _kinds_and_all(ledger.evaluated(model, text.encoding.text, seed)) if text.chosen else {}
    many = _kinds_and_all(pooled)
    most = max(loss.mean_nll_nats for loss in (*one.values(), *many.values())) or 1.0
    losses = {f"seed {seed}": one, f"{seeds} seeds": many}
    return {"names": (*KINDS, "all"), "losses": losses, "most": most}


def _kinds_and_all(figures: ModelFigures) -> dict[str, GroupFigures | ModelFigures]:
    return {**{group.name: group for group in figures.by_kind}, "all": figures}


@figure(
    "ledger_mix",
    "The mean with other shares of kinds",
    _SEEDED[0],
    control("slider", "unchanged", "Chosen tokens left unchanged", *(0, 90, 5, _UNCHANGED, "%")),
)
def _show_mix(asked: Asked) -> Any:
    seeds, pooled = _pooled(asked, encoded(asked.model, asked["text"]))
    losses = {group.name: group.mean_nll_nats for group in pooled.by_kind}
    if len(losses) < len(KINDS):
        raise TextError(
            f"in {seeds} seeds, no token of this short text is of the kind "
            f"{' or '.join(kind for kind in KINDS if kind not in losses)}: write a longer text"
        )
    unchanged = asked["unchanged"]
    return {
        "mask": losses["mask"],
        "unchanged": unchanged,
        "mixed": ledger.mixed_mean_nats(losses, unchanged / 100),
        "usual": ledger.mixed_mean_nats(losses, _UNCHANGED / 100),
        "usual_share": _UNCHANGED,
        "most": max(losses.values()) or 1.0,
        "many": seeds,
    }


def _pooled(asked: Asked, encoding: Encoding) -> tuple[int, ModelFigures]:
    """The evaluator's figures of one text under many seeds, and how many these are."""
    seeds = min(POOLED_SEEDS, _POOLED_TOKENS // len(encoding) + 1)

    def measure(told: Callable[[int, int], None]) -> ModelFigures:
        return ledger.over_seeds(
            asked.model, encoding.text, range(seeds), lambda seen: told(seen, seeds)
        )

    return seeds, asked.counted(("pooled losses", encoding.text), "seeds", measure)
