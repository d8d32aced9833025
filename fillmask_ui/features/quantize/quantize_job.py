"""What the Quantize tab does: its controls read as an `Order`, then variants made and measured."""

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.features.quantize.make_variants import quantize
from fillmask_ui.features.quantize.measure_variants import Subject, measure_variant
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
from fillmask_ui.ui.evaluate.evaluate_form import EMBEDDED, UPLOAD
from fillmask_ui.ui.job import Waiting

# What a visitor finds: quick ones that need no texts.
PLAIN_SCHEMES = ("int8", "int8-channel", "fp16")
PLAIN_SAMPLES, CALIBRATION_TEXTS = 100, 64
_MAKING = 0.4  # of the work of one variant; the rest measures it

Load = Callable[[ModelChoice], MaskedLM]
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
        raise OptionError("no scheme is ticked: tick one or more")
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
class Failed:
    """A scheme that gave no row; the others go on."""

    scheme: str
    name: str  # with what stays in full precision
    message: str  # why, and what to do


@dataclass(frozen=True, eq=False)
class Known:
    """What a run has found by then; what it made is on disk."""

    reference: str  # of the source model
    settings: Settings
    home: Home | None = None  # None until the model itself is measured
    failures: tuple[Failed, ...] = ()
    notes: tuple[str, ...] = ()  # what a reader should know


def name_of(scheme: str, exclude: Sequence[str]) -> str:
    """What a variant is called.

    >>> name_of("int8", ()), name_of("int8", ["projection"])
    ('int8', 'int8 without projection')
    """
    return f"{scheme} without {parts_text(exclude)}" if exclude else scheme


def perform(order: Order, store: VariantStore, load: Load) -> Generator[Waiting]:
    """Make and measure the variants of an order, and measure those never measured before.

    `load` gives the source model, which visitors share. Each step holds what is `Known` by then,
    if that has changed. A `FillmaskError` if texts or source model cannot be read or measured.
    """
    known = Known(order.model.reference, order.settings)
    yield Waiting("Reading the texts…", so_far=known)
    with open_texts(replace(order.source, samples=order.samples + CALIBRATION_TEXTS)) as found:
        texts = list(found)
    known = replace(known, notes=found.report.warnings)
    measured, rest = texts[: order.samples], texts[order.samples :]
    yield Waiting("Loading the model…")
    base = load(order.model)
    home = store.home(order.model.reference, base.signature)
    subject = Subject("", base, order.model.reference)
    whole = 1 + len([*_wanted(order, home)])
    row = yield from _part(measure_variant(subject, None, measured), 0, 1 / whole)
    home.keep_source(order.model.reference, row, order.settings)
    notes = known.notes
    calibration = None
    if any(SCHEMES[scheme].calibrated for scheme in order.schemes):
        calibration = _written(rest or measured[:CALIBRATION_TEXTS], home)
        notes = notes if rest else (*notes, _NOT_APART)
    known = replace(known, home=home, notes=notes)
    yield Waiting("The model itself is measured.", 1 / whole, known)
    for number, (scheme, kept) in enumerate(_wanted(order, home), 1):
        start, middle, end = (min((number + part) / whole, 1.0) for part in (0, _MAKING, 1))
        exclude = order.exclude if kept is None else kept.exclude
        name = name_of(scheme, exclude)
        try:
            variant = kept
            if variant is None:
                own = calibration if SCHEMES[scheme].calibrated else None
                making = _made(order, base, home, scheme, own)
                variant = yield from _part(making, start, middle)
            yield Waiting(f"Loading {name}…", middle)
            made = Subject(name, load_choice(ModelChoice(str(variant.path))), str(variant.path))
            row = yield from _part(measure_variant(subject, made, measured), middle, end)
            note_figures(variant.path, replace(row, scheme=scheme).to_dict())
        except FillmaskError as error:
            failures = (*known.failures, Failed(scheme, name, str(error)))
            known = replace(known, failures=failures)
        else:
            known = replace(known)
        yield Waiting(f"{name} is done.", end, known)


_NOT_APART = (
    "There are no further texts: those that calibrate the static scheme are measured, too, which "
    "flatters it a little."
)


def _wanted(order: Order, home: Home) -> Iterator[tuple[str, StoredVariant | None]]:
    """The schemes of an order, then variants never measured, by then also those made meanwhile.

    A variant that stays without figures comes once.
    """
    yield from ((scheme, None) for scheme in order.schemes)
    seen: set[Path] = set()
    asked = {(scheme, order.exclude) for scheme in order.schemes}
    while left := [
        own
        for own in home.variants()
        if own.figures is None and (own.scheme, own.exclude) not in asked and own.path not in seen
    ]:
        seen.add(left[0].path)
        yield left[0].scheme, left[0]


def _part(steps: Iterable[Progress | T], start: float, end: float) -> Generator[Waiting, None, T]:
    """The result of a part of the run; its progress becomes that from start to end."""
    for step in steps:
        if isinstance(step, Progress):
            yield Waiting(step.message, start + (end - start) * (step.fraction or 0.0))
        else:
            result = step
    return result


def _made(
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
    yield home.made(scheme, recipe)


def _written(texts: Sequence[Example], home: Home) -> TextSource:
    """Texts as a file of their own, under a name that they decide."""
    content = "".join(json.dumps({"text": example.text}) + "\n" for example in texts)
    name = f"texts-{sha256(content.encode()).hexdigest()[:12]}.jsonl"
    return TextSource("file", str(home.write(name, content)), shuffle=False)
