"""Figures of the chapters on what gets masked and on the sum of its losses."""

from collections.abc import Mapping

from fillmask_ui.errors import TextError
from fillmask_ui.evaluation import GroupFigures, ModelFigures
from fillmask_ui.filling import fill_at
from fillmask_ui.filling.words import characters
from fillmask_ui.lessons.masked_text import MaskedText, each_kind, encoded, hide, mask_text, shares
from fillmask_ui.lessons.token_losses import (
    by_kind,
    evaluated,
    mixed_mean_nats,
    over_seeds,
    token_losses,
)
from fillmask_ui.masking import DEFAULT_SHARES, KINDS, UNCHANGED, MaskRecipe
from fillmask_ui.protocol import MaskedLM, Vocabulary
from fillmask_ui.records import Encoding
from fillmask_ui.show.words import token_name
from fillmask_ui.ui.background import Report, Waiting
from fillmask_ui.ui.figure import Asked, Figure, Shown, piece

# With this seed the text has chosen tokens of all three kinds in a vocabulary of whole words.
TEXT = "The old woman drinks a cup of tea and her cat waits under the table."
SEED = 4
LUNCH = "Lunch was delicious."
MANY_SEEDS = 1_000
_MOST_SEED = 9_999  # of the dial
_RATE = 15  # percent
# A longer text has more tokens in each seed, so fewer seeds do.
POOLED_SEEDS = 200
_POOLED_TOKENS = 20_000  # that the model is made to read
_ALL = 9_999  # lines: more than a text can have
_UNCHANGED = round(100 * DEFAULT_SHARES[UNCHANGED])  # percent


def _seed(asked: Asked, plain: int = SEED) -> int:
    return asked.integer("seed", 0, _MOST_SEED, plain)


def _recipe(asked: Asked) -> MaskRecipe:
    return MaskRecipe(probability=asked.integer("rate", 1, 60, _RATE) / 100)


def _text(asked: Asked) -> Encoding:
    return encoded(asked.model, asked.text("text", TEXT))


def _name(vocabulary: Vocabulary, token_id: int, position: int) -> str:
    """A token at a place of a text, as people write it; the first one ends no word."""
    if token_id == vocabulary.mask_id:
        return "[MASK]"
    ending = vocabulary.is_continuation(token_id) and position > 1
    return token_name(vocabulary.token(token_id), vocabulary.word(token_id), ending)


def _names(model: MaskedLM, text: MaskedText) -> list[tuple[str, str]]:
    """Each token of a text: original and shown."""
    return [
        (
            _name(model.vocabulary, token.token_id, token.position),
            _name(model.vocabulary, token.shown_id, token.position),
        )
        for token in text.tokens
    ]


def _show_tokens(asked: Asked) -> Shown:
    text = mask_text(asked.model, asked.text("text", TEXT), _seed(asked), _recipe(asked))
    values = {"text": text, "names": _names(asked.model, text), "seed": _seed(asked)}
    return Shown({"tokens": piece("masking", "tokens", **values)})


def _show_shares(asked: Asked) -> Shown:
    recipe, seed, encoding = _recipe(asked), _seed(asked), _text(asked)
    vocabulary = asked.model.vocabulary
    one = shares(encoding, vocabulary, recipe, [seed])
    # A busy machine may take a second; turning the dial then costs nothing.
    many = asked.slowly(
        ("shares", encoding.ids, recipe),
        lambda _: shares(encoding, vocabulary, recipe, range(MANY_SEEDS)),
    )
    values = {
        "recipe": recipe,
        "kinds": KINDS,
        "counted": {f"seed {seed}": one, f"{MANY_SEEDS:,} seeds": many},
        "free": one.tokens,
        "empty": many.empty,
        "many": MANY_SEEDS,
    }
    return Shown({"shares": piece("mask_shares", "shares", **values)})


def _show_kinds(asked: Asked) -> Shown:
    vocabulary = asked.model.vocabulary
    encoding = encoded(asked.model, asked.text("text", LUNCH))
    ways = []
    for alone in each_kind(encoding, vocabulary, _seed(asked, 0)):
        place, ids = alone.position, tuple(alone.hidden.input_ids.tolist())
        said = asked.session.ask(asked.model, fill_at, ids, place, encoding.ids[place], top_k=1)
        start, end = characters(encoding, place)
        ways.append(
            {
                "kind": alone.kind,
                "seed": alone.seed,  # chooses this word in this way, and no other
                "before": encoding.text[:start],
                "shown": _name(vocabulary, ids[place], place),
                "after": encoding.text[end:],
                "true": said.scored[0],
                "guess": said.candidates[0],
            }
        )
    word = _name(vocabulary, encoding.ids[place], place)
    return Shown({"kinds": piece("mask_kinds", "kinds", ways=ways, word=word)})


# ---- The losses of a text


