"""`fillmask-ui eval`: the loss of a model over texts, alone or against a baseline."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fillmask_ui.cli.eval_work import Plan, go_on, start_new
from fillmask_ui.cli.options import (
    Device,
    Dtype,
    Model,
    ModelChoice,
    OnnxFile,
    Provider,
    Runtime,
    Threads,
    Tokenizer,
    given_options,
)
from fillmask_ui.errors import DataError, OptionError, unknown

if TYPE_CHECKING:
    from fillmask_ui.masking import MaskRecipe

# Which verdicts `--fail-on` turns into exit code 3.
FAILING = {
    "regression": ("REGRESSION",),
    "at-risk": ("AT_RISK", "REGRESSION"),
    "inconclusive": ("INCONCLUSIVE", "AT_RISK", "REGRESSION"),
}
FAILED_VERDICT = 3

# Options that a resumed run takes beside its own choices.
_BESIDE_RESUME = {"resume", "output", "as_json", "fail_on"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("eval")(evaluate)


def evaluate(
    context: typer.Context,
    model: Model = "embedded",
    tokenizer: Tokenizer = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="REF", help="A second model: paired difference and verdict."),
    ] = None,
    task: Annotated[str, typer.Option(help="Always fill-mask.")] = "fill-mask",
    dataset: Annotated[
        str,
        typer.Option(
            metavar="TEXTS",
            help="embedded, a .txt, .csv, .tsv, .jsonl or .parquet file (also .gz), - for standard "
            "input, or a Hugging Face data set.",
        ),
    ] = "embedded",
    dataset_name: Annotated[
        str | None, typer.Option(metavar="CONFIG", help="Configuration of a data set.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Split of a data set; test by default.")] = None,
    revision: Annotated[str | None, typer.Option(help="Revision of a data set.")] = None,
    streaming: Annotated[
        bool, typer.Option("--streaming", help="Read a data set while it is used.")
    ] = False,
    column: Annotated[
        str | None,
        typer.Option(metavar="input_column=NAME", help="The column that holds the text."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Plain text by line or by paragraph (blank lines).")
    ] = None,
    text_format: Annotated[
        str | None, typer.Option("--format", help="txt, csv, tsv, jsonl, parquet.")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Of text files; utf-8 by default.")] = None,
    samples: Annotated[
        int | None, typer.Option(metavar="N", help="The first N texts; all by default.")
    ] = None,
    shuffle: Annotated[
        bool, typer.Option(help="Texts in the order of a permutation with seed 42.")
    ] = True,
    metric: Annotated[
        str, typer.Option(help="cross-entropy, pseudo-perplexity, uniform or suffix.")
    ] = "cross-entropy",
    mask_probability: Annotated[
        float | None, typer.Option(metavar="P", help="Share of tokens chosen; 0.15.")
    ] = None,
    mask_share: Annotated[
        float | None, typer.Option(metavar="S", help="Of these, shown as the mask token; 0.8.")
    ] = None,
    random_share: Annotated[
        float | None, typer.Option(metavar="S", help="Of these, shown as a random token; 0.1.")
    ] = None,
    unchanged_share: Annotated[
        float | None, typer.Option(metavar="S", help="Of these, shown unchanged; 0.1.")
    ] = None,
    whole_word: Annotated[
        bool, typer.Option("--whole-word", help="Choose words, shown as mask tokens.")
    ] = False,
    within_word: Annotated[
        bool,
        typer.Option("--within-word", help="Pseudo-perplexity: hide the rest of the word too."),
    ] = False,
    suffix_tokens: Annotated[
        int, typer.Option(metavar="N", help="Suffix: how many tokens at the end are hidden.")
    ] = 8,
    mask_stream: Annotated[
        str,
        typer.Option(
            help="text: masks depend on the text's position alone; collator: as the published "
            "evaluator, one generator through all texts."
        ),
    ] = "text",
    seed: Annotated[int, typer.Option(help="Of the masks.")] = 42,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Cut longer texts; the model's limit.")
    ] = None,
    batch_tokens: Annotated[
        int, typer.Option(metavar="N", help="Tokens of a padded batch: speed and memory.")
    ] = 1024,
    pass_below: Annotated[
        float, typer.Option(metavar="X", help="Relative change that is still PASS.")
    ] = 0.05,
    risk_below: Annotated[
        float, typer.Option(metavar="X", help="Relative change that is still AT_RISK.")
    ] = 0.10,
    fail_on: Annotated[
        str | None,
        typer.Option(help="Exit with code 3 on this verdict: regression, at-risk, inconclusive."),
    ] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="RUN", help="Go on with a stopped run.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the JSON there.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    onnx_file: OnnxFile = None,
    runtime: Runtime = "auto",
    provider: Provider = None,
    device: Device = None,
    dtype: Dtype = None,
    threads: Threads = None,
) -> None:
    """Measure the loss of a model over texts: cross-entropy, pseudo-perplexity, and more."""
    if task != "fill-mask":
        raise OptionError(unknown("task", task, ["fill-mask"]))
    if fail_on is not None and fail_on not in FAILING:
        raise OptionError(unknown("verdict to fail on", fail_on, FAILING))
    if fail_on is not None and baseline is None and resume is None:
        raise OptionError("--fail-on needs a --baseline: without one there is no verdict")
    if output is not None and not output.parent.is_dir():
        raise OptionError(
            f"no folder {str(output.parent)!r} to write {output.name!r} into: make it"
        )
    if resume is not None:
        _refuse_other_options(context)
        outcome = go_on(resume, quiet=as_json, judged=fail_on is not None)
    else:
        from fillmask_ui.evaluation import EvaluationConfig
        from fillmask_ui.intervals import Limits
        from fillmask_ui.texts import TextChoice

        plan = Plan(
            ModelChoice(model, tokenizer, onnx_file, runtime, provider, device, dtype, threads),
            None
            if baseline is None
            else _baseline_choice(baseline, tokenizer, provider, device, threads),
            EvaluationConfig(
                metric=metric,
                recipe=recipe(
                    mask_probability, mask_share, random_share, unchanged_share, whole_word
                ),
                within_word=within_word,
                suffix_tokens=suffix_tokens,
                seed=seed,
                mask_stream=mask_stream,
                max_tokens=max_tokens,
                batch_tokens=batch_tokens,
            ),
            TextChoice(
                dataset,
                dataset_name=dataset_name,
                split=split,
                revision=revision,
                streaming=streaming,
                column=column,
                by=by,
                format=text_format,
                encoding=encoding,
                samples=samples,
                shuffle=shuffle,
            ).source(),
            Limits(pass_below, risk_below),
        )
        outcome = start_new(plan, quiet=as_json)
    values = outcome.to_dict()
    text = json.dumps(values, ensure_ascii=False)
    if output is not None:
        try:
            # As on standard output: the name of a text file may hold bytes that are not UTF-8.
            output.write_text(text + "\n", "utf-8", errors="backslashreplace")
        except OSError as error:
            raise DataError(
                f"{output} cannot be written ({error.strerror}); the run is kept as {outcome.name}"
            ) from error
    if as_json:
        typer.echo(text)
    if fail_on is not None and values.get("verdict") in FAILING[fail_on]:
        sys.stderr.write(f"the verdict is {values['verdict']} (--fail-on {fail_on})\n")
        raise typer.Exit(FAILED_VERDICT)


def recipe(
    probability: float | None,
    mask: float | None,
    random: float | None,
    unchanged: float | None,
    whole_word: bool,
) -> MaskRecipe:
    """The mask recipe that the options mean; what is left out keeps its default.

    Raises:
        OptionError: for values outside their range or shares that do not add up.
    """
    from fillmask_ui.masking import DEFAULT_SHARES, MaskRecipe

    chance = 0.15 if probability is None else probability
    given = (mask, random, unchanged)
    if whole_word and given == (None, None, None):
        return MaskRecipe(chance, whole_word=True)
    shares = [
        default if share is None else share
        for share, default in zip(given, DEFAULT_SHARES, strict=True)
    ]
    return MaskRecipe(chance, *shares, whole_word=whole_word)


def _baseline_choice(
    reference: str,
    tokenizer: str | None,
    provider: str | None,
    device: str | None,
    threads: int | None,
) -> ModelChoice:
    """How the second model is loaded: its own runtime and precision, our device and threads."""
    if reference.endswith(".onnx"):
        return ModelChoice(reference, tokenizer, provider=provider, device=device, threads=threads)
    return ModelChoice(reference, device=device, threads=threads)


def _refuse_other_options(context: typer.Context) -> None:
    given = given_options(context, beside=_BESIDE_RESUME)
    if given:
        raise OptionError(
            f"a resumed run has its own choices: leave out {', '.join(given)}, or start a new run"
        )
