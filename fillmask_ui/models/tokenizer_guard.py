"""The boundary around the tokenizers library: what its files make it do is told as a ModelError.

The library is written in Rust and finds out late what is wrong with its files: by a panic, which
Python sees as a BaseException that no `except Exception` catches, or by an allocation that fails,
which ends the process. The first becomes an error here; what leads to the second is refused.

Regular expressions that backtrack without end need nothing more: the library's engine counts, and
panics after ten million steps at one place, which is less than a second.
"""

import base64
import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fillmask_ui.errors import ModelError, first_line
from fillmask_ui.json_text import parse_json

# Most characters that normalizing may make of one; the normal forms of Unicode make up to 18.
_MOST_GROWTH = 256
_MOST_PREPENDED = 1_000  # characters, of all that is put in front of a text
# Longest word that WordPiece may take apart, in time of its cube; the usual value is 100.
_LONGEST_WORD = 10_000

_CHARSMAP = re.compile(rb'"precompiled_charsmap"\s*:\s*"([^"]*)"')
_REPEATED_GROUP = re.compile(rb'"Regex":"(\\.|[^"\\])*\)[+*{]')
_ESCAPED_ASCII = re.compile(rb"\\(u00[2-7]|/)")  # in which that can be written otherwise


@dataclass(frozen=True)
class _Growth:
    """What normalizing may make of a text."""

    factor: float = 1.0  # most characters for one
    prepended: int = 0  # characters in front


class TokenizerPanicError(ModelError):
    """The library gave up, and said so by a panic."""


@contextmanager
def tokenizer_errors(failed: str) -> Iterator[None]:
    """Whatever the library raises inside `with` this, as a ModelError that begins with `failed`."""
    try:
        yield
    except (ModelError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        # The class of a panic can be imported from nowhere.
        kind = TokenizerPanicError if type(error).__name__ == "PanicException" else ModelError
        raise kind(
            f"{failed}: {first_line(error)}; its files (tokenizer.json, tokenizer_config.json, "
            "config.json, ...) are damaged or do not fit together"
        ) from error


def refuse_charsmap(file: Path, name: str) -> None:
    """Stop for a table of characters that announces more than it has, which is allocated at once.

    Args:
        file: a tokenizer.json, or what is not there.
        name: of the model.
    """
    if not file.is_file():
        return
    content = file.read_bytes()
    if _ESCAPED_ASCII.search(content):
        try:
            content = json.dumps(parse_json(content)).encode()
        except ValueError as error:
            raise ModelError(f"{file} cannot be read as JSON: {error}") from error
    for encoded in _CHARSMAP.findall(content):
        table = _decoded(encoded)
        if len(table) < 4 or int.from_bytes(table[:4], "little") > len(table) - 4:
            raise ModelError(
                f"the tokenizer of {name} cannot be loaded from {file}: its precompiled_charsmap "
                "is cut short or damaged; fetch the file again"
            )


def refuse_growth(backend: Any, name: str) -> None:
    """Stop for a tokenizer that could blow a text up, or take for ever, by what its parts say.

    Args:
        backend: of the tokenizers library.
        name: of the model.

    Raises:
        ModelError: where one character may become more than 256, more than 1,000 are put in
            front of a text, or words of more than 10,000 are taken apart.
    """
    normalizer = backend.normalizer
    growth = _growth(parse_json(normalizer.__getstate__())) if normalizer else _Growth()
    if growth.factor > _MOST_GROWTH or growth.prepended > _MOST_PREPENDED:
        raise ModelError(
            f"the tokenizer of {name} could make {growth.factor:,.0f} characters of one and puts "
            f"{growth.prepended:,} in front of each text ({_MOST_GROWTH} and {_MOST_PREPENDED:,} "
            "at most), which may not fit into memory: take another tokenizer"
        )
    longest = getattr(backend.model, "max_input_chars_per_word", 0)
    if longest > _LONGEST_WORD:
        raise ModelError(
            f"the tokenizer of {name} takes words of {longest:,} characters apart, which would "
            f"never end: max_input_chars_per_word is 100 as a rule, and {_LONGEST_WORD:,} at most"
        )


def forget_dropout(backend: Any) -> None:
    """Let BPE merge all that it can: leaving merges out by chance is for training alone."""
    if getattr(backend.model, "dropout", None):
        backend.model.dropout = None


def may_backtrack(backend: Any) -> bool:
    """Whether a regular expression of its own repeats a group, which can take steps without end."""
    parts = [part.__getstate__() for part in (backend.normalizer, backend.pre_tokenizer) if part]
    return any(_REPEATED_GROUP.search(part) for part in parts)


def _growth(part: Any) -> _Growth:
    """Of a normalizer and what is in it, as tokenizer.json describes them.

    A regular expression may match at every place, so that what it inserts stands beside what was
    there; forms of Unicode do not build on one another and count as none.
    """
    kind = part["type"]
    if kind == "Sequence":
        inner = list(map(_growth, part["normalizers"]))
        return _Growth(math.prod(own.factor for own in inner), sum(own.prepended for own in inner))
    if kind == "Prepend":
        return _Growth(prepended=len(part["prepend"]))
    if kind == "Precompiled":
        table = _decoded(part["precompiled_charsmap"])
        words = table[4 + int.from_bytes(table[:4], "little") :].split(b"\0")
        return _Growth(max(1.0, *(len(word.decode("utf-8", "replace")) for word in words)))
    if kind == "Replace":
        pattern, content = part["pattern"], len(part["content"])
        if known := len(pattern.get("String", "")):
            return _Growth(max(1.0, content / known))
        return _Growth(1.0 + content)
    return _Growth()


def _decoded(encoded: str | bytes) -> bytes:
    """What base64 stands for; nothing where it is none."""
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError:
        return b""
