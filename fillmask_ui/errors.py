"""What can go wrong in a way that the person at the page or the shell can act on.

Every message says what came, what was wanted and what to do. The faces show the message and
nothing else: no traceback. Programming errors stay ordinary exceptions (`ValueError`, ...).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class FillmaskError(Exception):
    """Base of all errors that carry a message meant for the user."""


class TextError(FillmaskError):
    """The text cannot be used as it is: empty, no mask, too long, broken Unicode."""


class OptionError(FillmaskError):
    """An option has a value outside its range or that is not known."""


class ModelError(FillmaskError):
    """The model cannot be found, read or run, or is no masked language model."""


class ModelOutputError(ModelError):
    """The model ran, but what it returned cannot be used (NaN, wrong shape)."""


class NetworkError(FillmaskError):
    """Something has to be fetched and the network does not give it."""


class DataError(FillmaskError):
    """A data set, file or stored run cannot be read as asked."""


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """The message for a name that is not known, with the names that are.

    >>> unknown("provider", "Cuda", ["CPUExecutionProvider"])
    "unknown provider 'Cuda'; known: CPUExecutionProvider"
    """
    listed = ", ".join(sorted(known)) or "none"
    return f"unknown {kind} {name!r}; known: {listed}"


def written(number: Any) -> str:
    """A number for a message; Python refuses to write those of thousands of digits.

    What is no number stands there as in Python.

    >>> written(-5), written(10**5000)
    ('-5', 'a number of 16,610 bits')
    >>> written("5")
    "'5'"
    """
    if isinstance(number, bool) or not isinstance(number, int | float):
        return repr(number)[:100]
    bits = number.bit_length() if isinstance(number, int) else 0
    return f"{number:,}" if bits < 200 else f"a number of {bits:,} bits"


def first_line(error: BaseException, most: int = 300) -> str:
    r"""The first line of what a library says went wrong; its kind where it says nothing.

    A line that ends with a colon takes the next one too.

    >>> first_line(ValueError("no such node\n  at graph.cc:12")), first_line(KeyError())
    ('no such node', 'KeyError')
    >>> first_line(ValueError("wrong field 'size':\n  a number is wanted"))
    "wrong field 'size': a number is wanted"
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    said = lines[0].rstrip()
    if said.endswith(":") and len(lines) > 1:
        said += f" {lines[1].strip()}"
    return said[:most]


# Kinds of things that come from outside, and what each fails as.
_OPENED: dict[str, type[FillmaskError]] = {
    "a model": ModelError,
    "a tokenizer": ModelError,
    "ONNX": ModelError,
    "texts": DataError,
    "a run": DataError,
    "a sweep, in TOML": DataError,
}
# Which no library raises for a file that it cannot read.
_PASSED = (FillmaskError, KeyboardInterrupt, SystemExit, GeneratorExit)


@contextmanager
def opening(kind: str, name: object) -> Iterator[None]:
    """While a named thing from outside is opened: what a library raises becomes one line.

    Only calls of libraries belong inside, since a mistake of our own would be told as theirs. The
    panics of libraries in Rust, which are no `Exception`, are told too.

    Args:
        kind: what it is opened as, one of `_OPENED`.
        name: of the file, folder, data set or model, as the user knows it.

    Raises:
        ModelError: for models and tokenizers.
        DataError: for all else.

    >>> with opening("texts", "a.json"):
    ...     int("x")
    Traceback (most recent call last):
    fillmask_ui.errors.DataError: a.json cannot be read as texts: invalid literal for int() ...
    """
    try:
        yield
    except _PASSED:
        raise
    except BaseException as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else None
        why = said or first_line(error)
        raise _OPENED[kind](f"{name} cannot be read as {kind}: {why}") from error


BUG = 70  # exit code of a mistake of this program, EX_SOFTWARE of sysexits.h


def explain(error: BaseException) -> tuple[str, int]:
    """What a face says of an error, in one line, and the exit code of a command.

    2 is wrong input, 1 a failure outside it (model, network, data, disk), `BUG` all that nothing
    has foreseen.

    >>> explain(OptionError("top k must be at least 1; it was 0"))
    ('top k must be at least 1; it was 0', 2)
    >>> explain(PermissionError(13, "Permission denied", "/srv/runs"))
    ('/srv/runs: Permission denied', 1)
    >>> explain(KeyError("rows"))[1]
    70
    """
    if isinstance(error, FillmaskError):
        return str(error), 2 if isinstance(error, OptionError | TextError) else 1
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{error.filename}: "
        return f"{where}{error.strerror}", 1
    if isinstance(error, MemoryError):
        return "there is not enough memory: end other programs, or take a smaller model", 1
    said = f"{type(error).__name__}: {first_line(error)}"
    return (
        f"this is a bug of fillmask-ui: {said}; please report it with what --traceback shows",
        BUG,
    )


@contextmanager
def translated(
    kinds: type[Exception] | tuple[type[Exception], ...],
    wanted: type[FillmaskError],
    message: str,
    advice: str = "",
) -> Iterator[None]:
    """What a library raises inside `with` this, as an error for the user.

    >>> with translated(ValueError, DataError, "a.json is no JSON", "; delete it"):
    ...     int("x")
    Traceback (most recent call last):
    fillmask_ui.errors.DataError: a.json is no JSON: invalid literal for int() ...; delete it
    """
    try:
        yield
    except kinds as error:
        raise wanted(f"{message}: {first_line(error)}{advice}") from error
