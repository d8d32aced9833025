"""Figures of the chapters on what gets masked and on the sum of its losses."""

from collections.abc import Callable
from functools import partial
from typing import Any

import fillmask_ui.features.course.token_losses as ledger
from fillmask_ui.errors import TextError
from fillmask_ui.evaluation.summary import GroupFigures, ModelFigures
from fillmask_ui.features.course.lesson_figure import figure
from fillmask_ui.features.course.masked_text import (
    FIRST_TEXT,
    SeedMaskedText,
    each_kind,
    encoded,
    hide,
    mask_text,
    shares,
)
from fillmask_ui.filling import fill_at
from fillmask_ui.masking import (
    DEFAULT_SHARES,
    KINDS,
    UNCHANGED,
    UNIFORM,
    UNIGRAM,
    MaskRecipe,
    generator,
    random_ids,
)
from fillmask_ui.protocol import MaskedLM, Vocabulary
from fillmask_ui.records import Encoding
from fillmask_ui.show.words import named
from fillmask_ui.text_words import characters
from fillmask_ui.ui.figure import FigureInputs, around, control

# With this seed the text has chosen tokens of all three kinds in a vocabulary of whole words.
TEXT = "The old woman drinks a cup of tea and her cat waits under the table."
SEED = 4
LUNCH = "Lunch was delicious."
MANY_SEEDS = 1_000
RANDOM_TOKENS = 12
# A longer text has more tokens in each seed, so fewer seeds do.
POOLED_SEEDS = 200
_POOLED_TOKENS = 20_000  # that the model is made to read
_ALL = 9_999  # lines: more than a text can have
_UNCHANGED = round(100 * DEFAULT_SHARES[UNCHANGED])  # percent
_SEEDED = control("text", "text", "Your text", TEXT), control("dial", "seed", "Seed", SEED)
_RATE = control("slider", "rate", "Mask rate", 1, 60, 1, 15, "%")


def _recipe(request: FigureInputs) -> MaskRecipe:
    return MaskRecipe(probability=request["rate"] / 100)


def _name(vocabulary: Vocabulary, token_id: int, position: int) -> str:
    """A token at a place of a text, as people write it; the first one ends no word."""
    if token_id == vocabulary.mask_id:
        return "[MASK]"
    return named(vocabulary, token_id, first=position <= 1)


def _names(model: MaskedLM, text: SeedMaskedText) -> list[tuple[str, str]]:
    name = partial(_name, model.vocabulary)
    return [
        (name(token.token_id, token.position), name(token.shown_id, token.position))
        for token in text.tokens
    ]


@figure(
    "masking",
    "A text, masked by a seed",
    control("text", "text", "Your text", TEXT, lines=2),
    _SEEDED[1],
    _RATE,
)
def _show_tokens(request: FigureInputs) -> Any:
    text = mask_text(request.model, request["text"], request["seed"], _recipe(request))
    return {"text": text, "names": _names(request.model, text), "seed": request["seed"]}


@figure("mask_shares", "Shares of one seed and of many", *_SEEDED, _RATE)
def _show_shares(request: FigureInputs) -> Any:
    recipe, seed, vocabulary = _recipe(request), request["seed"], request.model.vocabulary
    encoding = encoded(request.model, request["text"])
    seed_shares = shares(encoding, vocabulary, recipe, [seed])
    # A busy machine may take a second; turning the dial then costs nothing.
    pooled_shares = request.slowly(
        ("shares", encoding.ids, recipe),
        lambda _: shares(encoding, vocabulary, recipe, range(MANY_SEEDS)),
    )
    counted = {f"seed {seed}": seed_shares, f"{MANY_SEEDS:,} seeds": pooled_shares}
    without_chosen = {"free": seed_shares.tokens, "empty": pooled_shares.empty, "many": MANY_SEEDS}
    return {"recipe": recipe, "kinds": KINDS, "counted": counted, **without_chosen}


@figure("random_tokens", "Random tokens, drawn in two ways", _SEEDED[1])
def _show_random_tokens(request: FigureInputs) -> Any:
    vocabulary, tokens = request.model.vocabulary, {}
    for name in (UNIFORM, UNIGRAM):
        rng = generator(request["seed"], FIRST_TEXT)
        ids = random_ids(vocabulary, name, rng, RANDOM_TOKENS)
        tokens[name] = [_name(vocabulary, token_id, 1) for token_id in ids.tolist()]
    return {"tokens": tokens}


