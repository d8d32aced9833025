"""The folder that a model is shipped in: the hub's layout, the card, and what was measured.

All is written into a hidden folder inside and renamed when it is complete and has been run. What a
killed process leaves behind, the next one removes. A card is made of records and measurements
alone.
"""

import contextlib
import json
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelCardData

from fillmask_ui.errors import DataError, FillmaskError, OptionError, opening
from fillmask_ui.files import finished_file, write_text, writing
from fillmask_ui.models.model_choice import parse_reference
from fillmask_ui.models.model_files import TOKENIZER, ModelFiles
from fillmask_ui.models.vocabulary import vocabulary_files
from fillmask_ui.records import ModelSignature
from fillmask_ui.runs.store import is_locked, lock_file

# The layout: config.json and the tokenizer's files, `model.safetensors` of a trained model, and
SHARED = "model.onnx"  # full precision, of a trained model: reads the weights of that file
CARD = "README.md"
RECORD = "fillmask-ui.json"  # how each variant was made, and what was measured
FULL = "onnx/model.onnx"  # full precision, exported, with its weights
INT8 = "onnx/model_int8.onnx"  # one of the variants
_DRAFT, _LOCK = ".draft-", ".lock"
TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class ModelDraft:
    """A hidden folder with a model that is being made."""

    folder: Path
    output: Path  # the folder that it lies in

    def publish(self, *names: str) -> None:
        """Give graphs of the draft, and copies of the files beside them, their final names."""
        for beside in self.folder.iterdir():
            if beside.is_file() and not beside.name.startswith("."):
                with finished_file(self.output / beside.name) as fresh:
                    shutil.copyfile(beside, fresh)
        for name in names:
            target = self.output / name
            target.parent.mkdir(exist_ok=True)
            (self.folder / name).replace(target)

    def publish_variant(
        self, name: str, entry: Mapping[str, Any], source: Mapping[str, Any]
    ) -> None:
        """Publish a graph with a record of itself, `entry`, and of the model it was made of."""
        self.publish(name)
        record = read_record(self.output) or {"sources": {}, "files": {}}
        record["sources"][source["runtime"]] = source
        record["files"][name] = entry
        _write_record(self.output, record)


@contextlib.contextmanager
def draft(output: Path) -> Iterator[ModelDraft]:
    """A hidden folder inside the output, gone at the end; so is an output that stayed empty."""
    new_folders = [folder for folder in (output, *output.parents) if not folder.exists()]
    advice = "; name a folder where there is room to write"
    with writing(output, advice):
        output.mkdir(parents=True, exist_ok=True)
        for draft_folder in output.glob(f"{_DRAFT}*"):
            lock_path = draft_folder / _LOCK
            if lock_path.exists() and not is_locked(lock_path):
                shutil.rmtree(draft_folder, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(dir=output, prefix=_DRAFT))
    lock = lock_file(folder / _LOCK, output.name)
    try:
        with writing(output, advice):
            (folder / FULL).parent.mkdir()
            yield ModelDraft(folder, output)
    finally:
        lock.release()
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # it holds something
            for created in new_folders:
                created.rmdir()


def check_output(
    output: Path,
    files: ModelFiles | None,
    names: Sequence[str],
    *,
    force: bool = False,
    signature: ModelSignature | None = None,
) -> None:
    """An OptionError if variants of a model must not be written into a folder under these names.

    It is called before the model is read, without its signature or even its files (of a hub id),
    and again afterwards.
    """
    if files is not None and _is_in(output.resolve(), files):
        raise OptionError(
            f"{output} is in the folder of the model itself, which stays as it is: name another"
        )
    record = read_record(output)
    if record and signature and (model := _different_model(record["sources"], signature)):
        raise OptionError(
            f"{output} holds variants of another model ({model}): name another folder"
        )
    if force:
        return
    content = [path.name for path in output.glob("*") if not path.name.startswith(_DRAFT)]
    if record is None and content:
        raise OptionError(
            f"{output} exists and holds {', '.join(sorted(content)[:3])}: name another folder, or "
            "use --force to write into this one"
        )
    for name in names:
        if (output / name).exists():
            raise OptionError(
                f"{output / name} exists: use --force to make it anew, or name another folder"
            )


