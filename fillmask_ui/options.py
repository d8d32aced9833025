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
fillmask_ui.errors.OptionError: max tokens must be at least 3; it was 1
"""

import math
from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from numbers import Integral, Real
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


@dataclass(frozen=True)
class OwnOption:
    """One option of a configuration, wherever within it."""

    name: str  # of the field
    kind: Any  # its type
    default: Any  # `dataclasses.MISSING` without one
    option: Option


def option(default: Any, description: str, **shown: Any) -> Any:
    """A dataclass field that carries an `Option`: `description` is its help, `shown` the rest."""
    return field(default=default, metadata={"option": Option(description, **shown)})


def options_of(configuration: Any) -> dict[str, Option]:
    """Field name to option, label and flags filled in, of a dataclass or an instance of one."""
    found = {}
    for entry in fields(configuration):
        if own := entry.metadata.get("option"):
            label = own.label or entry.name.replace("_", " ").capitalize()
            flags = own.flags or (f"--{entry.name.replace('_', '-')}",)
            found[entry.name] = replace(own, label=label, flags=flags)
    return found


def own_options(kind: Any) -> Iterator[OwnOption]:
    """All options of a configuration, in order, those of dataclasses within it included."""
    for entry, own, shown in _fields(kind):
        if shown is None:
            yield from own_options(own)
        else:
            yield OwnOption(entry.name, str if shown.choices else own, entry.default, shown)


def configured(kind: Any, values: dict[str, Any]) -> Any:
    """A configuration of the values of its options, by name, which are taken out of `values`."""
    chosen = {
        entry.name: values.pop(entry.name, entry.default) if shown else configured(own, values)
        for entry, own, shown in _fields(kind)
        if shown or any(own_options(own))
    }
    return kind(**chosen)


def _fields(kind: Any) -> Iterator[tuple[Field[Any], Any, Option | None]]:
    """What a configuration takes by name: each field with its type and option, if it has one.

    A class may name the dataclasses whose options it takes (`option_owners`).
    """
    owners = getattr(kind, "option_owners", lambda: (kind,))() if is_dataclass(kind) else ()
    seen = set()
    for owner in owners:
        options, kinds = options_of(owner), get_type_hints(owner)
        for entry in fields(owner):
            if entry.name not in seen:  # a subclass has the options of its parent too
                seen.add(entry.name)
                yield entry, kinds[entry.name], options.get(entry.name)


# What counts as a value of a type, numbers of numpy included, and what to call it.
_KINDS: dict[type, tuple[Any, str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a finite number"),
    str: (str, "text"),
}
_MOST = 2**63 - 1  # what JSON holds for other programs


def kind_of(hint: Any) -> type:
    """The type of an option by its annotation: bool, int, float or str, also if it may be None."""
    return (*get_args(hint), hint)[0]


def check_options(configuration: Any) -> None:
    """An `OptionError` for a value of another type or out of bounds; None counts as not given."""
    hints = get_type_hints(type(configuration))
    for name, own in options_of(configuration).items():
        value: Any = getattr(configuration, name)
        if value is None:
            continue
        words = name.replace("_", " ")
        kind, wanted = _KINDS.get(kind_of(hints[name]), (object, ""))
        fits = isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)
        if wanted and not (fits and (not isinstance(value, float) or math.isfinite(value))):
            raise OptionError(f"{words} must be {wanted}; it was {repr(value)[:100]}")
        if own.choices and getattr(value, "name", value) not in own.choices:
            raise OptionError(unknown(words, value, own.choices))
        if own.least is not None and value < own.least:
            raise OptionError(f"{words} must be at least {own.least:g}; it was {value:g}")
        most = _MOST if own.most is None and kind is Integral else own.most
        if most is not None and value > most:
            raise OptionError(f"{words} must be at most {most:g}; it was {float(value):g}")
