"""Figures of "Better than accuracy" and of "How sure is the number?"."""

import math
from collections.abc import Callable, Mapping
from functools import partial

from fillmask_ui.comparing.word_contrast import same_tokenizer
from fillmask_ui.errors import ModelError, OptionError
from fillmask_ui.intervals import Limits
from fillmask_ui.lessons import accuracy_and_loss as accuracy
from fillmask_ui.lessons import mean_uncertainty as uncertainty
from fillmask_ui.lessons.mean_uncertainty import SEEDS
from fillmask_ui.models import available_models
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.numbers import interval_text, signed_percent
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.ui.background import Report, Waiting
from fillmask_ui.ui.figure import Asked, Figure, Result, Shown, finished, piece

TEMPERATURE_TEXTS = 40
SEED_TEXTS = 20
_SPARE = 15  # texts, as the masks leave out one of a hundred or so
_PAIRED_TEXTS = 80
_TEMPERATURE = 1.1  # of the second model where it is the first one again
_COLDEST, _HOTTEST = accuracy.TEMPERATURES[0], accuracy.TEMPERATURES[-1]
# The embedded model in the other precision; of others, the model itself.
_VARIANTS = {"embedded": "embedded:int8", "embedded:int8": "embedded"}
_SAME = "same"  # in the control of the second model: the first one again


def _second_model(asked: Asked, reference: str) -> MaskedLM:
    """The model of a reference, or the first one for `_SAME`.

    Raises:
        ModelError: if it cannot be loaded, or has another tokenizer than the first.
    """
    if reference == _SAME:
        return asked.model
    second = finished(asked.session.model_soon(reference))
    if not same_tokenizer(asked.model.vocabulary, second.vocabulary):
        raise ModelError(
            f"{second.signature.name} cuts texts into other tokens than "
            f"{asked.model.signature.name}, so that their losses per token do not compare: choose "
            "a second model with the same tokenizer"
        )
    return second


def _measured(
    asked: Asked,
    question: tuple[str, ...],
    count: int,
    measure: Callable[..., Result],
    model: MaskedLM | None = None,
) -> Result:
    """What `measure(texts, on_text=...)` finds in so many of the embedded texts."""

    def work(report: Report) -> Result:
        texts = list(open_texts(TextSource(samples=count)))
        total = len(texts)
        return measure(
            texts, on_text=lambda done: report(Waiting(f"{done} of {total} texts", done / total))
        )

    return finished(asked.session.slowly(model or asked.model, question, work))


def near_misses(asked: Asked) -> Shown:
    """Two predictions of one word, each with the probability of a slider."""
    percents = {"A": asked.integer("a", 1, 99, 40), "B": asked.integer("b", 1, 99, 5)}
    models = {name: accuracy.prediction(percent / 100) for name, percent in percents.items()}
    return Shown({"result": piece("near_misses", "result", models=models)})


def two_temperatures(asked: Asked) -> Shown:
    """One model at two temperatures, beside the one with the lowest loss."""
    losses = _temperature_losses(asked, asked.model)
    html = piece(
        "two_temperatures",
        "result",
        first=losses.at(asked.number("a", _COLDEST, _HOTTEST, 1.0)),
        second=losses.at(asked.number("b", _COLDEST, _HOTTEST, 2.0)),
        losses=losses,
    )
    return Shown({"result": html})


def token_losses(asked: Asked) -> Shown:
    """The losses of the tokens of two models, or of one at two temperatures, as a histogram."""
    second = _second_model(asked, asked.text("second", _SAME))
    a, b = _temperature_losses(asked, asked.model), _temperature_losses(asked, second)
    sides = {
        "A": a.at(asked.number("a", _COLDEST, _HOTTEST, 1.0)),
        "B": b.at(asked.number("b", _COLDEST, _HOTTEST, 0.5)),
    }
    html = piece(
        "token_losses",
        "result",
        sides=sides,
        names={"A": asked.model.signature.name, "B": second.signature.name},
        histogram=accuracy.loss_histogram(*(side.nll_nats for side in sides.values())),
    )
    return Shown({"result": html})