def _is_in(output: Path, files: ModelFiles) -> bool:
    """Whether a folder is that of a model or in it; beside a single .onnx file it is not."""
    folder = files.folder.resolve()
    if files.name.endswith(".onnx"):
        return any(path.resolve().is_relative_to(output) for path in files.weights)
    return output.is_relative_to(folder)


def _different_model(sources: Mapping[str, Any], signature: ModelSignature) -> str:
    """The model that the variants of a record were made of, if it is not this one."""
    if source := sources.get(signature.runtime):
        return "" if source["sha256"] == signature.sha256 else str(source["reference"])
    # Made of its file for the other runtime, as an export was.
    names = [str(source["reference"]) for source in sources.values()]
    return "" if signature.name in names else names[0]


def read_record(folder: Path) -> dict[str, Any] | None:
    """What a folder says of its making; None if no variant was made there."""
    path = folder / RECORD
    if not path.is_file():
        return None
    with opening("a record of variants", path):
        record: dict[str, Any] = json.loads(path.read_bytes())
    return record


def _write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Replace the record of a folder and the card that is made of it."""
    write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", folder / RECORD)
    write_text(variants_card(folder.name, record), folder / CARD)


def note_figures(path: Path, figures: Mapping[str, Any]) -> None:
    """Put what was measured of a variant, by its ONNX file, into record and card of its folder."""
    folder = path.parent.parent
    record = read_record(folder)
    if record is None:
        raise DataError(f"{folder} has no {RECORD}: nothing was made there")
    record["files"][path.relative_to(folder).as_posix()]["figures"] = dict(figures)
    _write_record(folder, record)


def copy_beside(files: ModelFiles, folder: Path) -> None:
    """Copy what stands beside a model's weights: its config.json and its tokenizer's files."""
    tokenizer = files.tokenizer or files.folder
    homes = (files.folder, files.weights[0].parent, tokenizer)
    configs = [home / "config.json" for home in homes if (home / "config.json").is_file()]
    read = vocabulary_files(tokenizer)
    names = [
        path for path in tokenizer.iterdir() if TOKENIZER.fullmatch(path.name) or path.name in read
    ]
    for path in (*configs[:1], *names):
        shutil.copyfile(path, folder / path.name)


def variants_card(name: str, record: Mapping[str, Any]) -> str:
    """The card of a folder of variants, of its record alone."""
    sources = list(record["sources"].values())
    hub = next((source["hub_id"] for source in sources if source["hub_id"]), None)
    data = ModelCardData(
        library_name="transformers",
        pipeline_tag="fill-mask",
        tags=["fill-mask", "onnx"],
        base_model=hub,
        base_model_relation="quantized" if hub else None,
    )
    content: dict[str, Any] = {"name": name, "sources": sources, "files": record["files"]}
    return f"{ModelCard.from_template(data, str(TEMPLATES / 'variants.md'), **content)}\n"


def command(*words: str, **options: Any) -> str:
    """A command of fillmask-ui that repeats what was done.

    An option is left out for None and False, bare for True, and repeated for each of a list.

    >>> command("quantize", "bert", output="out", exclude=["layer:0", "layer:1"], force=True)
    'fillmask-ui quantize bert --output out --exclude layer:0 --exclude layer:1 --force'
    """
    line = ["fillmask-ui", *words]
    for name, option in options.items():
        flag = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
        for value in option if isinstance(option, list | tuple) else [option]:
            if value is True:
                line.append(flag)
            elif value is not None and value is not False:
                line += [flag, f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join(line)


def plain_reference(text: str) -> str:
    """A folder by its name, an id of the hub whole.

    >>> plain_reference("google-bert/bert-base-uncased@v1"), plain_reference("/nowhere/run/")
    ('google-bert/bert-base-uncased@v1', 'run')
    """
    try:
        path = parse_reference(text).path
    except FillmaskError:  # a folder of another machine or of another time
        path = Path(text)
    return text if path is None else path.absolute().name
