"""`fillmask-ui export` and `quantize`: variants of a model, made and measured."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Annotated

from fillmask_ui.cli.options import FOLDER, FORCE, JSON, SOURCE, option, with_options
from fillmask_ui.cli.terminal import load, print_json, print_line, print_table, results, tell, warn
from fillmask_ui.errors import OptionError
from fillmask_ui.features.quantize import make_variants, measure_variants
from fillmask_ui.features.quantize.make_variants import Variant
from fillmask_ui.features.quantize.measure_variants import MeasuredModel, VariantFigures, busy_text
from fillmask_ui.features.quantize.timing import PairedTimes
from fillmask_ui.models import ModelChoice
from fillmask_ui.onnx_tools.schemes import find_scheme
from fillmask_ui.publishing.hub_folder import note_figures
from fillmask_ui.publishing.hub_push import HubTarget
from fillmask_ui.records import Example, Progress
from fillmask_ui.show.numbers import interval_text, percent, signed_percent
from fillmask_ui.show.table import Column, Table
from fillmask_ui.texts import TextChoice, open_texts
from fillmask_ui.texts.calibration import MEASURED
from fillmask_ui.texts.files import is_file


@with_options
def export(
    reference: str = SOURCE,
    *,
    output: Path = FOLDER,
    force: bool = FORCE,
    choice: Annotated[ModelChoice, ("threads",)],
    as_json: bool = JSON,
) -> None:
    """Write a PyTorch model as ONNX in float32, and compare it with PyTorch.

    The folder loads by its name. `fillmask-ui quantize` adds variants to it.
    """
    steps = make_variants.export(
        replace(choice, reference=reference), output, force=force, load=load
    )
    variants: list[Variant] = []
    with _report_interruption(variants, output):
        variants.extend(results(steps, Variant))
    for variant in variants:
        if as_json:
            print_json(variant.to_dict())
        else:
            print_line(
                f"{variant.path}: {variant.size_bytes / 1e6:,.1f} MB, logits within "
                f"{variant.parity:.1e} of PyTorch's"
            )


@contextmanager
def _report_interruption(variants: list[Variant], output: object) -> Iterator[None]:
    """Say which variants are complete if the user interrupts."""
    try:
        yield
    except KeyboardInterrupt:
        names = ", ".join(variant.path.name for variant in variants) or "nothing"
        tell(f"\nstopped; {names} is complete in {output}")
        raise


@with_options
def quantize(
    *,
    reference: str = SOURCE,
    output: Path = FOLDER,
    scheme: list[str] | None = option(
        None,
        "int8 (default), int8-channel, int8-tensor, qdq, int4, fp16, or all; repeatable.",
        metavar="NAME",
    ),
    exclude: list[str] | None = option(
        None,
        "Keep a part in full precision: its name, embedding, projection, or layer:N; repeatable.",
        metavar="PART",
    ),
    calibration: str | None = option(
        None, "Texts to calibrate int8 and qdq on; embedded ones by default.", metavar="FILE"
    ),
    measured: bool = option(
        True, "Measure size, speed and loss of each.", "--measure/--no-measure"
    ),
    texts: TextChoice,
    target: HubTarget,
    force: bool = FORCE,
    choice: Annotated[ModelChoice, ("runtime", "onnx_file", "tokenizer", "threads")],
    as_json: bool = JSON,
) -> None:
    """Make quantized variants of a model in full precision, and measure them.

    Measures the first 200 texts unless --samples is given.
    """
    choice = replace(choice, reference=reference)
    make_variants.check_order(choice, output, scheme or (), force=force)
    for name in {*(scheme or ())} - {"all"}:  # which makes what it can
        find_scheme(name, installed=True)
    source = None
    if calibration is not None:
        if not is_file(calibration):
            raise OptionError(
                f"no file {calibration!r}: give one of texts to calibrate on, one a line"
            )
        source = replace(texts, dataset=calibration, samples=None, shuffle=False).source()
    examples: list[Example] = []
    if measured:
        limited = replace(texts, samples=texts.samples or MEASURED)
        with open_texts(limited.source(), warn=warn) as opened:
            examples = list(opened)
    base = load(choice)
    steps = make_variants.quantize(
        choice,
        output,
        scheme or (),
        exclude=exclude or (),
        calibration=source,
        force=force,
        load=lambda requested: base if requested == choice else load(requested),
    )
    measured_steps = _measure_each(steps, MeasuredModel("", base, reference), examples)
    variants: list[Variant] = []
    rows: list[VariantFigures] = []  # the model's own first; empty if nothing is measured
    try:
        with _report_interruption(variants, output):
            for result in results(measured_steps, (Variant, VariantFigures)):
                if isinstance(result, Variant):
                    variants.append(result)
                elif isinstance(result, VariantFigures):
                    rows.append(result)
    finally:
        _report(variants, rows, as_json=as_json)
    if address := target.push(output):
        tell(f"pushed to {address}")


def _measure_each(
    steps: Generator[Progress | Variant], base: MeasuredModel, texts: Sequence[Example]
) -> Generator[Progress | Variant | VariantFigures]:
    """Yield variants as they are made and, where there are texts, the figures of each."""
    baseline_measured = False
    with closing(steps):
        for step in steps:
            yield step
            if isinstance(step, Progress) or not texts:
                continue
            if not baseline_measured:
                yield from measure_variants.measure_variant(base, None, texts)
                baseline_measured = True
            variant = MeasuredModel(step.scheme, load(ModelChoice(step.reference)), step.reference)
            for row in measure_variants.measure_variant(base, variant, texts):
                if isinstance(row, VariantFigures):
                    note_figures(step.path, row.to_dict())
                yield row


def _report(variants: list[Variant], rows: list[VariantFigures], *, as_json: bool) -> None:
    if as_json:
        figures = {row.reference: row.to_dict() for row in rows}
        if rows:
            print_json(rows[0].to_dict())
        for variant in variants:
            print_json(variant.to_dict() | figures.get(variant.reference, {}))
        return
    if rows:
        print_table(_figures_table(rows))
        print_line(_speed_note(rows[0]))
    for variant in variants:
        print_line(f"{variant.path}: {variant.size_bytes / 1e6:,.1f} MB")
    alarms = [alarm for variant in variants for alarm in variant.alarms]
    alarms += [alarm for row in rows for alarm in row.alarms]
    for alarm in dict.fromkeys(alarms):
        print_line(f"Note: {alarm}")
    if busy := [row.scheme for row in rows if row.busy]:
        print_line(f"Note: {busy_text(busy)}")


def _speed_note(row: VariantFigures) -> str:
    """The speed of the model, to which those of variants are relative."""
    speed = f"{1 / row.token_times.baseline_seconds:,.0f} tokens/s"
    note = f"Speeds are relative to the model, timed in turns. The model evaluates {speed}"
    if row.sentence_times:
        note += f" and fills one sentence in {1000 * row.sentence_times.baseline_seconds:,.1f} ms"
    return f"{note}."


def _times_text(times: PairedTimes) -> str:
    """A speedup with its interval, which ratios of a model to itself have none of.

    >>> from fillmask_ui.intervals import Interval
    >>> _times_text(PairedTimes(1.42, Interval(1.3, 1.551, "sign-test"), 0.1, 0.1))
    '1.42 (1.30 to 1.55)'
    """
    text = f"{times.speedup:.2f}"
    if times.interval is None or times.interval.low == times.interval.high:
        return text
    return f"{text} ({interval_text(times.interval, '{:.2f}'.format)})"


def _figures_table(rows: Iterable[VariantFigures]) -> Table:
    columns: dict[str, str | Column] = {
        "scheme": "scheme",
        "size_bytes": Column("MB", lambda size: f"{size / 1e6:,.1f}"),
        "ratio": Column("ratio", ".2f"),
        "token_times": Column("speed", _times_text),
        "sentence_times": Column("one sentence", _times_text),
        "mean_nll_nats": Column("CE (nats)", ".4f"),
        "relative_change": Column("change", signed_percent),
        "change_interval": Column(
            "95% interval", partial(interval_text, render=signed_percent), right=False
        ),
        "verdict": "verdict",
        "top1_agreement": Column("same prediction", percent),
        "kl_nats": Column("KL", ".4f"),
    }
    return Table.of(columns.values(), map(attrgetter(*columns), rows))
