"""Errors with a message for the user; programming errors stay ordinary exceptions."""

import difflib
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType


class FillmaskError(Exception):
    """Base of all errors that carry a message meant for the user."""


class TextError(FillmaskError, ValueError):
    """A text cannot be used: empty, without a mask, too long, broken Unicode."""


class OptionError(FillmaskError, ValueError):
    """An option has an unknown value, or one out of range."""


class ModelError(FillmaskError):
    """The model cannot be found, read or run, or is not a masked language model."""


class ModelOutputError(ModelError):
    """The model ran, but what it returned cannot be used (NaN, wrong shape)."""


class NetworkError(FillmaskError):
    """Something has to be fetched and cannot be."""


class DataError(FillmaskError):
    """A data set, file or stored run cannot be read or written."""


def unknown(kind: str, name: str, names: Iterable[str]) -> str:
    """The message for an unknown name, with the known ones; the one most like it comes first.

    >>> unknown("provider", "Cuda", ["CPUExecutionProvider"])
    "unknown provider 'Cuda'; known: CPUExecutionProvider"
    >>> unknown("metric", "perplexity", ["pseudo-perplexity"])
    "unknown metric 'perplexity'; did you mean 'pseudo-perplexity'? Known: pseudo-perplexity"
    """
    known = sorted(names)
    listed = ", ".join(known) or "none"
    if alike := difflib.get_close_matches(str(name), known, n=1):
        return f"unknown {kind} {name!r}; did you mean {alike[0]!r}? Known: {listed}"
    return f"unknown {kind} {name!r}; known: {listed}"


def how_to_install(extra: str) -> str:
    """The command that installs an extra into this installation, be it a checkout or a package.

    What pip fetches as PyTorch on Linux holds CUDA, 1.3 GB of it: a CPU needs a tenth of that.
    """
    checkout = Path(__file__).parents[1]
    is_checkout = (checkout / "pyproject.toml").is_file()
    command = f'pip install -e "{checkout}[{extra}]"' if is_checkout else ""
    command = command or f'pip install "fillmask-ui[{extra}]"'
    if extra == "torch" and sys.platform == "linux":
        index = "pip install torch --index-url https://download.pytorch.org/whl/cpu"
        command += f" (without a GPU, first: {index})"
    return command


def first_line(error: BaseException, most: int = 300) -> str:
    r"""The first line of an error's message, or its type; the second too if the first ends in ":".

    >>> first_line(ValueError("no such node\n  at graph.cc:12")), first_line(KeyError())
    ('no such node', 'KeyError')
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    message = lines[0].rstrip()
    if message.endswith(":") and len(lines) > 1:
        message += f" {lines[1].strip()}"
    return message[:most]


# Top-level modules that read things from outside, those of the standard library too.
_READERS = {
    *("json", "gzip", "zlib", "tomllib", "pickle", "pathlib"),
    *("onnx", "onnxruntime", "google", "tokenizers", "sentencepiece", "pyo3_runtime"),
    *("safetensors", "safetensors_rust", "transformers", "torch"),
    *("datasets", "huggingface_hub", "httpx", "requests", "pyarrow"),
}


def _is_readers(error: BaseException) -> bool:
    """Whether a library, not this package, raised an error while it read something."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    modules = [frame.f_globals.get("__name__", "").partition(".")[0] for frame in frames]
    inside = modules[-1] != __package__ and not _READERS.isdisjoint(modules)
    return (
        isinstance(error, OSError | UnicodeError)
        or type(error) is Exception  # as tokenizers raises
        or type(error).__module__.partition(".")[0] in _READERS
        or (isinstance(error, Exception) and inside)
    )


@contextmanager
def opening(kind: str, name: object, failure: type[FillmaskError] = DataError) -> Iterator[None]:
    """An error of a library that reads something from outside becomes one line, panics of Rust too.

    >>> with opening("texts", "a.json"):
    ...     open("/none/a.json")
    Traceback (most recent call last):
    fillmask_ui.errors.DataError: a.json cannot be read as texts: No such file or directory
    """
    try:
        yield
    except BaseException as error:
        if not _is_readers(error):
            raise
        reason = error.strerror if isinstance(error, OSError) else None
        raise failure(f"{name} cannot be read as {kind}: {reason or first_line(error)}") from error


BUG = 70  # exit code of a mistake of this program, EX_SOFTWARE of sysexits.h


def explain(error: BaseException) -> tuple[str, int]:
    """One line about an error, and the exit code: 2 wrong input, 1 a failure outside, or `BUG`.

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
    if library := _damaged_library(error):
        return (
            f"the library {library} is not installed whole ({first_line(error)}): reinstall it",
            1,
        )
    bug = f"{type(error).__name__}: {first_line(error)}"
    return f"this is a bug of fillmask-ui: {bug}; please report it with what --traceback shows", BUG


def _damaged_library(error: BaseException) -> str:
    """The library that lacks a module or a name of its own, as after half an installation."""
    name = ""
    if isinstance(error, ImportError):
        name = error.name or ""
    elif isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        name = error.obj.__name__
    library = name.partition(".")[0]
    return "" if library == __package__ else library
