"""Options declared once: the field of a configuration carries its label, help and bounds.

The command line's options and the page's controls are derived from these fields, and each
configuration checks itself against them.

>>> @dataclass(frozen=True)
... class Cut:
...     max_tokens: int | None = option(None, "Cut longer texts.", least=3)
...     def __post_init__(self):
...         check_options(self)
>>> options_of(Cut)["max_tokens"].label
'Max tokens'
>>> Cut(max_tokens=1)
Traceback (most recent call last):
fillmask_ui.options.OptionValueError: max tokens must be at least 3; it was 1
"""

import math
from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from numbers import Integral, Real
from types import NoneType
from typing import Any, get_args, get_type_hints

from fillmask_ui.errors import OptionError, unknown


@dataclass(frozen=True)
class Option:
    """What a face needs to offer one field of a configuration."""

    help: str  # one sentence for `--help` and for the hint below a control
    label: str = ""  # on the page; by default the field's name in words
    flags: tuple[str, ...] = ()  # on the command line; by default `--name-of-the-field`
    metavar: str | None = None  # what stands for the value in `--help`
    choices: tuple[str, ...] = ()  # the values that are known; any if empty
    least: float | None = None  # smallest value
    most: float | None = None  # largest value
    panel: str = ""  # of `--help`; by default the `option_panel` of its class
    # Of the field, filled in by `options_of`.
    name: str = ""
    kind: Any = None  # its type, of `int | None` too that is `int`
    default: Any = None  # `dataclasses.MISSING` if it has none


class OptionValueError(OptionError):
    """A value that an option does not take. The message names its field, `for_shell` its flag."""

    def __init__(self, message: str, for_shell: str = "") -> None:
        super().__init__(message)
        self.for_shell = for_shell or message


def option(default: Any, description: str, **details: Any) -> Any:
    """A dataclass field that carries an `Option`: `description` is its help, `details` the rest."""
    return field(default=default, metadata={"option": Option(description, **details)})


def options_of(configuration: Any) -> dict[str, Option]:
    """The options of a dataclass, or of an instance of one, by the names of their fields."""
    owner = configuration if isinstance(configuration, type) else type(configuration)
    hints = get_type_hints(owner)
    options = {}
    for column in fields(owner):
        if declared := column.metadata.get("option"):
            options[column.name] = replace(
                declared,
                label=declared.label or column.name.replace("_", " ").capitalize(),
                panel=declared.panel or getattr(owner, "option_panel", ""),
                flags=declared.flags or (f"--{column.name.replace('_', '-')}",),
                name=column.name,
                kind=_without_none(hints[column.name]),
                default=column.default,
            )
    return options


def _without_none(hint: Any) -> Any:
    return get_args(hint)[0] if NoneType in get_args(hint) else hint


def all_options(kind: Any) -> Iterator[Option]:
    """All options of a configuration, in order, those of dataclasses within it included."""
    for _, hint, declared in _fields(kind):
        if declared is None:
            yield from all_options(hint)
        else:
            yield declared


def configured(kind: Any, values: dict[str, Any]) -> Any:
    """A configuration of the values of its options, by name, which are taken out of `values`."""
    arguments = {}
    for column, hint, declared in _fields(kind):
        if declared is not None:
            arguments[column.name] = values.pop(column.name, column.default)
        elif any(all_options(hint)):
            arguments[column.name] = configured(hint, values)
    return kind(**arguments)


def _fields(kind: Any) -> Iterator[tuple[Field[Any], Any, Option | None]]:
    """What a configuration takes by name: each field with its type and option, if it has one.

    A class may name the dataclasses whose options it takes (`option_owners`).
    """
    owners = getattr(kind, "option_owners", lambda: (kind,))() if is_dataclass(kind) else ()
    seen = set()
    for owner in owners:
        options, hints = options_of(owner), get_type_hints(owner)
        for column in fields(owner):
            if column.name not in seen:  # a subclass has the options of its parent too
                seen.add(column.name)
                yield column, hints[column.name], options.get(column.name)


# What counts as a value of a type, numbers of numpy included, and what to call it.
_KINDS: dict[type, tuple[Any, str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a finite number"),
    str: (str, "text"),
}
_MOST = 2**63 - 1  # what JSON holds for other programs


def check_options(configuration: Any) -> None:
    """An `OptionError` for a value of another type or out of bounds; None counts as not given."""
    for name, declared in options_of(configuration).items():
        value: Any = getattr(configuration, name)
        if value is None:
            continue
        kind, expected = _KINDS.get(declared.kind, (object, ""))
        fits = isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)
        if isinstance(value, float) and not math.isfinite(value):
            fits = False
        if fits and declared.choices and getattr(value, "name", value) not in declared.choices:
            raise OptionError(unknown(name.replace("_", " "), value, declared.choices))
        most = _MOST if declared.most is None and kind is Integral else declared.most
        if expected and not fits:
            reason = f"be {expected}; it was {repr(value)[:100]}"
        elif declared.least is not None and value < declared.least:
            reason = f"be at least {declared.least:g}; it was {value:g}"
        elif most is not None and value > most:
            reason = f"be at most {most:g}; it was {float(value):g}"
        else:
            continue
        field_name = declared.name.replace("_", " ")
        raise OptionValueError(f"{field_name} must {reason}", f"{declared.flags[0]} must {reason}")
