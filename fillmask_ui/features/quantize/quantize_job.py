"""The Quantize tab's work: read its controls as an `Order`, then make and measure variants."""

import json
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.features.quantize.graphs import Loader
from fillmask_ui.features.quantize.make_variants import quantize
from fillmask_ui.features.quantize.measure_variants import MeasuredModel, measure_variant
from fillmask_ui.features.quantize.variant_store import (
    Home,
    Recipe,
    Settings,
    StoredVariant,
    VariantStore,
    parts_text,
)
from fillmask_ui.models.load import load_choice
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.onnx_tools.schemes import SCHEMES
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.publishing.hub_folder import note_figures
from fillmask_ui.records import Example, Progress
from fillmask_ui.schema import from_trusted_values
from fillmask_ui.texts import TextChoice, TextSource, open_texts
from fillmask_ui.texts.calibration import MEASURED
from fillmask_ui.ui.evaluate.evaluate_form import EMBEDDED, UPLOAD
from fillmask_ui.ui.job import Waiting

# Ticked at first: quick ones.
PLAIN_SCHEMES = ("int8", "int8-channel", "fp16")
PLAIN_SAMPLES, CALIBRATION_TEXTS = 100, 64
_MAKING = 0.4  # of the work of one variant; the rest measures it

T = TypeVar("T")


@dataclass(frozen=True)
class Order:
    """What is to be made and measured."""

    model: ModelChoice
    schemes: tuple[str, ...]  # in the order of the table of schemes
    exclude: tuple[str, ...]  # what stays in full precision
    source: TextSource  # all texts, in their order
    samples: int  # the first so many are measured; those behind them calibrate
    settings: Settings  # that it was read from


def read_order(values: Mapping[str, Any], default_model: str, *, make: bool = True) -> Order:
    """What the controls, by their names, hold; an OptionError for values that make no sense.

    Without `make` the schemes are not read: variants that exist are measured.
    """
    chosen = [*values["schemes"], *values["more_schemes"]] if make else []
    if make and not chosen:
        raise OptionError("no scheme is selected: select one or more")
    samples = values["samples"]
    if not isinstance(samples, int | float) or not 1 <= samples < 2**63 or samples % 1:
        raise OptionError(
            f"the number of texts must be a whole number, 1 or more; it was {samples}"
        )
    if values["where"] == UPLOAD and not values["upload"]:
        raise OptionError("no file was uploaded: choose one, or pick the embedded texts")
    return Order(
        ModelChoice((values["model"] or "").strip() or default_model),
        tuple(name for name in SCHEMES if name in chosen),
        tuple(dict.fromkeys(filter(None, re.split(r"[,\s]+", values["exclude"] or "")))),
        TextChoice(values["upload"] if values["where"] == UPLOAD else EMBEDDED).source(),
        int(samples),
        from_trusted_values(
            Settings, {**values, "exclude": values["exclude"] or "", "samples": int(samples)}
        ),
    )


@dataclass(frozen=True)
class FailedScheme:
    """A scheme that gave no row; the others go on."""

    scheme: str
    name: str  # with what stays in full precision
    message: str  # why, and what to do


@dataclass(frozen=True, eq=False)
class RunState:
    """The results of a run so far; the variants are on disk."""

    reference: str  # of the source model
    settings: Settings
    home: Home | None = None  # None until the model itself is measured
    failures: tuple[FailedScheme, ...] = ()
    notes: tuple[str, ...] = ()  # what a reader should know


def variant_name(scheme: str, exclude: Sequence[str]) -> str:
    """What a variant is called.

    >>> variant_name("int8", ()), variant_name("int8", ["projection"])
    ('int8', 'int8 without projection')
    """
    return f"{scheme} without {parts_text(exclude)}" if exclude else scheme


