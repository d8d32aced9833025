"""What the Quantize tab's controls hold, checked: plain values in, an `Order` out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from fillmask_ui.errors import DataError, FillmaskError, OptionError
from fillmask_ui.models.load import load_choice
from fillmask_ui.models.loading_progress import ProgressCallback
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.onnx_tools.schemes import SCHEMES, find_scheme
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.quantizing.make_variants import Making, quantize
from fillmask_ui.quantizing.measure_variants import Subject, VariantFigures, measure_one
from fillmask_ui.quantizing.variant_store import (
    Home,
    Recipe,
    StoredVariant,
    VariantStore,
    parts_text,
)
from fillmask_ui.records import Example
from fillmask_ui.texts import TextChoice, TextSource, open_texts
from fillmask_ui.ui.background import Done, run_in_background

EMBEDDED, UPLOAD = "embedded", "upload"
PLACES = {EMBEDDED: "Embedded", UPLOAD: "Upload"}
# What a visitor finds: quick ones that need no texts.
PLAIN_SCHEMES = ("int8", "int8-channel", "fp16")
PLAIN_SAMPLES = 100


@dataclass(frozen=True)
class Order:
    """What is to be made and measured."""

    model: ModelChoice
    schemes: tuple[str, ...]  # in the order of the table of schemes
    exclude: tuple[str, ...]  # what stays in full precision
    source: TextSource  # all texts, in their order
    samples: int  # the first so many are measured; those behind them calibrate


def read_order(values: Mapping[str, Any], default_model: str, *, make: bool = True) -> Order:
    """What the controls ask for.

    Args:
        values: by the names of the controls.
        default_model: what a blank model means.
        make: whether the schemes are wanted; without them, what is there is measured.

    Raises:
        OptionError: for values that make no sense.
    """
    chosen = (values["schemes"] or []) if make else []
    for name in chosen:
        find_scheme(str(name))
    if make and not chosen:
        raise OptionError("no scheme is ticked: tick one or more")
    samples = values["samples"]
    if not isinstance(samples, int | float) or not 1 <= samples < 2**63 or samples % 1:
        raise OptionError(
            f"the number of texts must be a whole number, 1 or more; it was {samples}"
        )
    return Order(
        ModelChoice((values["model"] or "").strip() or default_model),
        tuple(name for name in SCHEMES if name in chosen),
        tuple(dict.fromkeys(filter(None, re.split(r"[,\s]+", (values["exclude"] or "").strip())))),
        _source(values["where"], values["upload"]),
        int(samples),
    )


def _source(where: str, upload: str | None) -> TextSource:
    if where == EMBEDDED:
        return TextSource()
    if where != UPLOAD:
        raise OptionError(f"unknown place of texts {where!r}")
    if not upload:
        raise OptionError("no file was uploaded: choose one, or pick the embedded texts")
    return replace(TextChoice(upload).source(), samples=None)


CALIBRATION_TEXTS = 64
# Of the work of one variant, the part that makes it; the rest measures it.
_MAKING = 0.4

Load = Callable[[ModelChoice, ProgressCallback], MaskedLM]


def perform(order: Order, store: VariantStore, load: Load) -> Generator[Step]:
    """Make and measure what was asked for, and measure what was made but not measured before.

    Args:
        order: what.
        store: where variants go.
        load: gives the source model, which visitors share.

    Yields:
        News as it goes on.

    Raises:
        FillmaskError: if the texts or the source model cannot be had or measured.
    """
    yield Working("Reading the texts…")
    measured, rest = _read(order)
    base = yield from _loaded(order.model, load)
    home = store.home(order.model.reference, base.signature)
    subject = Subject("", base, order.model.reference)
    asked = {(scheme, order.exclude) for scheme in order.schemes}
    left = [own for own in home.variants() if own.figures is None]
    left = [own for own in left if (own.scheme, own.exclude) not in asked]
    whole = 1 + len(order.schemes) + len(left)
    row = yield from _row(subject, None, measured, lambda part: part / whole)
    home.keep_source(order.model.reference, row)
    yield Kept(home)
    calibration = None
    if any(SCHEMES[scheme].calibrated for scheme in order.schemes):
        if not rest:
            yield Note(
                "There are no further texts: those that calibrate the static scheme are measured, "
                "too, which flatters it a little."
            )
        calibration = _written(rest or measured[:CALIBRATION_TEXTS], home)
    maker = _Maker(order, base, home, calibration)
    jobs = [*((scheme, None) for scheme in order.schemes), *((own.scheme, own) for own in left)]
    for number, (scheme, known) in enumerate(jobs, 1):

        def overall(part: float, number: int = number) -> float:
            return (number + part) / whole

        try:
            variant = known
            if variant is None:
                variant = yield from maker.variant(scheme, lambda part: overall(_MAKING * part))
            model = load_choice(ModelChoice(str(variant.path)))
            row = yield from _row(
                subject,
                Subject(scheme, model, str(variant.path)),
                measured,
                lambda part: overall(_MAKING + (1 - _MAKING) * part),
            )
            variant.keep(row)
        except FillmaskError as error:
            exclude = order.exclude if known is None else known.exclude
            yield Failed(scheme, name_of(scheme, exclude), str(error))
        else:
            yield Kept(home)


def _read(order: Order) -> tuple[list[Example], list[Example]]:
    """The texts to measure, and those behind them."""
    wanted = replace(order.source, samples=order.samples + CALIBRATION_TEXTS)
    with open_texts(wanted) as texts:
        found = list(texts)
    return found[: order.samples], found[order.samples :]


def _loaded(choice: ModelChoice, load: Load) -> Generator[Step, None, MaskedLM]:
    for state in run_in_background(lambda report: load(choice, report)):
        if isinstance(state, Done):
            return state.result
        yield Working(state.message or "Loading the model…", state.fraction)
    raise RuntimeError("a task has ended without a result")


def _row(
    baseline: Subject,
    variant: Subject | None,
    texts: Sequence[Example],
    overall: Callable[[float], float],
) -> Generator[Step, None, VariantFigures]:
    for step in measure_one(baseline, variant, texts):
        if isinstance(step, VariantFigures):
            return step
        yield Working(step.message, overall(step.fraction or 0.0))
    raise RuntimeError("a measurement has ended without a row")


class _Maker:
    """Makes the variants of one run that are not there yet."""

    def __init__(
        self, order: Order, model: MaskedLM, home: Home, calibration: TextSource | None
    ) -> None:
        self._order, self._model, self._home = order, model, home
        self._calibration = calibration

    def variant(
        self, scheme: str, overall: Callable[[float], float]
    ) -> Generator[Step, None, StoredVariant]:
        """That of a scheme; made if it is not there."""
        texts = self._calibration if SCHEMES[scheme].calibrated else None
        recipe = Recipe(self._order.exclude, Path(texts.where).stem if texts else "")
        known = self._home.variant(scheme, recipe)
        if known is not None:
            return known
        steps = quantize(
            self._order.model,
            self._home.output(recipe),
            [scheme],
            exclude=self._order.exclude,
            calibration=texts,
            force=True,  # int8 of earlier versions, which was another recipe, has the same name
            load=self._load,
        )
        for step in steps:
            if isinstance(step, Making):
                yield Working(step.message, overall(step.fraction or 0.0))
        made = self._home.variant(scheme, recipe)
        if made is None:
            raise DataError(f"{self._home.folder} was changed while it was written: run it again")
        return made

    def _load(self, choice: ModelChoice) -> MaskedLM:
        """The source is in memory already."""
        return self._model if choice == self._order.model else load_choice(choice)


def _written(texts: Sequence[Example], home: Home) -> TextSource:
    """Texts as a file of their own, under a name that they decide."""
    content = "".join(json.dumps({"text": example.text}) + "\n" for example in texts)
    name = f"texts-{sha256(content.encode()).hexdigest()[:12]}.jsonl"
    return TextSource("file", str(home.write(name, content)), shuffle=False)


@dataclass(frozen=True)
class Working:
    """What goes on."""

    message: str
    fraction: float | None = None  # part done of the whole run, in [0, 1]


@dataclass(frozen=True)
class Note:
    """What a reader should know of the run."""

    text: str


@dataclass(frozen=True)
class Kept:
    """Something new is on disk."""

    home: Home


@dataclass(frozen=True)
class Failed:
    """A scheme that gave no row; the others go on."""

    scheme: str
    name: str  # with what stays in full precision
    message: str  # why, and what to do


def name_of(scheme: str, exclude: Sequence[str]) -> str:
    """What a variant is called.

    >>> name_of("int8", ()), name_of("int8", ["projection"])
    ('int8', 'int8 without projection')
    """
    return f"{scheme} without {parts_text(exclude)}" if exclude else scheme


Step = Working | Note | Kept | Failed
