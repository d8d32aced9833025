"""The folder that variants go into, in the layout of the hub, and its record.

    config.json, the tokenizer's files, README.md
    fillmask-ui.json         how each file was made, and what was measured
    onnx/model.onnx          full precision, written by an export
    onnx/model_int8.onnx     a variant

All is written into a hidden folder inside and renamed when it is complete and has been run, so
whatever has a final name is whole. What a killed process leaves behind, the next one removes.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fillmask_ui.errors import DataError, OptionError, opening
from fillmask_ui.files import writing
from fillmask_ui.models.files import TOKENIZER
from fillmask_ui.models.runtime import RuntimeModel
from fillmask_ui.quantizing.card import CARD, card_text
from fillmask_ui.runs.store import is_locked, lock_run

RECORD = "fillmask-ui.json"
_DRAFT, _LOCK = ".draft-", ".lock"


@dataclass(frozen=True)
class Drafted:
    """A hidden folder with a model that is being made."""

    folder: Path
    home: Path  # that it lies in

    def publish(self, name: str, entry: Mapping[str, Any], source: Mapping[str, Any]) -> None:
        """Give a file and those beside it their final names, and note how it was made.

        Args:
            name: of the file of weights, relative to the draft.
            entry: what the record says of it.
            source: what it says of the model that it was made of.
        """
        for beside in self.folder.iterdir():
            if beside.is_file() and not beside.name.startswith("."):
                # The draft needs its own for the next file.
                copy = self.folder / f".{beside.name}"
                shutil.copyfile(beside, copy)
                copy.replace(self.home / beside.name)
        target = self.home / name
        target.parent.mkdir(exist_ok=True)
        (self.folder / name).replace(target)
        record = read_record(self.home) or {"sources": {}, "files": {}}
        record["sources"][source["runtime"]] = source
        record["files"][name] = entry
        write_record(self.home, self.folder, record)


def read_record(folder: Path) -> dict[str, Any] | None:
    """What a folder says of its making; None if none was made here."""
    path = folder / RECORD
    if not path.is_file():
        return None
    with opening("a record of variants", path):
        record: dict[str, Any] = json.loads(path.read_bytes())
    return record


def write_record(home: Path, scratch: Path, record: Mapping[str, Any]) -> None:
    """Replace the record of a folder and the card that is made of it."""
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    for name, content in ((RECORD, text), (CARD, card_text(home.name, record))):
        fresh = scratch / f".{name}"
        fresh.write_text(content, encoding="utf-8")
        fresh.replace(home / name)


def note_figures(folder: Path, figures: Mapping[str, Mapping[str, Any]]) -> None:
    """Put what was measured of files, by their names in the folder, into its record and card.

    Raises:
        DataError: if the folder has no record.
    """
    record = read_record(folder)
    if record is None:
        raise DataError(f"{folder} has no {RECORD}: nothing was made there")
    for name, values in figures.items():
        record["files"][name]["figures"] = dict(values)
    with tempfile.TemporaryDirectory(dir=folder, prefix=_DRAFT) as scratch:
        write_record(folder, Path(scratch), record)


def check_output(
    output: Path, model: RuntimeModel, names: Sequence[str], *, force: bool = False
) -> None:
    """Stop if files of these names must not be written into a folder.

    Raises:
        OptionError: if it is a file, that of the model itself, or holds other things.
    """
    if os.path.lexists(output) and not output.is_dir():
        raise OptionError(f"{output} is a file, or a link that leads nowhere: name a folder")
    real = output.resolve()
    if real.is_relative_to(own := model.files.folder.resolve()):
        where = "the folder" if real == own else "in the folder"
        raise OptionError(
            f"{output} is {where} of the model itself, which stays as it is: name another"
        )
    if not output.is_dir():
        return
    record = read_record(output)
    if record is not None and (other := _other_model(record["sources"], model)):
        raise OptionError(
            f"{output} holds variants of another model ({other}): name another folder"
        )
    if force:
        return
    others = [path.name for path in output.iterdir() if not path.name.startswith(_DRAFT)]
    if record is None and others:
        raise OptionError(
            f"{output} exists and holds {', '.join(sorted(others)[:3])}: name another folder, or "
            "use --force to write into this one"
        )
    for name in names:
        if (output / name).exists():
            raise OptionError(
                f"{output / name} exists: use --force to make it anew, or name another folder"
            )


def _other_model(sources: Mapping[str, Any], model: RuntimeModel) -> str:
    """What the variants of a record were made of, if that was not this model."""
    signature = model.signature
    if own := sources.get(signature.runtime):
        return "" if own["sha256"] == signature.sha256 else str(own["reference"])
    # Made of its file for the other runtime, as an export was.
    names = [str(source["reference"]) for source in sources.values()]
    return "" if signature.name in names else names[0]


@contextlib.contextmanager
def draft(output: Path) -> Iterator[Drafted]:
    """A hidden folder inside the output, gone at the end; so is an output that stayed empty."""
    new = [folder for folder in (output, *output.parents) if not folder.exists()]
    advice = "; name a folder where there is room to write"
    with writing(output, advice):
        output.mkdir(parents=True, exist_ok=True)
        _sweep(output)
        folder = Path(tempfile.mkdtemp(dir=output, prefix=_DRAFT))
    lock = lock_run(folder / _LOCK, output.name)
    try:
        with writing(output, advice):
            yield Drafted(folder, output)
    finally:
        lock.release()
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # it holds something
            for made in new:
                made.rmdir()


def _sweep(output: Path) -> None:
    """Remove drafts whose process is gone."""
    for left in output.glob(f"{_DRAFT}*"):
        if (left / _LOCK).exists() and not is_locked(left / _LOCK):
            shutil.rmtree(left, ignore_errors=True)


def write_beside(folder: Path, homes: Iterable[Path], tokenizer: Path) -> None:
    """Copy the first config.json of some folders, and the files of a tokenizer."""
    found = [home / "config.json" for home in homes if (home / "config.json").is_file()]
    names = [path for path in tokenizer.iterdir() if TOKENIZER.fullmatch(path.name)]
    for path in (*found[:1], *names):
        shutil.copyfile(path, folder / path.name)
