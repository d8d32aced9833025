"""Figures of "Better than accuracy" and of "How certain is the number?"."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fillmask_ui.errors import ModelError, OptionError
from fillmask_ui.features.course import accuracy_and_loss as accuracy
from fillmask_ui.features.course import mean_uncertainty as uncertainty
from fillmask_ui.features.course.lesson_figure import figure
from fillmask_ui.features.course.mean_uncertainty import SEEDS
from fillmask_ui.intervals import Limits
from fillmask_ui.models import available_models
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.figures import models_of
from fillmask_ui.show.numbers import interval_text, signed_percent
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.tokenizers import same_tokenizer
from fillmask_ui.ui.figure import Control, FigureInputs, Result, control

TEMPERATURE_TEXTS = 40
SEED_TEXTS = 20
_SPARE = 15  # texts, as the masks leave out one of a hundred or so
_PAIRED_TEXTS = 80
_TEMPERATURE = 1.1  # of the second model where it is the first one again
_COLDEST, _HOTTEST = accuracy.TEMPERATURES[0], accuracy.TEMPERATURES[-1]
# The embedded model in the other precision; of others, the model itself.
_VARIANTS = {"embedded": "embedded:int8", "embedded:int8": "embedded"}
_SAME = "same"  # in the control of the second model: the first one again


def _temperature(name: str, label: str, plain: float) -> Control:
    return control("slider", name, label, _COLDEST, _HOTTEST, 0.1, plain)


def _second(**first: str) -> Control:
    """The model beside the one of the page; the first choices are no models."""
    return control(
        "select",
        "second",
        "Second model",
        lambda: first | {model.reference: model.reference for model in available_models()},
    )


def _second_model(request: FigureInputs, reference: str) -> MaskedLM:
    """The model of a reference, or the first one for `_SAME`; both have the same tokenizer."""
    if reference == _SAME:
        return request.model
    second = request.session.model_soon(reference)
    if not same_tokenizer(request.model.vocabulary, second.vocabulary):
        raise ModelError(
            f"{second.signature.name} has another tokenizer than "
            f"{request.model.signature.name}, so their losses per token cannot be compared: choose "
            "a second model with the same tokenizer"
        )
    return second


def _measured(
    request: FigureInputs,
    question: tuple[str, ...],
    count: int,
    measure: Callable[..., Result],
    model: MaskedLM | None = None,
) -> Result:
    """What `measure(texts, on_text=...)` finds in so many of the embedded texts."""

    def run(report: Callable[[int, int], None]) -> Result:
        texts = list(open_texts(TextSource(samples=count)))
        return measure(texts, on_text=lambda done: report(done, len(texts)))

    return request.counted(question, "texts", run, model)


@figure(
    "near_misses",
    "Two wrong predictions",
    control("slider", "a", "A gives “mat”", 1, 99, 1, 40, "%"),
    control("slider", "b", "B gives “mat”", 1, 99, 1, 5, "%"),
    needs_model=False,
)
def _show_near_misses(request: FigureInputs) -> Any:
    return {"models": {name: accuracy.prediction(request[name.lower()] / 100) for name in "AB"}}


@figure(
    "two_temperatures",
    "One model at two temperatures",
    _temperature("a", "Temperature A", 1.0),
    _temperature("b", "Temperature B", 2.0),
)
def _show_two_temperatures(request: FigureInputs) -> Any:
    every = _temperature_losses(request, request.model)
    first, second = (accuracy.nearest(every, request[name]) for name in "ab")
    return {"first": first, "second": second, "all_temperatures": every}


@figure(
    "token_losses",
    "Losses of single tokens",
    _temperature("a", "Temperature of A", 1.0),
    _second(same="the same model"),
    _temperature("b", "Temperature of B", 0.5),
)
def _show_token_losses(request: FigureInputs) -> Any:
    second = _second_model(request, request.text("second", _SAME))
    a = accuracy.nearest(_temperature_losses(request, request.model), request["a"])
    b = accuracy.nearest(_temperature_losses(request, second), request["b"])
    return {
        "sides": {"A": a, "B": b},
        "names": {"A": request.model.signature.name, "B": second.signature.name},
        "histogram": accuracy.loss_histogram(a.nll_nats, b.nll_nats),
    }


def _temperature_losses(request: FigureInputs, model: MaskedLM) -> Sequence[accuracy.AtTemperature]:
    measure = partial(accuracy.temperature_losses, model)
    return _measured(request, ("temperature losses",), TEMPERATURE_TEXTS, measure, model)


# ---- How certain is the number?


@figure(
    "twenty_seeds",
    "The mean loss for twenty seeds",
    control("dial", "seed", "Seed", SEEDS[0], SEEDS[0], SEEDS[-1]),
    control("piece", "answer"),
)
def _show_twenty_seeds(request: FigureInputs) -> Any:
    def run(report: Callable[[int, int], None]) -> uncertainty.SeedMeans:
        texts = sorted(
            open_texts(TextSource()), key=lambda example: (len(example.text), example.id)
        )
        passes = len(SEEDS) + 1
        return uncertainty.means_over_seeds(
            request.model, texts[:SEED_TEXTS], on_pass=lambda done: report(done, passes)
        )

    means = request.counted(("twenty seeds",), "passes over the texts", run)
    return {"means": means, "seed": request["seed"], "chosen": means.seeds[request["seed"]]}


@figure(
    "more_texts",
    "The interval by the number of texts",
    control("dial", "order", "Order of the texts", 0),
)
def _show_more_texts(request: FigureInputs) -> Any:
    measure = partial(uncertainty.text_losses, request.model)
    losses = _measured(request, ("more texts",), uncertainty.COUNTS[-1] + _SPARE, measure)
    return {"means": uncertainty.means_by_count(losses, request["order"])}


@figure(
    "published_changes",
    "Published losses and their changes",
    control("text", "loss", "Your loss", "2.1625", short=True),
    control("text", "baseline", "Baseline", "2.1032", short=True),
    control("text", "pass_below", "PASS below (%)", "5", short=True),
    control("text", "risk_below", "AT_RISK below (%)", "10", short=True),
    control(
        "choice", "order", "Lines", {"printed": "as printed", "change": "by change"}, "printed"
    ),
    needs_model=False,
)
def _show_published_changes(request: FigureInputs) -> Any:
    limits = Limits(
        _typed(request, "pass_below", "the limit of PASS") / 100,
        _typed(request, "risk_below", "the limit of AT_RISK") / 100,
    )
    loss, baseline = (
        _typed(request, "loss", "your loss"),
        _typed(request, "baseline", "the baseline"),
    )
    rows = list(uncertainty.PUBLISHED)
    if request["order"] == "change":
        rows.sort(key=lambda row: row.relative_change, reverse=True)
    return {"rows": rows, "limits": limits, "change": uncertainty.Change(loss, baseline)}


def _typed(request: FigureInputs, name: str, description: str) -> float:
    """A number above 0, as a reader types it."""
    written = request[name].strip().removesuffix("%")
    try:
        value = float(written.replace(",", "."))
    except ValueError:
        value = math.nan
    if not 0 < value < 1000:
        raise OptionError(
            f"{description} was {written[:40]!r}; type a number above 0 and below 1000, such as "
            f"{request.controls[name].settings['value']}"
        )
    return value


@figure(
    "paired_difference",
    "Two models on identical masks",
    _second(**{"": "a close relative", _SAME: f"the same model at temperature {_TEMPERATURE:g}"}),
)
def _show_paired_difference(request: FigureInputs) -> Any:
    reference = request.text("second") or _VARIANTS.get(request.model.signature.name, _SAME)
    second = _second_model(request, reference)
    name = second.signature.name
    if reference == _SAME:
        name += f" at temperature {_TEMPERATURE:g}"
        second = accuracy.Tempered(second, _TEMPERATURE)
    measure = partial(uncertainty.compare_paired, second, request.model)
    pair = _measured(request, ("paired", reference), _PAIRED_TEXTS, measure)
    names, comparison = (request.model.signature.name, name), pair.summary.comparison
    return {
        "pairing": pair,
        "comparison": comparison,
        "figures": dict(zip(names, models_of(pair.summary), strict=True)),
        "change": interval_text(comparison.interval if comparison else None, signed_percent),
    }