def perform(order: Order, store: VariantStore, load: Loader) -> Generator[Waiting]:
    """Make and measure the variants of an order, and measure those never measured before.

    `load` gives the source model, which visitors share. Each step holds the `RunState`
    if it has changed. A `FillmaskError` if texts or source model cannot be read or measured.
    """
    state = RunState(order.model.reference, order.settings)
    yield Waiting("Reading the texts…", so_far=state)
    with open_texts(replace(order.source, samples=order.samples + CALIBRATION_TEXTS)) as opened:
        texts = list(opened)
    state = replace(state, notes=opened.report.warnings)
    measured, remaining = texts[: order.samples], texts[order.samples :]
    yield Waiting("Loading the model…")
    base = load(order.model)
    home = store.home(order.model.reference, base.signature)
    subject = MeasuredModel("", base, order.model.reference)
    total = 1 + len(list(_pending(order, home)))
    row = yield from _rescale_progress(measure_variant(subject, None, measured), 0, 1 / total)
    home.keep_source(order.model.reference, row, order.settings)
    notes = state.notes
    calibration = None
    has_default_texts = order.source == TextSource() and order.samples <= MEASURED
    if not has_default_texts and any(SCHEMES[scheme].calibrated for scheme in order.schemes):
        calibration = _write_texts(remaining or measured[:CALIBRATION_TEXTS], home)
        notes = notes if remaining else (*notes, _NOT_APART)
    state = replace(state, home=home, notes=notes)
    yield Waiting("The model itself is measured.", 1 / total, state)
    for number, (scheme, stored) in enumerate(_pending(order, home), 1):
        start = min(number / total, 1.0)
        middle = min((number + _MAKING) / total, 1.0)
        finish = min((number + 1) / total, 1.0)
        exclude = order.exclude if stored is None else stored.exclude
        name = variant_name(scheme, exclude)
        try:
            variant = stored
            if variant is None:
                scheme_texts = calibration if SCHEMES[scheme].calibrated else None
                steps = _make(order, base, home, scheme, scheme_texts)
                variant = yield from _rescale_progress(steps, start, middle)
            yield Waiting(f"Loading {name}…", middle)
            candidate = MeasuredModel(
                name, load_choice(ModelChoice(str(variant.path))), str(variant.path)
            )
            row = yield from _rescale_progress(
                measure_variant(subject, candidate, measured), middle, finish
            )
            note_figures(variant.path, replace(row, scheme=scheme).to_dict())
        except FillmaskError as error:
            failures = (*state.failures, FailedScheme(scheme, name, str(error)))
            state = replace(state, failures=failures)
        else:
            state = replace(state)  # a new object, which the page draws
        yield Waiting(f"{name} is done.", finish, state)


_NOT_APART = (
    "There are too few texts: int8 and the static scheme are calibrated on texts that are also "
    "measured, which favours them slightly."
)


def _pending(order: Order, home: Home) -> Iterator[tuple[str, StoredVariant | None]]:
    """The schemes of an order, then variants never measured, by then also those made meanwhile.

    A variant that stays without figures comes once.
    """
    for scheme in order.schemes:
        yield scheme, None
    seen: set[Path] = set()
    ordered = {(scheme, order.exclude) for scheme in order.schemes}
    while unmeasured := [
        variant
        for variant in home.variants()
        if variant.figures is None
        and (variant.scheme, variant.exclude) not in ordered
        and variant.path not in seen
    ]:
        seen.add(unmeasured[0].path)
        yield unmeasured[0].scheme, unmeasured[0]


def _rescale_progress(
    steps: Iterable[Progress | T], start: float, finish: float
) -> Generator[Waiting, None, T]:
    """The result of some steps, whose progress becomes that from start to finish."""
    for step in steps:
        if isinstance(step, Progress):
            yield Waiting(step.message, start + (finish - start) * (step.fraction or 0.0))
        else:
            result = step
    return result


def _make(
    order: Order, base: MaskedLM, home: Home, scheme: str, calibration: TextSource | None
) -> Generator[Progress | StoredVariant]:
    """The variant of a scheme, which is made unless it exists."""
    recipe = Recipe(order.exclude, Path(calibration.where).stem if calibration else "")
    if home.variant(scheme, recipe) is None:
        steps = quantize(
            order.model,
            home.output(recipe),
            [scheme],
            exclude=order.exclude,
            calibration=calibration,
            force=True,  # a file that an interrupted order left there has no record
            load=lambda choice: base if choice == order.model else load_choice(choice),
        )
        yield from (step for step in steps if isinstance(step, Progress))
    yield home.written(scheme, recipe)


def _write_texts(texts: Sequence[Example], home: Home) -> TextSource:
    """Write texts to a file whose name is a hash of them."""
    content = "".join(json.dumps({"text": example.text}) + "\n" for example in texts)
    name = f"texts-{sha256(content.encode()).hexdigest()[:12]}.jsonl"
    return TextSource("file", str(home.write(name, content)), shuffle=False)
