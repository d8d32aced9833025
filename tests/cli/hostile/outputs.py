"""Hostile inputs: outputs that would replace what is read, a model or one another; sweep files."""

import shutil
from collections.abc import Callable
from pathlib import Path

from cli.hostile.attempt import Attempt

_LINES = "".join(f"The cat sat on the mat number {number}.\n" for number in range(9)).encode()
_TOML = (
    b'models = ["embedded"]\nmetrics = ["uniform"]\ndata = [{dataset = "embedded", samples=2}]\n'
)
_IS_READ = ("cannot be written", "it is read by this command")


def _files(**contents: bytes) -> Callable[[Path, Path], None]:
    def make(folder: Path, model: Path) -> None:
        for name, content in contents.items():
            (folder / name.replace("_", ".")).write_bytes(content)

    return make


def _linked(folder: Path, model: Path) -> None:
    (folder / "a.txt").write_bytes(_LINES)
    (folder / "a.json").symlink_to("a.txt")


def _texts_folder(folder: Path, model: Path) -> None:
    (folder / "texts").mkdir()
    (folder / "texts" / "a.txt").write_bytes(_LINES)


def _own_model(folder: Path, model: Path) -> None:
    shutil.copytree(model, folder / "m")


def _linked_model(folder: Path, model: Path) -> None:
    _own_model(folder, model)
    (folder / "h.jsonl").symlink_to("m/onnx/model.onnx")


def _sweep(name: str, content: bytes, words: tuple[str, ...], code: int, *options: str) -> Attempt:
    arguments = ("sweep", "{}/s.toml", *options)
    return Attempt(name, arguments, words, code, make=_files(s_toml=content))


_EVAL = ("eval", "--json", "--samples", "2", "--max-tokens", "16")
_TABLE = ("--table-only", "--csv", "{}/s.csv")

ATTEMPTS: list[Attempt] = [
    Attempt(
        "JSON through a link into a folder that is not there",
        (*_EVAL, "-o", "{}/a.json"),
        ("no folder", "nowhere", "make it"),
        2,
        make=lambda folder, model: (folder / "a.json").symlink_to("nowhere/x.json"),
    ),
    Attempt(
        "JSON into what ends as a folder does",
        (*_EVAL, "-o", "{}/new/"),
        ("/new/ is the name of a folder: name a file",),
        2,
        absent="new",
    ),
    Attempt(
        "a border of the verdict that no run can hold",
        (*_EVAL, "--baseline", "embedded:int8", "--risk-below", "1e308"),
        ("risk below must lie within", "1e+308"),
        2,
    ),
    Attempt(
        "JSON into a file without a name",
        (*_EVAL, "-o", ""),
        ("the name of a file to write is empty",),
        2,
    ),
    Attempt(
        "an export onto a link that leads nowhere",
        ("export", "{model}", "-o", "{}/out"),
        ("out is a file, or a link that leads nowhere: name a folder",),
        2,
        make=lambda folder, model: (folder / "out").symlink_to("nowhere"),
    ),
    Attempt(
        "more texts than JSON can count",
        ("eval", "--json", "--samples", str(10**30)),
        ("the number of samples", "less than 2^63"),
        2,
    ),
    Attempt(
        "batches of more tokens than JSON can count",
        (*_EVAL, "--batch-tokens", str(2**63)),
        ("batch tokens must be less than 2^63",),
        2,
    ),
    Attempt(
        "JSON through a link onto its texts",
        (*_EVAL, "--dataset", "{}/a.txt", "-o", "{}/a.json"),
        _IS_READ,
        2,
        make=_linked,
    ),
    Attempt(
        "JSON onto a file of a folder of texts",
        (*_EVAL, "--dataset", "{}/texts", "-o", "{}/texts/a.txt"),
        _IS_READ,
        2,
        make=_texts_folder,
    ),
    Attempt(
        "a history onto the model",
        ("unmask", "-m", "{}/m", "A [MASK].", "--history", "{}/m/onnx/model.onnx"),
        ("it is a file of a model",),
        2,
        make=_own_model,
    ),
    Attempt(
        "a history through a link onto the model",
        ("unmask", "-m", "{}/m", "A [MASK].", "--history", "{}/h.jsonl"),
        ("it is a file of a model",),
        2,
        make=_linked_model,
    ),
    Attempt(
        "a label that steers the terminal",
        ("sweep", "{}/s.toml", *_TABLE),
        ("characters that cannot be seen",),
        2,
        make=_files(
            s_toml=_TOML.replace(b'"embedded"', b'{model="embedded", label="\\u001b[2J"}', 1)
        ),
    ),
    Attempt(
        "variants into the folder of the model",
        ("quantize", "{}/m", "-o", "{}/m/variants", "--scheme", "int8", "--no-measure"),
        ("in the folder of the model itself",),
        2,
        make=_own_model,
        absent="m/variants",
    ),
    Attempt("a report to standard output", ("report", "latest", "-o", "-"), ("no name of",), 2),
    _sweep("a table onto its sweep", _TOML, _IS_READ, 2, "--csv", "{}/s.toml"),
    _sweep(
        "two tables into one file",
        _TOML,
        ("named for two outputs",),
        2,
        *_TABLE,
        "--html",
        "{}/./s.csv",
    ),
    _sweep(
        "a sweep with a byte order mark", b"\xef\xbb\xbf" + _TOML, ("not measured",), 0, *_TABLE
    ),
    _sweep("a sweep nested deep", b"a = " + b"[" * 50_000, ("nested too deeply",), 2),
    _sweep("a seed of 5,000 digits", _TOML + b"seeds=[" + b"9" * 5_000 + b"]", ("is no TOML",), 2),
    _sweep("a sweep of 11 MB", b"# a\n" * 2_800_000, ("it is no sweep file",), 1),
    Attempt("a sweep without end", ("sweep", "/dev/zero"), ("it is no sweep file",)),
]
