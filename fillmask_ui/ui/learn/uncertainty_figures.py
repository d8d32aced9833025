"""Figures of "Better than accuracy": equal hits, another loss."""

import math
from collections.abc import Mapping

from fillmask_ui.errors import OptionError
from fillmask_ui.intervals import Limits
from fillmask_ui.lessons.accuracy_and_loss import (
    BIN_NATS,
    BINS,
    TEMPERATURES,
    TemperatureLosses,
    Tempered,
    loss_histogram,
    prediction,
    temperature_losses,
)
from fillmask_ui.lessons.mean_uncertainty import (
    COUNTS,
    PUBLISHED,
    SEEDS,
    Change,
    Dice,
    Pairing,
    TextLosses,
    means_by_count,
    pair,
    shortest,
    text_losses,
    throw_dice,
)
from fillmask_ui.models import available_models
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.drawing import Scale
from fillmask_ui.show.numbers import interval_text, signed_percent
from fillmask_ui.show.render import render
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.ui.background import Done, Report, Waiting
from fillmask_ui.ui.figure import Asked, Figure, Shown
from fillmask_ui.ui.learn.second_model import SAME, counted, second_model

TEXTS = 40
_COLDEST, _HOTTEST = TEMPERATURES[0], TEMPERATURES[-1]


def near_misses(asked: Asked) -> Shown:
    """Two predictions of one word, each with the probability of a slider."""
    percents = {"A": asked.integer("a", 1, 99, 40), "B": asked.integer("b", 1, 99, 5)}
    models = {name: prediction(percent / 100) for name, percent in percents.items()}
    return Shown({"result": render("page/learn/near_misses_result.html", models=models)})


def two_temperatures(asked: Asked) -> Shown | Waiting:
    """One model at two temperatures, beside the one with the lowest loss."""
    state = _losses(asked, asked.model)
    if isinstance(state, Waiting):
        return state
    losses = state.result
    first = losses.at(asked.number("a", _COLDEST, _HOTTEST, 1.0))
    second = losses.at(asked.number("b", _COLDEST, _HOTTEST, 2.0))
    means = [one.mean_nll_nats for one in losses.every]
    html = render(
        "page/learn/two_temperatures_result.html",
        first=first,
        second=second,
        losses=losses,
        x=Scale(_COLDEST, _HOTTEST, 40, 415),
        y=Scale(min(means) - 0.1, max(means), 200, 24),
    )
    return Shown({"result": html})


def token_losses(asked: Asked) -> Shown | Waiting:
    """The losses of the tokens of two models, or of one at two temperatures, as a histogram."""
    second = second_model(asked, asked.text("second", SAME))
    if isinstance(second, Waiting):
        return second
    states = _losses(asked, asked.model), _losses(asked, second)
    for state in states:
        if isinstance(state, Waiting):
            return state
    losses = [state.result for state in states if isinstance(state, Done)]
    wanted = [
        asked.number("a", _COLDEST, _HOTTEST, 1.0),
        asked.number("b", _COLDEST, _HOTTEST, 0.5),
    ]
    sides = [own.at(temperature) for own, temperature in zip(losses, wanted, strict=True)]
    histogram = loss_histogram(*(side.nll_nats for side in sides))
    most = max(int(counts.max()) for counts in histogram.counts.values())
    html = render(
        "page/learn/token_losses_result.html",
        sides=dict(zip("AB", sides, strict=True)),
        names={"A": asked.model.signature.name, "B": second.signature.name},
        histogram=histogram,
        x=Scale(0, BINS * BIN_NATS, 40, 424),
        y=Scale(0, most, 220, 38),
    )
    return Shown({"result": html})


def _losses(asked: Asked, model: MaskedLM) -> Waiting | Done[TemperatureLosses]:
    def work(report: Report) -> TemperatureLosses:
        texts = list(open_texts(TextSource(samples=TEXTS)))
        return temperature_losses(model, texts, on_text=counted(report, len(texts), "texts"))

    return asked.session.slowly(model, ("temperature losses",), work)


_RANGE = {"coldest": _COLDEST, "hottest": _HOTTEST}

DICE_TEXTS = 20
_SPARE = 15  # texts, as the masks leave out one of a hundred or so
_PAIRED_TEXTS = 80
_TEMPERATURE = 1.1  # of the second model where it is the first one again


def twenty_seeds(asked: Asked) -> Shown | Waiting:
    """The evaluator's mean by seed, beside pseudo-perplexity."""

    def work(report: Report) -> Dice:
        texts = shortest(list(open_texts(TextSource())), DICE_TEXTS)
        passes = counted(report, len(SEEDS) + 1, "passes over the texts")
        return throw_dice(asked.model, texts, on_pass=passes)

    state = asked.session.slowly(asked.model, ("twenty seeds",), work)
    if isinstance(state, Waiting):
        return state
    dice = state.result
    seed = asked.integer("seed", SEEDS[0], SEEDS[-1], SEEDS[0])
    means = [one.mean_nll_nats for one in dice.seeds]
    chosen = next(one for one in dice.seeds if one.seed == seed)
    html = render(
        "page/learn/twenty_seeds_result.html",
        dice=dice,
        chosen=chosen,
        x=Scale(0, len(SEEDS), 34, 424),
        y=Scale(0, max(*means, dice.pseudo_nll_nats) + 0.2, 210, 24),
    )
    answer = render("page/learn/twenty_seeds_answer.html", chosen=chosen)
    return Shown({"result": html, "answer": answer})