def _temperature_losses(asked: Asked, model: MaskedLM) -> accuracy.TemperatureLosses:
    measure = partial(accuracy.temperature_losses, model)
    return _measured(asked, ("temperature losses",), TEMPERATURE_TEXTS, measure, model)


# ---- How sure is the number?


def twenty_seeds(asked: Asked) -> Shown:
    """The evaluator's mean by seed, beside pseudo-perplexity."""

    def work(report: Report) -> uncertainty.SeedMeans:
        texts = uncertainty.shortest(list(open_texts(TextSource())), SEED_TEXTS)

        def on_pass(done: int) -> None:
            passes = len(SEEDS) + 1
            report(Waiting(f"{done} of {passes} passes over the texts", done / passes))

        return uncertainty.means_over_seeds(asked.model, texts, on_pass=on_pass)

    means = asked.slowly(("twenty seeds",), work)
    seed = asked.integer("seed", SEEDS[0], SEEDS[-1], SEEDS[0])
    chosen = next(one for one in means.seeds if one.seed == seed)
    html = piece("twenty_seeds", "result", means=means, chosen=chosen)
    answer = piece("twenty_seeds", "answer", chosen=chosen)
    return Shown({"result": html, "answer": answer})


def more_texts(asked: Asked) -> Shown:
    """The interval of the mean of the first 5, 10, 20, ... texts, in an order of the reader's."""
    measure = partial(uncertainty.text_losses, asked.model)
    losses = _measured(asked, ("more texts",), uncertainty.COUNTS[-1] + _SPARE, measure)
    means = uncertainty.means_by_count(losses, asked.integer("order", 0, 9999, 0))
    return Shown({"result": piece("more_texts", "result", means=means)})


def published_changes(asked: Asked) -> Shown:
    """The published table recomputed, and two figures of the reader's by the same rule."""
    limits = Limits(
        _typed(asked, "pass_below", "the limit of PASS", 5.0) / 100,
        _typed(asked, "risk_below", "the limit of AT_RISK", 10.0) / 100,
    )
    own = uncertainty.Change(
        _typed(asked, "loss", "your loss", 2.1625),
        _typed(asked, "baseline", "the baseline", 2.1032),
    )
    rows = list(uncertainty.PUBLISHED)
    if asked.text("order", "printed") == "change":
        rows.sort(key=lambda row: row.relative_change, reverse=True)
    html = piece("published_changes", "result", rows=rows, limits=limits)
    answer = piece("published_changes", "change", own=own, limits=limits)
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


def paired_difference(asked: Asked) -> Shown:
    """Two models on identical masks: their means, and two intervals of the difference."""
    reference = asked.text("second") or _VARIANTS.get(asked.model.signature.name, _SAME)
    second = _second_model(asked, reference)
    name = second.signature.name
    if reference == _SAME:
        name += f" at temperature {_TEMPERATURE:g}"
        second = accuracy.Tempered(second, _TEMPERATURE)
    measure = partial(uncertainty.compare_paired, second, asked.model)
    pair = _measured(asked, ("paired", reference), _PAIRED_TEXTS, measure)
    figures = {asked.model.signature.name: pair.base, name: pair.own}
    html = piece(
        "paired_difference",
        "result",
        pairing=pair,
        figures=figures,
        change=interval_text(pair.comparison.interval, signed_percent),
    )
    return Shown({"result": html})


_RANGE = {"coldest": _COLDEST, "hottest": _HOTTEST}
_SECOND = {"models": available_models}
_RELATIVE = {**_SECOND, "temperature": _TEMPERATURE}
FIGURES: Mapping[str, Figure] = {
    "near_misses": Figure("Two wrong guesses", near_misses, needs_model=False),
    "two_temperatures": Figure("One model at two temperatures", two_temperatures, _RANGE),
    "token_losses": Figure("Losses of single tokens", token_losses, {**_RANGE, **_SECOND}),
    "twenty_seeds": Figure("The mean loss for twenty seeds", twenty_seeds),
    "more_texts": Figure("The interval by the number of texts", more_texts),
    "published_changes": Figure("Published losses and their changes", published_changes, {}, False),
    "paired_difference": Figure("Two models on identical masks", paired_difference, _RELATIVE),
}
