"""What can go wrong in a way that the person at the page or the shell can act on.

Every message says what came, what was wanted and what to do. The faces show the message and
nothing else: no traceback. Programming errors stay ordinary exceptions (`ValueError`, ...).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
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


# What libraries say where memory runs out, beside a MemoryError.
_OUT_OF_MEMORY = ("bad_alloc", "cannot allocate memory", "failed to map segment", "allocate memory")


NO_MEMORY = (
    "there is not enough memory: end other programs, raise the limit (ulimit -v) or take a smaller "
    "model"
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether it says that memory ran out, in the words of one library or another."""
    said = first_line(error, 10_000).lower()
    return isinstance(error, MemoryError) or any(words in said for words in _OUT_OF_MEMORY)


def unexpected(error: BaseException) -> str:
    """One line for what nothing has explained: what is missing here, or a fault of the program.

    >>> unexpected(PermissionError(13, "Permission denied", "/srv/runs"))
    '/srv/runs: Permission denied'
    """
    if is_out_of_memory(error):
        return NO_MEMORY
    said = first_line(error)
    if "start new thread" in said:
        return "no further thread can be started here: raise the limit (ulimit -u)"
    if isinstance(error, ImportError):
        return f"this installation cannot be used: {said}; reinstall fillmask-ui"
    if isinstance(error, FileNotFoundError) and error.filename is None and not _is_here():
        return "the folder in which this command was called is gone: change to another one"
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{error.filename}: "
        return f"{where}{error.strerror}"
    kind = type(error).__name__
    return f"internal error: {kind}: {said}; set FILLMASK_UI_DEBUG=1 to see where, and report it"


def _is_here() -> bool:
    """Whether there is a current folder."""
    try:
        return bool(Path.cwd())
    except OSError:
        return False


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
