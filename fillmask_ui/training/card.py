"""The model card: the notes that a person wrote, then everything that was measured.

Figures come from the run's log and the package's measurements, never from the notes, so a card
cannot claim what was not seen.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelCardData

from fillmask_ui.errors import FillmaskError
from fillmask_ui.models.reference import parse_reference
from fillmask_ui.options import options_of
from fillmask_ui.training.measure import ModelFigures
from fillmask_ui.training.recipe import Recipe
from fillmask_ui.training.request import PackageRequest
from fillmask_ui.training.run import read_log
from fillmask_ui.training.scheme import SchemeSearch
from fillmask_ui.training.weights import missing_note

CARD = "README.md"
_TEMPLATE = Path(__file__).parent / "templates" / "card.md"
_CURVE_ROWS = 12
# What a run is retraced with, in this order; when it is validated and saved stays out.
_RETRACED = (
    *("minutes", "steps", "block_tokens", "batch_blocks", "mask_share", "optimizer"),
    *("learning_rate", "warmup", "weight_decay", "precision", "device", "seed"),
    *("whole_word", "compile", "blend"),
)


@dataclass(frozen=True)
class Package:
    """What was made."""

    folder: Path  # the packaged model
    size_bytes: int  # of all its files
    parameters: int  # number of weights, after trimming
    parity: float  # largest |difference| of a logit between the ONNX graph and PyTorch
    search: SchemeSearch | None  # how the int8 scheme was chosen; None where it was not searched
    # of each measured model, those of full precision and int8 last
    figures: tuple[ModelFigures, ...] = ()


def card_text(request: PackageRequest, made: Package, asked: dict[str, Any] | None) -> str:
    """The card of a package.

    Args:
        request: what was packaged; the log and the averages lie in its source.
        made: what was measured.
        asked: what the training run was asked for, as of `read_request`; None without a run.
    """
    notes = f"# {request.output.name}\n\nA masked language model."
    if request.notes is not None:
        notes = request.notes.read_text(encoding="utf-8").rstrip()
    content: dict[str, Any] = {}
    log = request.source / "log.jsonl"
    if asked is not None and log.exists():
        rows = read_log(log)
        measured = [row for row in rows if row.validation_nll_nats is not None]
        step = max(1, -(-len(measured) // _CURVE_ROWS))
        content = {
            "log": rows,
            "curve": measured[::-1][::step][::-1],
            "commands": [_train_command(asked), _package_command(request)],
        }
        if asked.get("missing_in_init"):
            content["missing"] = missing_note(asked["missing_in_init"])
        if asked["recipe"].get("blend"):
            trials = (request.source / "blend.json").read_text(encoding="utf-8")
            content["trials"] = json.loads(trials)
    paths = sorted(path for path in made.folder.rglob("*") if path.is_file() and path.name != CARD)
    files = {path.relative_to(made.folder).as_posix(): path.stat().st_size for path in paths}
    content |= {"notes": notes, "made": made, "asked": asked, "files": files}
    return ModelCard.from_template(ModelCardData(), str(_TEMPLATE), **content).text + "\n"


def _train_command(asked: dict[str, Any]) -> str:
    """With plain file names."""
    command = ["fillmask-ui", "train"]
    for one in asked["texts"]:
        command += ["--text", _argument(one["file"], one["share"])]
    if asked["init"]:
        command += ["--init", _reference(asked["init"])]
    else:
        command += ["--config", Path(asked["config"]).name]
    command += ["--vocabulary-size", str(asked["vocabulary_size"])]
    options = options_of(Recipe)
    for name in _RETRACED:
        value, (flag, *_) = asked["recipe"].get(name), options[name].flags
        if value is True:
            command.append(flag)
        elif value is not None and value != getattr(Recipe, name):
            command += [flag, f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join([*command, "-o", "run"])


def _package_command(request: PackageRequest) -> str:
    """With plain file names."""
    command = ["fillmask-ui", "package", "run", "-o", "model"]
    texts = [("--calibration", request.calibration), ("--evaluate", request.evaluate)]
    if request.vocabulary_size is not None:
        command += ["--vocabulary-size", str(request.vocabulary_size)]
        texts = [*(("--text", source) for source in request.texts), *texts]
    for flag, source in texts:
        if source is not None:
            command += [flag, _argument(source.path.name, source.share)]
    for flag, path in (("--cloze", request.cloze), ("--notes", request.notes)):
        if path is not None:
            command += [flag, path.name]
    if request.compare:
        command += ["--compare", _reference(request.compare)]
    return shlex.join(command)


def _reference(text: str) -> str:
    """A folder by its name, an id of the hub whole.

    >>> _reference("google-bert/bert-base-uncased@v1"), _reference("/nowhere/run/")
    ('google-bert/bert-base-uncased@v1', 'run')
    """
    try:
        path = parse_reference(text).path
    except FillmaskError:  # a folder of another machine or of another time
        path = Path(text)
    return text if path is None else path.absolute().name


def _argument(name: str, share: float) -> str:
    """What `CorpusPart.parse` reads."""
    return name if share == 1 else f"{name}:{share:g}"