def _show_losses(asked: Asked) -> Shown:
    """The losses as far as they are revealed, and on demand what the evaluator says."""
    model, seed = asked.model, _seed(asked)
    text = mask_text(model, asked.text("text", TEXT), seed)
    lines = token_losses(model, text)
    if not lines:
        return _without_lines(model, text, seed)
    shown = len(lines)
    if not asked.pressed("all"):
        wanted = 1 if asked.pressed("first") else asked.integer("lines", 1, _ALL, 1)
        shown = min(wanted + asked.pressed("more"), shown)
    # The evaluator has its say until the text or the seed is another.
    question = f"{seed} {text.encoding.text}"
    asks = asked.pressed("evaluate") or asked.values.get("evaluated") == question
    figures = evaluated(model, text.encoding.text, seed) if asks else None
    said = {"figures": figures, "mean": lines[-1].mean_nats}
    values = {"names": _names(model, text), "lines": lines[:shown], "count": len(lines)}
    pieces = {
        "lines": piece("ledger", "revealed", **values),
        "evaluator": piece("ledger", "evaluator", **said),
    }
    return Shown(pieces, {"lines": str(shown), "evaluated": question if asks else ""})


def _without_lines(model: MaskedLM, text: MaskedText, seed: int) -> Shown:
    """What to say where a seed chooses no token, and which one does."""
    other = seed + 1
    while not len(hide(text.encoding, model.vocabulary, other).cols):
        other += 1
    share = (1 - MaskRecipe().probability) ** text.free
    values = {"seed": seed, "other": other, "free": text.free, "share": share}
    html = piece("ledger", "empty", **values)
    return Shown({"lines": html, "evaluator": ""}, {"lines": "1", "evaluated": ""})


def _show_kind_losses(asked: Asked) -> Shown:
    model, seed = asked.model, _seed(asked)
    text = mask_text(model, asked.text("text", TEXT), seed)
    seeds, pooled = _pooled(asked, text.encoding)
    one = _kinds_and_all(evaluated(model, text.encoding.text, seed)) if text.chosen else {}
    many = _kinds_and_all(pooled)
    most = max(loss.mean_nll_nats for loss in (*one.values(), *many.values())) or 1.0
    values = {"kinds": (*KINDS, "all"), "losses": (one, many), "most": most}
    html = piece("ledger_kinds", "means", seed=seed, many=seeds, **values)
    return Shown({"kinds": html})


def _kinds_and_all(figures: ModelFigures) -> dict[str, GroupFigures | ModelFigures]:
    return {**by_kind(figures), "all": figures}


def _show_mix(asked: Asked) -> Shown:
    seeds, pooled = _pooled(asked, _text(asked))
    losses = {kind: group.mean_nll_nats for kind, group in by_kind(pooled).items()}
    if len(losses) < len(KINDS):
        raise TextError(
            f"{seeds} seeds give this short text no token of the kind "
            f"{' or '.join(kind for kind in KINDS if kind not in losses)}: write a longer one"
        )
    unchanged = asked.integer("unchanged", 0, 90, _UNCHANGED)
    values = {
        "mask": losses["mask"],
        "unchanged": unchanged,
        "mixed": mixed_mean_nats(losses, unchanged / 100),
        "usual": mixed_mean_nats(losses, _UNCHANGED / 100),
        "usual_share": _UNCHANGED,
        "most": max(losses.values()) or 1.0,
        "many": seeds,
    }
    return Shown({"mix": piece("ledger_mix", "mix", **values)})


def _pooled(asked: Asked, encoding: Encoding) -> tuple[int, ModelFigures]:
    """The evaluator's figures of one text under many seeds, and how many these are."""
    seeds = min(POOLED_SEEDS, _POOLED_TOKENS // len(encoding) + 1)

    def work(report: Report) -> ModelFigures:
        def tell(seen: int) -> None:
            report(Waiting(f"{seen} of {seeds} seeds", seen / seeds))

        return over_seeds(asked.model, encoding.text, range(seeds), tell)

    return seeds, asked.slowly(("pooled losses", encoding.text), work)


_CONTROLS = {"text": TEXT, "seed": SEED}
_WITH_RATE = {**_CONTROLS, "rate": _RATE}
_MIX = {"text": TEXT, "unchanged": _UNCHANGED}
FIGURES: Mapping[str, Figure] = {
    "masking": Figure("A text, masked by a seed", _show_tokens, _WITH_RATE),
    "mask_shares": Figure("Shares of one seed and of many", _show_shares, _WITH_RATE),
    "mask_kinds": Figure("One word, masked in three ways", _show_kinds, {"text": LUNCH}),
    "ledger": Figure("The loss of a text, line by line", _show_losses, _CONTROLS),
    "ledger_kinds": Figure("The loss of each kind of token", _show_kind_losses, _CONTROLS),
    "ledger_mix": Figure("The mean with other shares of kinds", _show_mix, _MIX),
}
