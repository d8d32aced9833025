"""The model card: the notes that a person wrote, then everything that was measured.

Figures come from the run's log and the package's measurements, never from the notes, so a card
cannot claim what was not seen.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from pathlib import Path
from typing import Any

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.options import options_of
from fillmask_ui.quantizing.hub_folder import CARD
from fillmask_ui.quantizing.model_card import plain_reference, trained_card
from fillmask_ui.training.corpus import CorpusPart
from fillmask_ui.training.measure import ModelFigures
from fillmask_ui.training.recipe import Recipe
from fillmask_ui.training.run import StoredRequest, read_log
from fillmask_ui.training.scheme import SchemeSearch
from fillmask_ui.training.weights import missing_note

_CURVE_ROWS = 12
# What a run is retraced with, in this order; when it is validated and saved stays out.
_RETRACED = (
    *("minutes", "steps", "block_tokens", "batch_blocks", "mask_share", "optimizer"),
    *("learning_rate", "warmup", "weight_decay", "precision", "device", "seed"),
    *("whole_word", "compile", "blend"),
)


@dataclass(frozen=True)
class PackageRequest:
    """What to make of a trained model."""

    source: Path  # folder of a training run, or any Hugging Face masked-LM folder
    output: Path  # folder to write
    texts: tuple[CorpusPart, ...] = ()  # whose tokens decide what a trimmed vocabulary keeps
    vocabulary_size: int | None = None  # trim to so many tokens; None keeps all
    # Text by which the int8 scheme is chosen; None takes per channel throughout.
    calibration: CorpusPart | None = None
    evaluate: CorpusPart | None = None  # held-out text for the card's figures
    cloze: Path | None = None  # cloze list for the card's figures
    compare: str | None = None  # a model to measure beside it, such as the start of the training
    notes: Path | None = None  # Markdown that the card begins with: provenance, licences, limits

    def __post_init__(self) -> None:
        if self.vocabulary_size is not None and not self.texts:
            raise OptionError("trimming the vocabulary needs --text: whose tokens should stay?")
        if self.source.resolve() == self.output.resolve():
            raise OptionError("the package must go into another folder than the training run")
        if not self.source.is_dir():
            raise OptionError(f"no folder {str(self.source)!r}; give that of a training run")
        for path in (self.cloze, self.notes):
            if path is not None and not path.is_file():
                raise OptionError(f"no file {str(path)!r}")
        self.notes_text()  # before hours of work, not after them

    def notes_text(self) -> str:
        """What the card begins with; a `DataError` if the file cannot be read."""
        if self.notes is None:
            return f"# {self.output.name}\n\nA masked language model."
        try:
            return self.notes.read_text(encoding="utf-8").rstrip()
        except UnicodeDecodeError as error:
            raise DataError(
                f"{self.notes} is no UTF-8 text (byte {error.start}): save it as UTF-8"
            ) from error
        except OSError as error:
            raise DataError(f"{self.notes} cannot be read: {error.strerror}") from error


@dataclass(frozen=True)
class Package:
    """What was made."""

    folder: Path  # the packaged model
    parameters: int  # number of weights, after trimming
    parity: float  # largest |difference| of a logit between the ONNX graph and PyTorch
    search: SchemeSearch | None  # how the int8 scheme was chosen; None where it was not searched
    # Of each measured model, those of full precision and int8 last.
    figures: tuple[ModelFigures, ...] = ()

    @property
    def files(self) -> dict[str, int]:
        """Name and size in bytes of every file that is there by now."""
        paths = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return {path.relative_to(self.folder).as_posix(): path.stat().st_size for path in paths}

    @property
    def size_bytes(self) -> int:
        return sum(self.files.values())

    @property
    def parity_text(self) -> str:
        """`parity` rounded up to two digits, as no difference may lie above what the card says."""
        digits = Context(prec=2, rounding=ROUND_CEILING)
        return f"{float(digits.create_decimal(self.parity)):.1e}"


def history_of(source: Path, asked: StoredRequest) -> dict[str, Any]:
    """What a training run tells of itself, for its card; a `DataError` for what no run wrote.

    Args:
        source: folder of the run.
        asked: what `read_request` gives of it.
    """
    log, trials = source / "log.jsonl", source / "blend.json"
    if not log.exists():
        return {}
    rows = read_log(log)
    measured = [row for row in rows if row.validation_nll_nats is not None]
    step = max(1, -(-len(measured) // _CURVE_ROWS))
    told: dict[str, Any] = {"log": rows, "curve": measured[::-1][::step][::-1]}
    if asked.missing_in_init:
        told["missing"] = missing_note(asked.missing_in_init)
    if asked.recipe.get("blend"):
        told["trials"] = json.loads(trials.read_bytes())
    return told


def card_text(
    request: PackageRequest, made: Package, asked: StoredRequest | None, told: dict[str, Any]
) -> str:
    """The card of a package.

    Args:
        request: what was made.
        made: what came of it.
        asked: what the source tells by `read_request`; None where it is no run.
        told: what it tells by `history_of`; empty where it tells nothing.
    """
    files = {name: size for name, size in made.files.items() if name != CARD}
    notes = request.notes_text()
    content: dict[str, Any] = {"notes": notes, "made": made, "asked": asked, "files": files, **told}
    if asked is not None and told:
        content["commands"] = [_train_command(asked), _package_command(request)]
    return trained_card(content)


def _train_command(asked: StoredRequest) -> str:
    """With plain file names."""
    command = ["fillmask-ui", "train"]
    for one in asked.texts:
        command += ["--text", _argument(one["file"], one["share"])]
    if asked.init:
        command += ["--init", plain_reference(asked.init)]
    else:
        command += ["--config", Path(asked.config or "").name]
    command += ["--vocabulary-size", str(asked.vocabulary_size)]
    options = options_of(Recipe)
    for name in _RETRACED:
        value, (flag, *_) = asked.recipe.get(name), options[name].flags
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
        command += ["--compare", plain_reference(request.compare)]
    return shlex.join(command)


def _argument(name: str, share: float) -> str:
    """What `CorpusPart.parse` reads."""
    return name if share == 1 else f"{name}:{share:g}"
