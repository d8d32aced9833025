"""`fillmask-ui diagnose` and `check`: what is wrong with a file, inside and wherever it runs."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, cast

import typer

from fillmask_ui.cli.options import (
    FAIL_ON,
    FAILING,
    ONE_JSON,
    argument,
    check_fail_on,
    option,
    with_options,
)
from fillmask_ui.cli.terminal import load, print_json, print_line, print_table, results, tell, warn
from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.features.quantize import diagnosis_tables as tables
from fillmask_ui.features.quantize import file_check, leave_one_out
from fillmask_ui.features.quantize.diagnosis import DiagnoseOptions, Diagnosis
from fillmask_ui.features.quantize.file_check import WEB, Check
from fillmask_ui.features.quantize.graphs import open_pair
from fillmask_ui.features.quantize.onnx_file import OnnxFile
from fillmask_ui.files import check_target
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.models.onnx_devices import devices_here, find_device
from fillmask_ui.texts import TextChoice, open_texts

SAMPLES, CHECKED_SAMPLES = 60, 100  # where --samples is not given


@with_options
def diagnose(
    *,
    reference: str = argument(..., "REF", "The quantized model: an ONNX file or its folder."),
    baseline: str = option(..., "The full-precision model that it was made from.", metavar="REF"),
    choice: Annotated[ModelChoice, ("onnx_file", "tokenizer", "threads", "graph_optimization")],
    texts: TextChoice,
    config: EvaluationConfig,
    budget: str = option(
        "0.5%", "Loss budget: the relative change that may remain, as 0.5% or 0.005.", metavar="X"
    ),
    options: DiagnoseOptions,
    apply: Path | None = option(
        None, "Write the model with the listed parts in full precision.", metavar="FILE.onnx"
    ),
    as_json: bool = ONE_JSON,
) -> None:
    """Find the parts of a quantized model that cost its loss.

    Measures the first 60 texts unless --samples is given. Each measured part takes as long as one
    evaluation of them.
    """
    choice = replace(choice, reference=reference)
    baseline_choice = replace(choice, reference=baseline, onnx_file=None)
    if not baseline.endswith(".onnx"):
        baseline_choice = replace(baseline_choice, tokenizer=None)
    options = replace(options, budget=_parse_share(budget))
    if apply is not None:
        if not options.most:
            raise OptionError("--apply needs measured parts: --most must not be 0")
        if apply.exists():
            raise OptionError(f"{apply} exists: name another file")
        # Missing folders are made inside the nearest one that exists.
        existing = next(folder for folder in apply.absolute().parents if folder.exists())
        check_target(existing / apply.name)
    source = replace(texts, samples=texts.samples or SAMPLES).source()
    with open_texts(replace(source, pairs=config.metric.columns), warn=warn) as opened:
        examples = list(opened)
    diagnosis: Diagnosis | None = None
    steps = leave_one_out.diagnose(choice, baseline_choice, examples, config, options, load=load)
    with suppress(KeyboardInterrupt):  # the part measured so far is printed
        for step in results(steps, Diagnosis):
            diagnosis = step
    if diagnosis is None:
        raise KeyboardInterrupt
    if as_json:
        print_json(diagnosis.to_dict())
    else:
        _print(diagnosis)
    if not diagnosis.complete:
        tell("interrupted: these are the results so far")
        raise typer.Exit(130)
    if apply is not None:
        _write(diagnosis, choice, baseline_choice, apply)


def _parse_share(text: str) -> float:
    """A relative change, as `0.5%` or `0.005`."""
    number, percent, remainder = text.strip().partition("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value, remainder = 0.0, text
    if remainder:
        raise OptionError(f"the budget must be a share, as 0.5% or 0.005; it was {text!r}")
    return value


def _print(diagnosis: Diagnosis) -> None:
    print_line(f"Reference: {diagnosis.baseline}, candidate: {diagnosis.reference}", "bold")
    print_line(tables.loss_sentence(diagnosis))
    print_line(tables.worst_sentence(diagnosis), "bold")
    for build_table in (
        tables.worst_parts,
        tables.layers,
        tables.restored_parts,
        tables.greedy_parts,
    ):
        table = build_table(diagnosis)
        if table.rows:
            print_table(table)
    if diagnosis.greedy is not None:
        print_line(tables.greedy_sentence(diagnosis))
    for line in tables.remarks(diagnosis):
        print_line(line)
    print_line(tables.stamp_line(diagnosis.stamp, diagnosis.measured))


def _write(diagnosis: Diagnosis, choice: ModelChoice, baseline: ModelChoice, path: Path) -> None:
    """The variant with the listed parts in full precision."""
    names = diagnosis.greedy.names if diagnosis.greedy else ()
    if not names:
        tell(f"{path} was not written: no measured part lowers the loss")
        raise typer.Exit(1)
    open_pair(choice, baseline, load).write_restored(names, path)
    tell(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")


@with_options
def check(
    *,
    reference: str = argument(..., "FILE", "The ONNX file, or a model that has one."),
    baseline: str | None = option(
        None,
        "The model to compare with; by default the file on the CPU at the level extended.",
        metavar="REF",
    ),
    choice: Annotated[ModelChoice, ("onnx_file", "tokenizer", "threads", "x64_quant_precision")],
    device: list[str] | None = option(
        None, "Run only on this device, or on WebAssembly; repeatable."
    ),
    onnxruntime_web: Path | None = option(
        None, "Folder where npm installed onnxruntime-web; NODE_PATH by default.", metavar="DIR"
    ),
    texts: TextChoice,
    fail_on: str | None = FAIL_ON,
    as_json: bool = ONE_JSON,
) -> None:
    """Run an ONNX file on all devices and levels of this machine, and compare the logits.

    Measures 100 texts unless --samples is given.
    """
    check_fail_on(fail_on, reference, "--baseline")
    web = device is None or any(name.lower() == WEB.lower() for name in device)
    names = [name for name in device or devices_here() if name.lower() != WEB.lower()]
    devices = [find_device(name) for name in names]
    samples = CHECKED_SAMPLES if texts.samples is None else texts.samples
    with open_texts(replace(texts, samples=samples).source(), warn=warn) as opened:
        examples = list(opened)
    file = cast("OnnxFile", load(replace(choice, reference=reference), OnnxFile))
    baseline_model = None if baseline is None else load(choice.second(baseline))
    steps = file_check.check(
        file, examples, baseline_model, devices=devices, web=web, web_folder=onnxruntime_web
    )
    (result,) = results(steps, Check)
    if as_json:
        print_json({"conclusion": tables.check_sentence(result), **result.to_dict()})
    else:
        print_line(tables.check_sentence(result), "bold")
        print_table(tables.setups(result))
        for line in tables.check_remarks(result):
            print_line(line)
    if fail_on is not None and result.verdict in FAILING[fail_on]:
        tell(f"the verdict is {result.verdict} (--fail-on {fail_on})")
        raise typer.Exit(3)
