"""`fillmask-ui export` and `quantize`: variants of a model, made and measured."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from fillmask_ui.cli.options import FOLDER, FORCE, JSON, SOURCE, option, with_options
from fillmask_ui.cli.terminal import load, print_json, print_line, print_table, results, tell, warn
from fillmask_ui.errors import OptionError
from fillmask_ui.features.quantize import make_variants, measure_variants
from fillmask_ui.features.quantize.make_variants import MEASURED, Variant
from fillmask_ui.features.quantize.measure_variants import Subject, VariantFigures, busy_text
from fillmask_ui.features.quantize.timing import PairedTimes
from fillmask_ui.models import ModelChoice
from fillmask_ui.publishing.hub_folder import note_figures
from fillmask_ui.publishing.hub_push import HubTarget
from fillmask_ui.records import Example, Progress
from fillmask_ui.show.numbers import interval_text, percent, signed_percent
from fillmask_ui.show.table import Column, Table
from fillmask_ui.texts import TextChoice, open_texts
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

    The folder loads by its name; further variants of `fillmask-ui quantize` go beside it.
    """
    steps = make_variants.export(
        replace(choice, reference=reference), output, force=force, load=load
    )
    made: list[Variant] = []
    with _keeping(made, output):
        made.extend(results(steps, Variant))
    for variant in made:
        if as_json:
            print_json(variant.to_dict())
        else:
            print_line(
                f"{variant.path}: {variant.size_bytes / 1e6:,.1f} MB, logits within "
                f"{variant.parity:.1e} of PyTorch's"
            )


@contextmanager
def _keeping(made: list[Variant], output: object) -> Iterator[None]:
    """Tell what an interruption inside leaves."""
    try:
        yield
    except KeyboardInterrupt:
        names = ", ".join(variant.path.name for variant in made) or "nothing"
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
        None, "Texts that qdq is calibrated on; embedded ones by default.", metavar="FILE"
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

    The first 200 texts are measured if --samples is not given.
    """
    choice = replace(choice, reference=reference)
    make_variants.check_order(choice, output, scheme or (), force=force)
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
        with open_texts(limited.source(), warn=warn) as found:
            examples = list(found)
    base = load(choice)
    steps = make_variants.quantize(
        choice,
        output,
        scheme or (),
        exclude=exclude or (),
        calibration=source,
        force=force,
        load=lambda wanted: base if wanted == choice else load(wanted),
    )
    measured_steps = _measured(steps, Subject("", base, reference), examples)
    made: list[Variant] = []
    rows: list[VariantFigures] = []  # the model's own first; empty if nothing is measured
    try:
        with _keeping(made, output):
            for result in results(measured_steps, (Variant, VariantFigures)):
                if isinstance(result, Variant):
                    made.append(result)
                elif isinstance(result, VariantFigures):
                    rows.append(result)
    finally:
        _report(made, rows, as_json=as_json)
    if address := target.push(output):
        tell(f"pushed to {address}")


def _measured(
    steps: Generator[Progress | Variant], base: Subject, texts: Sequence[Example]
) -> Generator[Progress | Variant | VariantFigures]:
    """Variants as they are made and, where there are texts, what was measured of each."""
    alone = True
    with closing(steps):
        for step in steps:
            yield step
            if isinstance(step, Progress) or not texts:
                continue
            if alone:
                yield from measure_variants.measure_variant(base, None, texts)
                alone = False
            own = Subject(step.scheme, load(ModelChoice(step.reference)), step.reference)
            for row in measure_variants.measure_variant(base, own, texts):
                if isinstance(row, VariantFigures):
                    note_figures(step.path, row.to_dict())
                yield row


def _report(made: list[Variant], rows: list[VariantFigures], *, as_json: bool) -> None:
    if as_json:
        figures = {row.reference: row.to_dict() for row in rows}
        for row in rows[:1]:
            print_json(row.to_dict())
        for variant in made:
            print_json(variant.to_dict() | figures.get(variant.reference, {}))
        return
    if rows:
        print_table(_figures_table(rows))
        print_line(_speed_note(rows[0]))
    for variant in made:
        print_line(f"{variant.path}: {variant.size_bytes / 1e6:,.1f} MB")
    told = [own.alarms for own in made] + [own.alarms for own in rows]
    for alarm in dict.fromkeys(alarm for alarms in told for alarm in alarms):
        print_line(f"Note: {alarm}")
    if busy := [row.scheme for row in rows if row.busy]:
        print_line(f"Note: {busy_text(busy)}")


def _speed_note(row: VariantFigures) -> str:
    """What the speeds of variants are times of."""
    note = f"Speeds are times the model's, in turns: {1 / row.token_times.baseline_seconds:,.0f} "
    note += "tokens/s over an evaluation"
    if row.sentence_times:
        note += f", {1000 * row.sentence_times.baseline_seconds:,.1f} ms for one sentence"
    return f"{note}."


def _times_text(times: PairedTimes | None) -> str:
    """A speedup with its interval, which ratios of a model to itself have none of.

    >>> from fillmask_ui.intervals import Interval
    >>> _times_text(PairedTimes(1.42, Interval(1.3, 1.551, "sign-test"), 0.1, 0.1))
    '1.42 (1.30 to 1.55)'
    """
    if times is None:
        return ""
    text = f"{times.speedup:.2f}"
    if times.interval is None or times.interval.low == times.interval.high:
        return text
    return f"{text} ({interval_text(times.interval, '{:.2f}'.format)})"


def _figures_table(rows: Iterable[VariantFigures]) -> Table:
    columns = (
        *("scheme", Column("MB", ",.1f"), Column("ratio", ".2f")),
        *("speed", "one sentence", Column("CE (nats)", ".4f")),
        *(Column("change", signed_percent), "95% interval", "verdict"),
        *(Column("same guess", percent), Column("KL", ".4f")),
    )
    cells = (
        (
            *(row.scheme, row.size_bytes / 1e6, row.ratio),
            *(_times_text(row.token_times), _times_text(row.sentence_times)),
            *(row.mean_nll_nats, row.relative_change),
            *(interval_text(row.change_interval, signed_percent), row.verdict),
            *(row.top1_agreement, row.kl_nats),
        )
        for row in rows
    )
    return Table.of(columns, cells)
