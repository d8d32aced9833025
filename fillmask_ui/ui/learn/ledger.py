"""Figures of the chapter "The loss ledger"."""

from collections.abc import Mapping
from dataclasses import dataclass

from fillmask_ui.errors import TextError
from fillmask_ui.evaluation import ModelFigures
from fillmask_ui.evaluation.metrics import CrossEntropy
from fillmask_ui.lessons import masked_text
from fillmask_ui.lessons.masked_text import MaskedText
from fillmask_ui.lessons.token_losses import (
    KindLoss,
    by_kind,
    evaluated,
    ledger,
    mixed_mean_nats,
    over_seeds,
)
from fillmask_ui.masking import DEFAULT_SHARES, KINDS, UNCHANGED
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Encoding
from fillmask_ui.show.render import render
from fillmask_ui.ui.background import Report, Waiting
from fillmask_ui.ui.figure import Asked, Figure, Shown
from fillmask_ui.ui.learn.second_model import MOST_SEED, SEED, TEXT, name_of

# A longer text has more tokens in each seed, so fewer seeds do.
POOLED_SEEDS = 200
_POOLED_TOKENS = 20_000  # that the model is made to read
_ALL = 9_999  # lines: more than a text can have
_UNCHANGED = round(100 * DEFAULT_SHARES[UNCHANGED])  # percent


def _ledger(asked: Asked) -> Shown:
    """The ledger as far as it is revealed, and on demand what the evaluator says."""
    model, seed = asked.model, asked.integer("seed", 0, MOST_SEED, SEED)
    text = masked_text.mask_text(model, asked.text("text", TEXT), seed)
    lines = ledger(model, text)
    if not lines:
        return _without_lines(model, text, seed)
    shown = _lines_shown(asked, len(lines))
    # The evaluator has its say until the text or the seed is another.
    question = f"{seed} {text.encoding.text}"
    asks = asked.pressed("evaluate") or asked.values.get("evaluated") == question
    figures = evaluated(model, text.encoding.text, seed) if asks else None
    vocabulary = model.vocabulary
    names = [
        (
            name_of(vocabulary, line.token.token_id, line.token.position),
            name_of(vocabulary, line.token.shown_id, line.token.position),
        )
        for line in lines[:shown]
    ]
    values = {"names": names, "lines": lines[:shown], "count": len(lines)}
    return Shown(
        {
            "lines": render("page/learn/ledger_result.html", **values),
            "evaluator": render(
                "page/learn/ledger_evaluator.html", figures=figures, mean=lines[-1].mean_nats
            ),
        },
        {"lines": str(shown), "evaluated": question if asks else ""},
    )


def _lines_shown(asked: Asked, count: int) -> int:
    if asked.pressed("all"):
        return count
    wanted = 1 if asked.pressed("first") else asked.integer("lines", 1, _ALL, 1)
    return min(wanted + asked.pressed("more"), count)


def _without_lines(model: MaskedLM, text: MaskedText, seed: int) -> Shown:
    """What to say where a seed chooses no token, and which one does."""
    metric = CrossEntropy()
    other = seed + 1
    while not len(masked_text.hide(text.encoding, model.vocabulary, other, metric).cols):
        other += 1
    values = {
        "seed": seed,
        "other": other,
        "free": text.free,
        "share": (1 - metric.recipe.probability) ** text.free,
    }
    html = render("page/learn/ledger_empty.html", **values)
    return Shown({"lines": html, "evaluator": ""}, {"lines": "1", "evaluated": ""})


@dataclass(frozen=True)
class _KindRow:
    """A kind of chosen tokens, or all of them, in the table of kinds."""

    name: str
    one: KindLoss | None  # under this seed; None for no such token
    many: KindLoss | None  # under many


def _kinds(asked: Asked) -> Shown | Waiting:
    """The evaluator's loss by kind: of this seed and of many."""
    model, seed = asked.model, asked.integer("seed", 0, MOST_SEED, SEED)
    text = masked_text.mask_text(model, asked.text("text", TEXT), seed)
    pooled = _pooled(asked, text.encoding)
    if isinstance(pooled, Waiting):
        return pooled
    one = evaluated(model, text.encoding.text, seed) if text.chosen else None
    of_one, of_many = (_by_kind_and_all(figures) for figures in (one, pooled.figures))
    rows = [_KindRow(name, of_one.get(name), of_many.get(name)) for name in (*KINDS, "all")]
    losses = [loss.mean_nll_nats for row in rows for loss in (row.one, row.many) if loss]
    values = {"rows": rows, "seed": seed, "many": pooled.seeds, "most": max(losses) or 1.0}
    return Shown({"kinds": render("page/learn/ledger_kinds_result.html", **values)})


def _by_kind_and_all(figures: ModelFigures | None) -> dict[str, KindLoss]:
    if figures is None:
        return {}
    return {**by_kind(figures), "all": KindLoss(figures.tokens, figures.mean_nll_nats)}


def _mix(asked: Asked) -> Shown | Waiting:
    """The mean as it would be with more or fewer unchanged tokens."""
    pooled = _pooled(asked, masked_text.encoded(asked.model, asked.text("text", TEXT)))
    if isinstance(pooled, Waiting):
        return pooled
    losses = by_kind(pooled.figures)
    if len(losses) < len(KINDS):
        raise TextError(
            f"{pooled.seeds} seeds give this short text no token of the kind "
            f"{' or '.join(kind for kind in KINDS if kind not in losses)}: write a longer one"
        )
    unchanged = asked.integer("unchanged", 0, 90, _UNCHANGED)
    values = {
        "losses": losses,
        "unchanged": unchanged,
        "mixed": mixed_mean_nats(losses, unchanged / 100),
        "usual": mixed_mean_nats(losses, _UNCHANGED / 100),
        "usual_share": _UNCHANGED,
        "most": max(loss.mean_nll_nats for loss in losses.values()) or 1.0,
        "many": pooled.seeds,
    }
    return Shown({"mix": render("page/learn/ledger_mix_result.html", **values)})


@dataclass(frozen=True)
class _Pooled:
    """The evaluator's figures of one text under many seeds."""

    seeds: int
    figures: ModelFigures


def _pooled(asked: Asked, encoding: Encoding) -> Waiting | _Pooled:
    seeds = min(POOLED_SEEDS, _POOLED_TOKENS // len(encoding) + 1)

    def work(report: Report) -> ModelFigures:
        def tell(seen: int) -> None:
            report(Waiting(f"{seen} of {seeds} seeds", seen / seeds))

        return over_seeds(asked.model, encoding.text, range(seeds), tell)

    state = asked.session.slowly(asked.model, ("ledger", encoding.text), work)
    return state if isinstance(state, Waiting) else _Pooled(seeds, state.result)


_CONTROLS = {"text": TEXT, "seed": SEED}
FIGURES: Mapping[str, Figure] = {
    "ledger": Figure("The loss of a text, line by line", _ledger, _CONTROLS),
    "ledger_kinds": Figure("The loss of each kind of token", _kinds, _CONTROLS),
    "ledger_mix": Figure(
        "The mean with other shares of kinds", _mix, {"text": TEXT, "unchanged": _UNCHANGED}
    ),
}
