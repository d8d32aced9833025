"""Where files lie, and how they are written: whole or not at all."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from fillmask_ui.errors import DataError, ModelError, OptionError

# Files of a model, and of a stored run, which nothing that is written for a reader may replace.
_OF_MODELS = re.compile(
    r".*\.(onnx|onnx_data|safetensors|model)"
    r"|(config|tokenizer|tokenizer_config|special_tokens_map|vocab)\.json|vocab\.txt"
)
# Where a spreadsheet begins a formula: at the start of a cell, which may end at a ; or tab, too.
_FORMULA = re.compile(r"""((?:^|[;\t\r\n])[\s"]*)(?=[=+\-@＝＋－＠]\s*[^\s;])""")
_OF_RUNS = ("run.json", "rows.jsonl")
# Characters that a terminal or a browser obeys instead of showing: controls, marks of direction.
_VISIBLE = {code: chr(0x2400 + code) for code in range(32)} | {127: "␡"}
_HIDDEN = (*range(0x80, 0xA0), 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F))
_VISIBLE |= {code: f"⟨U+{code:04X}⟩" for code in (*_HIDDEN, *range(0x2066, 0x206A), 0xFEFF)}
_VISIBLE_IN_LINES = {code: sign for code, sign in _VISIBLE.items() if chr(code) not in "\n\t"}


def asset(name: str) -> Path:
    """A shipped folder or file, e.g. `model`; in a wheel they lie inside the package."""
    package = Path(__file__).parent
    for root in (package / "_assets", package.parent / "assets"):
        if (root / name).exists():
            return root / name
    raise ModelError(
        f"the shipped asset {name!r} is missing from this installation; "
        "reinstall with: pip install --force-reinstall fillmask-ui"
    )


def expanded(path: str) -> Path:
    """A path with a home in place of `~` or `~name`, if there is such a home."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - `Path.expanduser` raises then


def user_folder(kind: str) -> Path:
    """The folder for "cache", "runs" or "variants": FILLMASK_UI_CACHE, ..., or the platform's."""
    import platformdirs

    folder = os.environ.get(f"FILLMASK_UI_{kind.upper()}", "")
    if folder.strip():
        return expanded(folder)
    if kind == "cache":
        return platformdirs.user_cache_path("fillmask-ui", appauthor=False, opinion=False)
    return platformdirs.user_data_path("fillmask-ui", appauthor=False) / kind


def check_target(target: Path | None, *read: Path, folder: str | Path | None = None) -> None:
    """An `OptionError` for a file that cannot be written, or would replace one that is in use.

    `read` are other files of the command; `folder` is one of texts.
    """
    if target is None:
        return
    failed = f"{target} cannot be written"
    real = target.resolve()  # a link is written to where it leads
    in_texts = folder is not None and Path(folder).resolve() in real.parents
    in_use = {
        "was named twice": any(_same(target, Path(path)) for path in read),
        "is one of the texts": in_texts and target.exists(),
        "is part of a stored run": _is_of_run(real),
        "is a file of a model": _OF_MODELS.fullmatch(real.name) and real.exists(),
    }
    for reason, applies in in_use.items():
        if applies:
            raise OptionError(f"{failed}: it {reason}; name another file")
    if not real.parent.is_dir():
        raise OptionError(f"no folder {str(target.parent)!r} to write {real.name!r} into: make it")
    if real.is_dir():
        raise OptionError(f"{failed}: it is a folder; name a file in it")
    written = real if real.exists() and not _is_replaced(target) else real.parent
    if not os.access(written, os.W_OK):
        raise OptionError(f"{failed}: no permission to write {written}")


def _same(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:  # one of them does not exist
        return first.absolute() == second.absolute()


def _is_of_run(target: Path) -> bool:
    return target.name in _OF_RUNS and all((target.parent / name).is_file() for name in _OF_RUNS)


def _is_replaced(target: Path) -> bool:
    """Links, pipes and devices are written to in place."""
    return not target.is_symlink() and (target.is_file() or not target.exists())


def visible(text: str, *, lines: bool = False) -> str:
    r"""Text of others with controls, marks of direction and lone surrogates written out.

    >>> visible("a\x1b[31m\n\ud800")
    'a␛[31m␊\\ud800'
    """
    return printable(text).translate(_VISIBLE_IN_LINES if lines else _VISIBLE)


def printable(name: str) -> str:
    r"""A file's name with the bytes that are not UTF-8 escaped."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def csv_cell(value: Any) -> Any:
    """A cell of a CSV file that no spreadsheet runs as a formula; strangers wrote some of them.

    >>> csv_cell("=1+1"), csv_cell("tea;=1+1"), csv_cell("-"), csv_cell(-0.5)
    ("'=1+1", "tea;'=1+1", '-', -0.5)
    """
    return _FORMULA.sub(r"\1'", value) if isinstance(value, str) else value


@contextmanager
def writing(target: Path, advice: str = "") -> Iterator[None]:
    """An `OSError` inside becomes a `DataError`: TARGET cannot be written, and why."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise DataError(f"{target} cannot be written: {why}{advice}") from error


@contextmanager
def finished_file(target: Path) -> Iterator[Path]:
    """A path to write to, which becomes `target` at the end; a failure leaves nothing behind."""
    if _is_of_run(target.resolve()):
        raise DataError(f"{target} is part of a stored run: name another file")
    with writing(target):
        if not _is_replaced(target):
            yield target
            return
        # Not `tempfile`, whose files are for their owner alone whatever the umask says.
        fresh = target.with_name(f".{os.getpid()}-{target.name}")
        try:
            yield fresh
            if target.exists():
                fresh.chmod(target.stat().st_mode)
            fresh.replace(target)
        finally:
            fresh.unlink(missing_ok=True)


@contextmanager
def text_file(target: Path) -> Iterator[TextIO]:
    r"""A UTF-8 file to write, as `finished_file`; lone surrogates are escaped (`\udcff`)."""
    with (
        finished_file(target) as fresh,
        fresh.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        yield file


def write_text(text: str, target: Path) -> None:
    """Write a file, as `text_file`."""
    with text_file(target) as file:
        file.write(text)
