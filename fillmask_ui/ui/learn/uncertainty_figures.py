"""Figures of "Better than accuracy" and of "How sure is the number?"."""

import math
from collections.abc import Callable, Mapping

from fillmask_ui.comparing.word_contrast import same_tokenizer
from fillmask_ui.errors import ModelError, OptionError
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
    PairedModels,
    SeedMeans,
    TextLosses,
    compare_paired,
    means_by_count,
    means_over_seeds,
    shortest,
    text_losses,
)
from fillmask_ui.models import available_models
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.drawing import Scale
from fillmask_ui.show.numbers import interval_text, signed_percent
from fillmask_ui.show.render import render
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.ui.background import Report, Waiting
from fillmask_ui.ui.figure import Asked, Figure, Shown, finished

TEMPERATURE_TEXTS = 40
SEED_TEXTS = 20
_SPARE = 15  # texts, as the masks leave out one of a hundred or so
_PAIRED_TEXTS = 80
_TEMPERATURE = 1.1  # of the second model where it is the first one again
_COLDEST, _HOTTEST = TEMPERATURES[0], TEMPERATURES[-1]
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


def _counted(report: Report, total: int, what: str) -> Callable[[int], None]:
    """Reports a number done as `12 of 60 texts`."""
    return lambda done: report(Waiting(f"{done} of {total} {what}", done / total))


def near_misses(asked: Asked) -> Shown:
    """Two predictions of one word, each with the probability of a slider."""
    percents = {"A": asked.integer("a", 1, 99, 40), "B": asked.integer("b", 1, 99, 5)}
    models = {name: prediction(percent / 100) for name, percent in percents.items()}
    return Shown({"result": render("page/learn/near_misses_result.html", models=models)})


def two_temperatures(asked: Asked) -> Shown:
    """One model at two temperatures, beside the one with the lowest loss."""
    losses = _temperature_losses(asked, asked.model)
    means = [one.mean_nll_nats for one in losses.every]
    html = render(
        "page/learn/two_temperatures_result.html",
        first=losses.at(asked.number("a", _COLDEST, _HOTTEST, 1.0)),
        second=losses.at(asked.number("b", _COLDEST, _HOTTEST, 2.0)),
        losses=losses,
        x=Scale(_COLDEST, _HOTTEST, 40, 415),
        y=Scale(min(means) - 0.1, max(means), 200, 24),
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
    histogram = loss_histogram(*(side.nll_nats for side in sides.values()))
    most = max(int(counts.max()) for counts in histogram.counts.values())
    html = render(
        "page/learn/token_losses_result.html",
        sides=sides,
        names={"A": asked.model.signature.name, "B": second.signature.name},
        histogram=histogram,
        x=Scale(0, BINS * BIN_NATS, 40, 424),
        y=Scale(0, most, 220, 38),
    )
    return Shown({"result": html})


def _temperature_losses(asked: Asked, model: MaskedLM) -> TemperatureLosses:
    def work(report: Report) -> TemperatureLosses:
        texts = list(open_texts(TextSource(samples=TEMPERATURE_TEXTS)))
        return temperature_losses(model, texts, on_text=_counted(report, len(texts), "texts"))

    return finished(asked.session.slowly(model, ("temperature losses",), work))


# ---- How sure is the number?


def twenty_seeds(asked: Asked) -> Shown:
    """The evaluator's mean by seed, beside pseudo-perplexity."""

    def work(report: Report) -> SeedMeans:
        texts = shortest(list(open_texts(TextSource())), SEED_TEXTS)
        on_pass = _counted(report, len(SEEDS) + 1, "passes over the texts")
        return means_over_seeds(asked.model, texts, on_pass=on_pass)

    means = asked.slowly(("twenty seeds",), work)
    seed = asked.integer("seed", SEEDS[0], SEEDS[-1], SEEDS[0])
    chosen = next(one for one in means.seeds if one.seed == seed)
    highest = max(means.pseudo_nll_nats, *(one.mean_nll_nats for one in means.seeds))
    html = render(
        "page/learn/twenty_seeds_result.html",
        means=means,
        chosen=chosen,
        x=Scale(0, len(SEEDS), 34, 424),
        y=Scale(0, highest + 0.2, 210, 24),
    )
    answer = render("page/learn/twenty_seeds_answer.html", chosen=chosen)
    return Shown({"result": html, "answer": answer})


def more_texts(asked: Asked) -> Shown:
    """The interval of the mean of the first 5, 10, 20, ... texts, in an order of the reader's."""

    def work(report: Report) -> TextLosses:
        texts = list(open_texts(TextSource(samples=COUNTS[-1] + _SPARE)))
        return text_losses(asked.model, texts, on_text=_counted(report, len(texts), "texts"))

    losses = asked.slowly(("more texts",), work)
    means = means_by_count(losses, asked.integer("order", 0, 9999, 0))
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


def paired_difference(asked: Asked) -> Shown:
    """Two models on identical masks: their means, and two intervals of the difference."""
    reference = asked.text("second") or _other_variant(asked.model)
    second = _second_model(asked, reference)
    name = second.signature.name
    if reference == _SAME:
        second, name = Tempered(second, _TEMPERATURE), f"{name} at temperature {_TEMPERATURE:g}"

    def work(report: Report) -> PairedModels:
        texts = list(open_texts(TextSource(samples=_PAIRED_TEXTS)))
        on_text = _counted(report, len(texts), "texts")
        return compare_paired(second, asked.model, texts, on_text=on_text)

    pair = asked.slowly(("paired", reference), work)
    figures = {asked.model.signature.name: pair.base, name: pair.own}
    far = max(abs(pair.separate.low), abs(pair.separate.high), 0.01)
    intervals = [one.interval for one in figures.values() if one.interval]
    html = render(
        "page/learn/paired_difference_result.html",
        pairing=pair,
        figures=figures,
        change=interval_text(pair.comparison.interval, signed_percent),
        means=Scale(min(one.low for one in intervals), max(one.high for one in intervals), 14, 416),
        differences=Scale(-far, far, 14, 416),
    )
    return Shown({"result": html})


def _other_variant(model: MaskedLM) -> str:
    """The embedded model in the other precision; of others, the model itself."""
    others = {"embedded": "embedded:int8", "embedded:int8": "embedded"}
    return others.get(model.signature.name, _SAME)


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
