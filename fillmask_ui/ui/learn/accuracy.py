"""Figures of "Better than accuracy": equal hits, another loss."""

from collections.abc import Mapping

from fillmask_ui.lessons.near_misses import prediction
from fillmask_ui.lessons.temperatures import (
    BIN_NATS,
    BINS,
    TEMPERATURES,
    TemperatureLosses,
    loss_histogram,
    temperature_losses,
)
from fillmask_ui.models import available_models
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.drawing import Scale
from fillmask_ui.show.render import render
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.ui.background import Done, Report, Waiting
from fillmask_ui.ui.figure import Asked, Figure, Shown
from fillmask_ui.ui.learn.second import SAME, counted, second_model

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

FIGURES: Mapping[str, Figure] = {
    "near_misses": Figure("Two wrong guesses", near_misses, needs_model=False),
    "two_temperatures": Figure("One model at two temperatures", two_temperatures, _RANGE),
    "token_losses": Figure(
        "Losses of single tokens", token_losses, {**_RANGE, "models": available_models}
    ),
}
