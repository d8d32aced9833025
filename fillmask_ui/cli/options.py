"""Options of the shell: derived from configurations, and those that several commands share."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, get_args, get_origin

import typer

from fillmask_ui.errors import OptionError, unknown
from fillmask_ui.files import check_target
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.options import Option, all_options, configured, options_of


def option(default: Any, help: str, *flags: str, **settings: Any) -> Any:
    """An option outside of configurations, as the default of a parameter; `...` is required."""
    return typer.Option(default, *flags, help=help, **settings)


def argument(default: Any, metavar: str | None, help: str) -> Any:
    """As `option`, for a positional argument."""
    return typer.Argument(default, metavar=metavar, help=help)


def file_option(default: Any, help: str, *flags: str, metavar: str = "FILE") -> Any:
    """An `option` that names a file to write; `with_options` checks it before anything is done."""
    return option(default, help, *flags, metavar=metavar, parser=_file)


def _file(path: str | Path) -> Path:
    text = str(path)  # a default is parsed, too
    if not text or text == "-" or text.endswith(("/", os.sep)):
        raise OptionError(f"{text!r} does not name a file to write: name one, such as ./out")
    return Path(text)


def typer_option(declared: Option) -> Any:
    """An `Option` for typer; `--no-...` turns off a switch that is on by default."""
    default = ... if declared.default is MISSING else declared.default
    flags = list(declared.flags)
    if not flags[0].startswith("-"):
        return argument(default, flags[0], declared.help)
    if default is True:
        flags = [f"{flag}/--no-{flag.removeprefix('--')}" for flag in flags]
    return option(
        default,
        declared.help,
        *flags,
        metavar=declared.metavar,
        rich_help_panel=declared.panel or None,
        **completed(declared.choices),
    )


def completed(choices: Collection[str]) -> dict[str, Any]:
    """The setting of an `option` whose values the shell completes; what fits, the command says."""
    return {"autocompletion": lambda: [*choices]} if choices else {}


# What several commands have beside configurations.
MASKED_TEXTS = argument(None, "TEXT", "Sentences with [MASK], <mask> or ___; - for standard input.")
TEXT_FILE = option(
    None, "Read texts from a file, one per line; - for standard input.", metavar="F|-"
)
IN_BITS = option(False, "Show losses, entropies and divergences in bits.", "--bits")
JSON = option(False, "Print JSON, one object per line.", "--json")
ALL_FIGURES = option(False, "Print all figures, groups of tokens and the signature.", "--all")
ONE_JSON = option(False, "Print one JSON object.", "--json")
SOURCE = argument(..., "REF", "The model, as in --model of other commands.")
FOLDER = option(..., "Folder to write.", "--output", "-o", metavar="DIR")
FORCE = option(False, "Overwrite files of the same name; write into a non-empty folder.", "--force")
PICKED_MODEL = typer_option(options_of(ModelChoice)["reference"])
HOST = option(
    None, "Address to listen on: 127.0.0.1 by default, 0.0.0.0 for all addresses of this machine."
)
PORT = option(None, "Port; by default the first free one from 7860.", min=1, max=65535)
PUBLIC = option(False, "Apply the limits for public use (SECURITY.md).", "--public")
BASELINE = option(
    None, "The reference to compare --model with.", metavar="REF", rich_help_panel="Model"
)
# The verdicts that --fail-on turns into exit code 3.
FAILING = {
    "regression": ("REGRESSION", "NEAR_CHANCE"),
    "at-risk": ("AT_RISK", "REGRESSION", "NEAR_CHANCE"),
    "inconclusive": ("INCONCLUSIVE", "AT_RISK", "REGRESSION", "NEAR_CHANCE"),
}
FAIL_ON = option(
    None,
    "Exit with code 3 on this verdict or a worse one: regression, at-risk, inconclusive.",
    metavar="VERDICT",
    rich_help_panel="Model",
    **completed(FAILING),
)


def check_fail_on(fail_on: str | None, baseline: object, where: str) -> None:
    """An `OptionError` for an unknown verdict, or for none without a baseline, given in `where`."""
    if fail_on is not None and fail_on not in FAILING:
        raise OptionError(unknown("verdict to fail on", fail_on, FAILING))
    if fail_on is not None and baseline is None:
        raise OptionError(
            f"--fail-on needs a verdict on two models: name the reference with {where}"
        )


def compared(model: ModelChoice, baseline: str | None) -> list[ModelChoice]:
    """The model alone, or the reference, which `BASELINE` names, and the model as candidate."""
    return [model] if baseline is None else [model.second(baseline), model]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose configurations are given field by field on the command line.

    A parameter annotated with a dataclass that carries options (`fillmask_ui.options`) becomes an
    option per field, nested dataclasses included; the command is called with the instance.
    `Annotated[ModelChoice, ("threads",)]` has the option of this field alone.

    >>> from fillmask_ui.models.model_choice import ModelChoice
    >>> def show(model: ModelChoice, bits: bool = False) -> None:
    ...     print(model.reference, model.threads, bits)
    >>> shell = with_options(show)
    >>> list(signature(shell).parameters)[-2:]
    ['x64_quant_precision', 'bits']
    >>> shell(reference="embedded:int8", threads=2)
    embedded:int8 2 False
    """
    parameters: list[Parameter] = []
    configurations: dict[str, Any] = {}
    written: list[str] = []
    # Not `get_type_hints`, which hides the options behind Optional on Python 3.10.
    for name, parameter in signature(command, eval_str=True).parameters.items():
        kind, *only = get_args(parameter.annotation) or (parameter.annotation,)
        derived = [field for field in _derived(kind) if not only or field.name in only[0]]
        if derived:
            configurations[name] = kind, [field.name for field in derived]
            parameters += derived
        else:  # only by name, as an option without a default may stand behind one with it
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
            if getattr(parameter.default, "parser", None) is _file:
                written.append(name)

    @wraps(command)
    def call(**values: Any) -> None:
        _check_written(written, values)
        built = {}
        for name, (kind, fields) in configurations.items():
            options = {field: values.pop(field) for field in fields if field in values}
            built[name] = configured(kind, options)
        command(**built, **values)

    # What typer reads, instead of the command's own.
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _check_written(written: Collection[str], values: Mapping[str, Any]) -> None:
    """Refuse to write to a file that is named elsewhere on the command line."""
    for name in written:
        read = []
        for other_name, value in values.items():
            texts = value if isinstance(value, list) else [value]
            if other_name != name:
                read += [Path(text) for text in texts if isinstance(text, str | Path) and str(text)]
        check_target(values[name], *read, folder=values.get("dataset"))


def _derived(kind: Any) -> Iterator[Parameter]:
    """A parameter of typer per option of a configuration; nothing for any other type."""
    for declared in all_options(kind):
        annotation = str if declared.choices else declared.kind
        if get_origin(annotation) is tuple:  # an option that is given several times
            annotation = list[str]
        if declared.default is None:
            annotation = annotation | None
        default = typer_option(declared)
        yield Parameter(
            declared.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )


def typed_flags(context: typer.Context, *, ignored: Collection[str] = ()) -> list[str]:
    """The flags on the command line, such as `--model`, without those of `ignored` parameters."""
    return [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in ignored
        and getattr(context.get_parameter_source(parameter.name), "name", "") == "COMMANDLINE"
    ]
