"""`fillmask-ui quantize`: variants of a model, made and measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Annotated, Any

from fillmask_ui.cli.export import kept_note
from fillmask_ui.cli.options import (
    Folder,
    Force,
    Json,
    OnnxFile,
    Source,
    Threads,
    Tokenizer,
    option,
    with_options,
)
from fillmask_ui.cli.terminal import load, print_json, print_line, print_table, step_bar, tell
from fillmask_ui.errors import OptionError
from fillmask_ui.models import ModelChoice
from fillmask_ui.quantizing.hub_folder import note_figures
from fillmask_ui.quantizing.make_variants import MEASURED, Variant
from fillmask_ui.quantizing.make_variants import quantize as variants
from fillmask_ui.quantizing.measure_variants import (
    Progress,
    Subject,
    VariantFigures,
    measure_variant,
)
from fillmask_ui.records import Example
from fillmask_ui.show.numbers import interval_text, percent, signed_percent
from fillmask_ui.show.table import Column, Table
from fillmask_ui.texts import TextChoice, open_texts
from fillmask_ui.texts.files import is_file


@with_options
def quantize(
    *,
    reference: Source,
    output: Folder,
    scheme: Annotated[
        list[str] | None,
        option(
            "int8 (default), int8-channel, int8-tensor, qdq, int4, fp16, or all; repeatable.",
            metavar="NAME",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        option(
            "Stays in full precision: a name, embedding, projection, or layer:N; repeatable.",
            metavar="PART",
        ),
    ] = None,
    calibration: Annotated[
        str | None,
        option("Texts that qdq is calibrated on; embedded ones by default.", metavar="FILE"),
    ] = None,
    measured: Annotated[
        bool, option("Measure size, speed and loss of each.", "--measure/--no-measure")
    ] = True,
    texts: TextChoice,
    force: Force = False,
    runtime: Annotated[str, option("auto, onnx or torch.")] = "auto",
    onnx_file: OnnxFile = None,
    tokenizer: Tokenizer = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Make quantized variants of a model in full precision, and measure them.

    The first 200 texts are measured if --samples is not given.
    """
    choice = ModelChoice(
        reference, tokenizer=tokenizer, onnx_file=onnx_file, runtime=runtime, threads=threads
    )
    examples: list[Example] = []
    if measured:
        with open_texts(replace(texts, samples=texts.samples or MEASURED).source()) as found:
            examples = list(found)
    source = None
    if calibration is not None:
        if not is_file(calibration):
            raise OptionError(
                f"no file {calibration!r}: give one of texts to calibrate on, one a line"
            )
        source = replace(texts, dataset=calibration, samples=None, shuffle=False).source()
    base = load(choice)
    bench = _Bench(Subject("", base, reference), examples)
    steps = variants(
        choice,
        output,
        scheme or (),
        exclude=exclude or (),
        calibration=source,
        force=force,
        load=lambda wanted: base if wanted == choice else load(wanted),
    )
    try:
        with closing(steps), step_bar() as bench.show:
            for step in steps:
                if isinstance(step, Progress):
                    bench.show(step)
                else:
                    bench.add(step)
    except KeyboardInterrupt:
        tell(kept_note(bench.made, output))
        raise
    finally:
        bench.report(as_json=as_json)


class _Bench:
    """Variants as they are made, with what was measured of each."""

    def __init__(self, base: Subject, texts: Sequence[Example]) -> None:
        self.base, self.texts = base, texts
        self.made: list[Variant] = []
        self.rows: list[VariantFigures] = []  # the model's own first; empty if nothing is measured
        self.show: Any = None

    def add(self, variant: Variant) -> None:
        self.made.append(variant)
        if not self.texts:
            return
        if not self.rows:
            self._measure(None)
        model = load(ModelChoice(variant.reference))
        row = self._measure(Subject(variant.scheme, model, variant.reference))
        note_figures(variant.path, row.to_dict())

    def _measure(self, subject: Subject | None) -> VariantFigures:
        with closing(measure_variant(self.base, subject, self.texts)) as steps:
            for step in steps:
                if isinstance(step, Progress):
                    self.show(step)
                else:
                    self.rows.append(step)
        return self.rows[-1]

    def report(self, *, as_json: bool) -> None:
        figures = {row.reference: row for row in self.rows}
        told = [own.alarms for own in self.made] + [own.alarms for own in self.rows]
        if as_json:
            for row in self.rows[:1]:
                print_json(row.to_dict())
            for variant in self.made:
                measured = figures.get(variant.reference)
                print_json(variant.to_dict() | (measured.to_dict() if measured else {}))
            return
        if self.rows:
            print_table(_figures_table(self.rows))
        for variant in self.made:
            print_line(f"{variant.path}: {variant.size_bytes / 1e6:,.1f} MB")
        for alarm in dict.fromkeys(alarm for alarms in told for alarm in alarms):
            print_line(f"Note: {alarm}")


def _figures_table(rows: Iterable[VariantFigures]) -> Table:
    columns = (
        *("scheme", Column("MB", ",.1f"), Column("ratio", ".2f"), Column("tokens/s", ",.0f")),
        *(Column("ms a sentence", ".1f"), Column("CE (nats)", ".4f")),
        *(Column("change", signed_percent), "95% interval", "verdict"),
        *(Column("same guess", percent), Column("KL", ".4f")),
    )
    cells = (
        (
            *(row.scheme, row.size_bytes / 1e6, row.ratio, row.tokens_per_second),
            *(row.sentence_ms, row.mean_nll_nats, row.relative_change),
            *(interval_text(row.change_interval, signed_percent), row.verdict),
            *(row.top1_agreement, row.kl_nats),
        )
        for row in rows
    )
    return Table.of(columns, cells)
