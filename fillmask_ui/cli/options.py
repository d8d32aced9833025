"""Options of the shell, derived from the configurations; those that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer

from fillmask_ui.options import Option, options_of

Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose configurations are given field by field on the command line.

    Each parameter annotated with a dataclass that carries options (`fillmask_ui.options`) becomes
    one option of the shell per field, in the order of the fields, those of dataclasses within it
    included; the command is called with the instance made of them. Bounds stand in `--help`;
    what else is wrong with the values, the dataclass says.

    Args:
        command: function of configurations and of parameters that typer knows. The default of a
            configuration holds the defaults of its options; without one they are the fields' own.

    Returns:
        What `typer.Typer.command` takes.

    >>> from fillmask_ui.models.choice import ModelChoice
    >>> def show(model: ModelChoice, bits: bool = False) -> None:
    ...     print(model.reference, model.threads, bits)
    >>> shell = with_options(show)
    >>> [str(parameter.name) for parameter in signature(shell).parameters.values()][-2:]
    ['threads', 'bits']
    >>> shell(reference="embedded:int8", threads=2)
    embedded:int8 2 False
    """
    annotations = get_type_hints(command, include_extras=True)
    own = signature(command).parameters
    configurations = {name: annotations[name] for name in own if _has_options(annotations[name])}
    parameters: list[Parameter] = []
    for name, parameter in own.items():
        if name in configurations:
            parameters += _parameters(configurations[name], parameter.default)
        else:
            annotated = parameter.replace(annotation=annotations[name])
            parameters.append(annotated.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def call(**values: Any) -> None:
        made = {name: _made(kind, values) for name, kind in configurations.items()}
        command(**values, **made)

    # What typer reads, instead of the command's own.
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def typer_option(own: Option, *, on: bool = False) -> Any:
    """One option of a configuration as typer knows it.

    Args:
        own: with its flags, from `options_of`.
        on: whether it is a switch that is on by default, which `--no-...` turns off.
    """
    flags = own.flags
    if on:
        flags = tuple(f"{flag}/--no-{flag.removeprefix('--')}" for flag in flags)
    return typer.Option(*flags, help=own.help, metavar=own.metavar, min=own.least, max=own.most)


def _has_options(kind: Any) -> bool:
    return is_dataclass(kind) and (
        bool(options_of(kind)) or any(map(_has_options, get_type_hints(kind).values()))
    )


def _parameters(configuration: type, defaults: Any) -> Iterator[Parameter]:
    """An option of typer per field that carries one."""
    options, kinds = options_of(configuration), get_type_hints(configuration)
    for entry in fields(configuration):
        default = getattr(defaults, entry.name, entry.default)
        if entry.name in options:
            yield Parameter(
                entry.name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if default is MISSING else default,
                annotation=Annotated[
                    kinds[entry.name], typer_option(options[entry.name], on=default is True)
                ],
            )
        elif _has_options(kinds[entry.name]):
            yield from _parameters(kinds[entry.name], default)


def _made(configuration: type, values: dict[str, Any]) -> Any:
    """An instance of what was typed; its values are taken out of `values`."""
    options, kinds = options_of(configuration), get_type_hints(configuration)
    chosen = {name: values.pop(name) for name in options if name in values}
    for entry in fields(configuration):
        if entry.name not in options and _has_options(kinds[entry.name]):
            chosen[entry.name] = _made(kinds[entry.name], values)
    return configuration(**chosen)


def given_options(context: typer.Context, *, beside: Collection[str] = ()) -> list[str]:
    """Names of the options that were written on the command line, as `--model`.

    Args:
        context: of the command.
        beside: parameters that do not count.
    """
    return [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in beside
        and context.get_parameter_source(parameter.name).name == "COMMANDLINE"
    ]
