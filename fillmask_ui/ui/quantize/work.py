"""A run of the Quantize tab: variants are made and measured one by one, and kept as they come.

A generator: whoever closes it stops the run at the next step. What is done by then is on disk.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from fillmask_ui.errors import DataError, FillmaskError
from fillmask_ui.models.choice import ModelChoice
from fillmask_ui.models.load import load_choice
from fillmask_ui.models.progress import ProgressCallback
from fillmask_ui.onnx_tools.schemes import SCHEMES
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.quantizing.make import Making, quantize
from fillmask_ui.quantizing.measure import Subject, VariantFigures, measure_one
from fillmask_ui.quantizing.store import Home, Recipe, StoredVariant, VariantStore
from fillmask_ui.records import Example
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.ui.background import Done, run_in_background
from fillmask_ui.ui.quantize.form import Order
from fillmask_ui.ui.quantize.steps import Failed, Kept, Note, Step, Working

CALIBRATION_TEXTS = 64
# Of the work of one variant, the part that makes it; the rest measures it.
_MAKING = 0.4

Load = Callable[[ModelChoice, ProgressCallback], MaskedLM]


def perform(order: Order, store: VariantStore, load: Load) -> Generator[Step]:
    """Make and measure what was asked for.

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
    whole = 1 + len(order.schemes)
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
        calibration = _written(rest or measured[:CALIBRATION_TEXTS], home.folder)
    for number, scheme in enumerate(order.schemes, 1):

        def overall(part: float, number: int = number) -> float:
            return (number + part) / whole

        try:
            variant = yield from _made(order, scheme, home, calibration, overall)
            model = load_choice(ModelChoice(variant.reference))
            own = Subject(scheme, model, variant.reference)
            row = yield from _row(
                subject, own, measured, lambda part: overall(_MAKING + (1 - _MAKING) * part)
            )
        except FillmaskError as error:
            yield Failed(scheme, str(error))
        else:
            home.keep(replace(variant, size_bytes=row.size_bytes, figures=row))
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


def _made(
    order: Order,
    scheme: str,
    home: Home,
    calibration: TextSource | None,
    overall: Callable[[float], float],
) -> Generator[Step, None, StoredVariant]:
    """The variant of a scheme; made if it is not there."""
    calibrated = SCHEMES[scheme].calibrated and calibration is not None
    recipe = Recipe(
        order.exclude, Path(calibration.where).stem if calibrated and calibration else ""
    )
    known = home.variant(scheme, recipe)
    if known is not None:
        return known
    steps = quantize(
        order.model,
        home.output(recipe),
        [scheme],
        exclude=order.exclude,
        calibration=calibration if calibrated else None,
        force=True,
    )
    for step in steps:
        if isinstance(step, Making):
            yield Working(step.message, overall(_MAKING * (step.fraction or 0.0)))
        else:
            made = StoredVariant(scheme, str(step.path), step.size_bytes, recipe)
            home.keep(made)
            return made
    raise RuntimeError(f"{scheme} has ended without a result")


def _written(texts: Sequence[Example], folder: Path) -> TextSource:
    """Texts as a file of their own, under a name that they decide."""
    content = "".join(json.dumps({"text": example.text}) + "\n" for example in texts)
    path = folder / f"texts-{sha256(content.encode()).hexdigest()[:12]}.jsonl"
    try:
        path.write_text(content, "utf-8")
    except OSError as error:
        raise DataError(f"{folder} cannot be written ({error.strerror})") from error
    return TextSource("file", str(path), shuffle=False)