def more_texts(asked: Asked) -> Shown | Waiting:
    """The interval of the mean of the first 5, 10, 20, ... texts, in an order of the reader's."""

    def work(report: Report) -> TextLosses:
        texts = list(open_texts(TextSource(samples=COUNTS[-1] + _SPARE)))
        return text_losses(asked.model, texts, on_text=counted(report, len(texts), "texts"))

    state = asked.session.slowly(asked.model, ("more texts",), work)
    if isinstance(state, Waiting):
        return state
    means = means_by_count(state.result, asked.integer("order", 0, 9999, 0))
    low = min(one.interval.low for one in means)
    high = max(one.interval.high for one in means)
    html = render(
        "page/learn/more_texts_result.html",
        means=means,
        x=Scale(math.log2(means[0].texts) - 0.4, math.log2(means[-1].texts) + 0.4, 34, 424),
        log2=math.log2,
        y=Scale(max(0.0, low - 0.2), high + 0.2, 210, 24),
    )
    return Shown({"result": html})


def published_changes(asked: Asked) -> Shown:
    """The published table recomputed, and two figures of the reader's by the same rule."""
    limits = Limits(
        _typed(asked, "pass_below", "the limit of PASS", 5.0) / 100,
        _typed(asked, "risk_below", "the limit of AT_RISK", 10.0) / 100,
    )
    own = Change(
        _typed(asked, "loss", "your loss", 2.1625),
        _typed(asked, "baseline", "the baseline", 2.1032),
    )
    rows = list(PUBLISHED)
    if asked.text("order", "printed") == "change":
        rows.sort(key=lambda row: row.relative_change, reverse=True)
    html = render("page/learn/published_changes_result.html", rows=rows, limits=limits)
    answer = render("page/learn/published_changes_own.html", own=own, limits=limits)
    return Shown({"result": html, "own": answer})


def _typed(asked: Asked, name: str, what: str, plain: float) -> float:
    """A number above 0, as a reader types it."""
    written = asked.text(name, str(plain)).strip().removesuffix("%")
    try:
        value = float(written.replace(",", "."))
    except ValueError:
        value = math.nan
    if not 0 < value < 1000:
        raise OptionError(
            f"{what} was {written[:40]!r}; a number above 0 and below 1000 is wanted, such as "
            f"{plain:g}"
        )
    return value


def paired_difference(asked: Asked) -> Shown | Waiting:
    """Two models on identical masks: their means, and two intervals of the difference."""
    reference = asked.text("second") or _other_variant(asked.model)
    second = second_model(asked, reference)
    if isinstance(second, Waiting):
        return second
    name = second.signature.name
    if reference == SAME:
        second, name = Tempered(second, _TEMPERATURE), f"{name} at temperature {_TEMPERATURE:g}"
    base = second

    def work(report: Report) -> Pairing:
        texts = list(open_texts(TextSource(samples=_PAIRED_TEXTS)))
        on_text = counted(report, len(texts), "texts")
        return pair(base, asked.model, texts, on_text=on_text)

    state = asked.session.slowly(asked.model, ("paired", reference), work)
    if isinstance(state, Waiting):
        return state
    pairing = state.result
    figures = {asked.model.signature.name: pairing.base, name: pairing.own}
    far = max(abs(pairing.separate.low), abs(pairing.separate.high), 0.01)
    lows = [one.interval.low for one in figures.values() if one.interval]
    highs = [one.interval.high for one in figures.values() if one.interval]
    html = render(
        "page/learn/paired_difference_result.html",
        pairing=pairing,
        figures=figures,
        change=interval_text(pairing.comparison.interval, signed_percent),
        means=Scale(min(lows), max(highs), 14, 416),
        differences=Scale(-far, far, 14, 416),
    )
    return Shown({"result": html})


def _other_variant(model: MaskedLM) -> str:
    """The embedded model in the other precision; of others, the model itself."""
    others = {"embedded": "embedded:int8", "embedded:int8": "embedded"}
    return others.get(model.signature.name, SAME)


FIGURES: Mapping[str, Figure] = {
    "near_misses": Figure("Two wrong guesses", near_misses, needs_model=False),
    "two_temperatures": Figure("One model at two temperatures", two_temperatures, _RANGE),
    "token_losses": Figure(
        "Losses of single tokens", token_losses, {**_RANGE, "models": available_models}
    ),
    "twenty_seeds": Figure("The mean loss for twenty seeds", twenty_seeds),
    "more_texts": Figure("The interval by the number of texts", more_texts),
    "published_changes": Figure(
        "Published losses and their changes", published_changes, needs_model=False
    ),
    "paired_difference": Figure(
        "Two models on identical masks",
        paired_difference,
        {"models": available_models, "temperature": _TEMPERATURE},
    ),
}
