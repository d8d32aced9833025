"""Hostile inputs: texts and data sets."""

import gzip
from collections.abc import Callable
from pathlib import Path

from cli.hostile.attempt import Attempt

_EVAL = ("eval", "--json", "--samples", "3", "--max-tokens", "16")
_LINE = b"The cat sat on the mat today.\n"


def _file(name: str, content: bytes) -> Callable[[Path, Path], object]:
    return lambda folder, model: (folder / name).write_bytes(content)


def _data(
    name: str, file: str, content: bytes, words: tuple[str, ...], code: int = 1, *more: str
) -> Attempt:
    """An evaluation of a file of this name and content."""
    arguments = (*_EVAL, "--dataset", f"{{}}/{file}", *more)
    return Attempt(name, arguments, words, code, make=_file(file, content))


def _option(option: str, value: str, *words: str, code: int = 2) -> Attempt:
    return Attempt(f"{option} {value[:9]}", (*_EVAL, option, value), words, code)


def _encoding(codec: str) -> Attempt:
    words = ("unknown encoding", codec)
    return _data(f"encoding {codec}", "a.txt", _LINE, words, 2, "--encoding", codec)


ATTEMPTS: list[Attempt] = [
    *map(_encoding, ("hex", "../x")),
    _data("UTF-16 unsaid", "a.txt", _LINE.decode().encode("utf-16"), ("--encoding utf-16",)),
    _data(
        "UTF-16", "a.txt", _LINE.decode().encode("utf-16"), ("metric",), 0, "--encoding", "utf-16"
    ),
    _data("zero bytes", "a.txt", b"The cat\0sat.\n", ("not UTF-8",)),
    _data("gzip that grows", "a.txt.gz", gzip.compress(b"\0" * 30_000_000), ("not UTF-8",)),
    _data("gzip cut short", "a.txt.gz", gzip.compress(_LINE * 9)[:-9], ("as texts",)),
    _data("gzip that is none", "a.txt.gz", _LINE, ("as texts", "gzip")),
    _data("CSV with semicolons", "a.csv", b"id;text\n1;" + _LINE, ('"texts": 1',), 0),
    _data("CSV with two columns of one name", "a.csv", b"text,text\na,b\n", ("2 columns",)),
    _data("a split of a file", "a.txt", _LINE, ("--split", "leave it out"), 2, "--split", "test"),
    _data("JSON nested deep", "a.jsonl", b"[" * 100_000, ("cannot be read as texts",)),
    _data("a text that is NaN", "a.jsonl", b'{"text": NaN}', ("float", "text was wanted")),
    _data("CSV with an open quote", "a.csv", b'text\n"abc\n', ("line 2",)),
    _data("CSV with a huge field", "a.csv", b'text\n"' + b"a " * 8_000_001, ("field larger",)),
    _data("parquet damaged", "a.parquet", b"PAR1" + bytes(99) + b"PAR1", ("as texts",)),
    _data("an empty file", "a.txt", b"", ("is empty",)),
    Attempt(
        "a device of nothing", (*_EVAL, "--dataset", "/dev/null", "--format", "txt"), ("is empty",)
    ),
    Attempt("an empty folder", (*_EVAL, "--dataset", "{}"), ("no file",)),
    Attempt(
        "a folder of plain texts as a data set",
        (*_EVAL, "--dataset", "{}", "--split", "test"),
        ("unknown split", "train"),
        2,
        make=_file("a.txt", _LINE),
    ),
    Attempt(
        "a prompt of millions of characters",
        ("predict", "--file", "{}/a.txt"),
        ("1,000,000 characters",),
        2,
        make=_file("a.txt", b"cat " * 800_000),
    ),
    Attempt(
        "a prompt that is no UTF-8", ("predict", "--file", "-"), ("line 1",), 1, stdin=b"\xff\xfe"
    ),
    _option("--samples", "0", "1 or more"),
    _option("--samples", str(2**62), "metric", code=0),
    _option("--seed", "-1", "seed"),
    _option("--mask-probability", "nan", "nan"),
    _option("--mask-probability", "inf", "inf"),
    _option("--mask-share", "-1", "-1"),
    _option("--pass-below", "-inf", "borders of PASS"),
    _option("--risk-below", "inf", "must be numbers", "inf"),
    _option("--mask-probability", "1.0000001", "it was 1.0000001"),
    _option("--random-share", "1e400", "inf"),
    _option("--dataset", " ", "the data set has no name"),
    _data(
        "JSON onto its texts", "a.txt", _LINE, ("it is read by this command",), 2, "-o", "{}/a.txt"
    ),
    Attempt(
        "a candidate of 50,000 characters that cannot be spelled",
        ("predict", "A [MASK].", "--candidates", "\u2603" * 50_000),
        ("the candidate '" + "\u2603" * 40 + "...' cannot be spelled",),
        2,
    ),
    Attempt(
        "a candidate that is no UTF-8",
        ("predict", "A [MASK].", "--candidates", "cat, \udcff"),
        ("of the word '", "lone surrogate"),
        2,
    ),
    _data(
        "texts that are all the same",
        "a.txt",
        12 * b"The old dog slept by the fire all day.\n",
        ('"texts": 12',),
        0,
        *("--samples", "12", "--metric", "pseudo-perplexity"),
    ),
    Attempt("predict without end", ("predict", "--file", "/dev/zero"), ("not UTF-8",)),
    Attempt("a text of nothing", ("surprise", "\u200b"), ("leaves nothing of the text",), 2),
    Attempt(
        "a text that steers the terminal",
        ("predict", "The \x1b[31m cat [MASK] \u202e.", "--top-k", "1"),
        ("The ␛[31m cat [MASK] ⟨U+202E⟩.",),
        code=0,
    ),
    Attempt(
        "steps without end",
        ("unmask", "[MASK] [MASK]", "--remask", "9", "--max-steps", "1" + "0" * 18),
        ("--max-steps", "10000"),
        code=2,
    ),
    Attempt(
        "no temperature to speak of",
        ("unmask", "[MASK] [MASK]", "--temperature", "1e-320"),
        ("temperature must be 0",),
        code=2,
    ),
]