@figure(
    "mask_kinds",
    "One word, masked in three ways",
    control("text", "text", "A short text", LUNCH, hint="the last word is chosen"),
    control("dial", "seed", "First seed to try", 0),
)
def _show_kinds(request: FigureInputs) -> Any:
    vocabulary = request.model.vocabulary
    encoding = encoded(request.model, request["text"])
    ways = []
    # Each seed chooses this word in this way, and no other.
    for alone in each_kind(encoding, vocabulary, request["seed"]):
        position, ids = alone.position, tuple(alone.hidden.input_ids.tolist())
        filling = request.session.ask(
            request.model, fill_at, ids, position, encoding.ids[position], top_k=1
        )
        ways.append((alone, _name(vocabulary, ids[position], position), filling))
    hidden = characters(encoding, position)
    word = _name(vocabulary, encoding.ids[position], position)
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
def _show_losses(request: FigureInputs) -> Any:
    """The losses as far as they are revealed, and on demand what the evaluator says."""
    model, seed = request.model, request["seed"]
    text = mask_text(model, request["text"], seed)
    lines = ledger.token_losses(model, text)
    if not lines:
        return _without_lines(model, text, seed), {"lines": "1", "evaluated": ""}
    revealed_count = len(lines)
    if not request.pressed("all"):
        previous_count = 1 if request.pressed("first") else request.integer("lines", 1, _ALL, 1)
        revealed_count = min(previous_count + request.pressed("more"), revealed_count)
    # The evaluator has its say until the text or the seed is another.
    question = f"{seed} {text.encoding.text}"
    evaluates = request.pressed("evaluate") or request.values.get("evaluated") == question
    values = {
        "names": _names(model, text),
        "revealed": lines[:revealed_count],
        "count": len(lines),
        "mean": lines[-1].mean_nats,
        "figures": ledger.evaluated(model, text.encoding.text, seed) if evaluates else None,
    }
    return values, {"lines": str(revealed_count), "evaluated": question if evaluates else ""}


def _without_lines(model: MaskedLM, text: SeedMaskedText, seed: int) -> dict[str, Any]:
    """What to say where a seed chooses no token, and which one does."""
    next_seed = seed + 1
    while not len(hide(text.encoding, model.vocabulary, next_seed).cols):
        next_seed += 1
    share = (1 - MaskRecipe().probability) ** text.free
    empty = {"seed": seed, "other": next_seed, "free": text.free, "share": share}
    return {"revealed": (), "empty": empty, "figures": None}


@figure("ledger_kinds", "The loss of each kind of token", *_SEEDED)
def _show_kind_losses(request: FigureInputs) -> Any:
    model, seed = request.model, request["seed"]
    text = mask_text(model, request["text"], seed)
    seeds, pooled = _pooled(request, text.encoding)
    seed_losses = (
        _kinds_and_all(ledger.evaluated(model, text.encoding.text, seed)) if text.chosen else {}
    )
    pooled_losses = _kinds_and_all(pooled)
    every_loss = (*seed_losses.values(), *pooled_losses.values())
    most = max(loss.mean_nll_nats for loss in every_loss) or 1.0
    losses = {f"seed {seed}": seed_losses, f"{seeds} seeds": pooled_losses}
    return {"names": (*KINDS, "all"), "losses": losses, "most": most}


def _kinds_and_all(figures: ModelFigures) -> dict[str, GroupFigures | ModelFigures]:
    return {**{group.name: group for group in figures.by_kind}, "all": figures}


@figure(
    "ledger_mix",
    "The mean with other shares of kinds",
    _SEEDED[0],
    control("slider", "unchanged", "Chosen tokens left unchanged", *(0, 90, 5, _UNCHANGED, "%")),
)
def _show_mix(request: FigureInputs) -> Any:
    seeds, pooled = _pooled(request, encoded(request.model, request["text"]))
    losses = {group.name: group.mean_nll_nats for group in pooled.by_kind}
    if len(losses) < len(KINDS):
        raise TextError(
            f"in {seeds} seeds, no token of this short text is of the kind "
            f"{' or '.join(kind for kind in KINDS if kind not in losses)}: write a longer text"
        )
    unchanged = request["unchanged"]
    return {
        "mask": losses["mask"],
        "unchanged": unchanged,
        "mixed": ledger.mixed_mean_nats(losses, unchanged / 100),
        "usual": ledger.mixed_mean_nats(losses, _UNCHANGED / 100),
        "usual_share": _UNCHANGED,
        "most": max(losses.values()) or 1.0,
        "many": seeds,
    }


def _pooled(request: FigureInputs, encoding: Encoding) -> tuple[int, ModelFigures]:
    """The evaluator's figures of one text under many seeds, and how many these are."""
    seeds = min(POOLED_SEEDS, _POOLED_TOKENS // len(encoding) + 1)

    def measure(report: Callable[[int, int], None]) -> ModelFigures:
        return ledger.over_seeds(
            request.model, encoding.text, range(seeds), lambda seen: report(seen, seeds)
        )

    return seeds, request.counted(("pooled losses", encoding.text), "seeds", measure)
