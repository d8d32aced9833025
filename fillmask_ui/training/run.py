"""One training run in one folder.

Layout of the folder:

    run.json             what was asked: texts, start, recipe, versions; what was asked earlier
                         where a resumed run was given other texts or another recipe; what the
                         start lacks; the model's dropout
    tokens.npz           the text as token ids
    tokenizer/           the tokenizer of the run (trained or trimmed where asked)
    checkpoint.pt        to resume from
    log.jsonl            one LogRow per line
    blend.json           the shares that were measured at the end, where asked for, the best first
    config.json, ...     the trained model, a Hugging Face folder, when the run is over
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation.rows import MOST_VOCABULARY
from fillmask_ui.files import write_text
from fillmask_ui.models.loading_progress import quiet_transformers
from fillmask_ui.models.model_files import INDEX, ONNX, WEIGHTS, ModelConfig, names_in, read_config
from fillmask_ui.models.runtime_model import check_threads
from fillmask_ui.schema import from_json
from fillmask_ui.training.blend import blend_with_start, copy_weights
from fillmask_ui.training.corpus import CorpusPart, read_paragraphs, tokenize_once
from fillmask_ui.training.loop import Trainer
from fillmask_ui.training.recipe import LogRow, Recipe
from fillmask_ui.training.trim import trim, trim_as
from fillmask_ui.training.weights import (
    Weights,
    dropout_values,
    load_tokenizer,
    load_weights,
    new_model,
    train_tokenizer,
)


@dataclass(frozen=True)
class RunRequest:
    """What a run starts from: weights (`init`) or, from scratch, a config."""

    texts: tuple[CorpusPart, ...]  # the training text
    output: Path  # folder of the run
    init: str | None = None  # folder (or hub id) of the weights to continue from
    config: Path | None = None  # Hugging Face config file
    # Trim the vocabulary of `init` to so many tokens; from scratch, the size of the tokenizer that
    # is trained on the text.
    vocabulary_size: int | None = None
    threads: int | None = None  # CPU threads; None leaves torch's choice

    def __post_init__(self) -> None:
        if (self.init is None) == (self.config is None):
            raise OptionError("give either --init (weights) or --config (from scratch)")
        if not self.texts:
            raise OptionError("give at least one text file")
        if (self.vocabulary_size or 0) > MOST_VOCABULARY:
            raise OptionError(
                f"--vocabulary-size must be at most {MOST_VOCABULARY:,}; it was "
                f"{self.vocabulary_size:,}"
            )


@dataclass(frozen=True)
class PreparedRun:
    """A trainer and the files it writes."""

    trainer: Trainer  # ready to run, resumed if the folder held a checkpoint
    output: Path  # folder of the run
    resumed: bool  # whether a checkpoint was found
    start: dict[str, torch.Tensor] | None  # the initial weights, to average with at the end
    missing: tuple[str, ...]  # names of the weights that the start lacks: random numbers

    @property
    def checkpoint(self) -> Path:
        return self.output / "checkpoint.pt"

    @property
    def log(self) -> Path:
        return self.output / "log.jsonl"

    def rows(
        self, log_every: int = 10, stop: Callable[[], bool] = lambda: False
    ) -> Iterator[LogRow]:
        """Train; each row is in the log before it is yielded; the model is saved at the end.

        What is averaged at the end is the model, never the checkpoint. The arguments are those of
        `Trainer.run`; a run that is stopped leaves a checkpoint and no model.
        """
        trainer = self.trainer
        if self.log.exists():
            # The steps behind the checkpoint are trained again, or never.
            kept = [row for row in read_log(self.log) if row.step <= trainer.state.step]
            write_text("".join(map(_line, kept)), self.log)
        with self.log.open("a", encoding="utf-8") as log:
            for row in trainer.run(self.checkpoint, log_every, stop):
                log.write(_line(row))
                log.flush()
                yield row
        if not trainer.finished:
            return
        if self.start is not None:
            measured = blend_with_start(trainer, self.start)
            trials = [{"share": share, **asdict(one)} for share, one in measured.items()]
            text = json.dumps(trials, indent=2) + "\n"
            write_text(text, self.output / "blend.json")
        with quiet_transformers():
            trainer.model.save_pretrained(self.output)
            trainer.tokenizer.save_pretrained(self.output)


def _line(row: LogRow) -> str:
    return json.dumps(asdict(row)) + "\n"


def read_log(path: Path) -> list[LogRow]:
    """The rows of a log; the later row of a repeated step, no half-written last line."""
    lines = path.read_bytes().splitlines(keepends=True)
    found = [from_json(LogRow, line, str(path)) for line in lines if line.endswith(b"\n")]
    rows = {row.step: row for row in found}
    return [rows[step] for step in sorted(rows)]


@dataclass(frozen=True, kw_only=True)
class StoredRequest:
    """What `run.json` holds."""

    texts: list[dict[str, Any]]  # `file`, its name, and `share` of each
    init: str | None
    config: str | None
    vocabulary_size: int
    vocabulary_size_asked: int | None = None
    missing_in_init: list[str] = field(default_factory=list)
    # Runs of earlier versions do not tell it; the model's config does.
    dropout: dict[str, float] | None = None
    recipe: dict[str, Any]  # of earlier versions too, with fewer options
    parameters: int = 0
    segments: int = 0
    tokens: int = 0
    characters: int
    segment_form: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    # Texts, characters and recipe that were asked for before, each `until_step`.
    earlier: list[dict[str, Any]] = field(default_factory=list)


def read_request(folder: Path) -> StoredRequest | None:
    """What the run in a folder was asked for; None if the folder holds no run."""
    path = folder / "run.json"
    if not path.exists():
        return None
    asked = from_json(StoredRequest, path.read_bytes(), str(path))
    if asked.dropout is None:
        asked = replace(asked, dropout=dropout_values(read_config(folder).raw))
    return asked


def prepare(request: RunRequest, recipe: Recipe) -> PreparedRun:
    """Read the text, load or make the model, resume where the folder holds a checkpoint.

    A folder that was not there before is removed where this fails.

    Raises:
        FillmaskError: for texts, models, options or checkpoints that cannot be used.
    """
    if recipe.blend and request.init is None:
        raise OptionError("averaging with the start (--blend) needs weights to start from: --init")
    check_threads(request.threads)
    _refuse_model(request.output)
    if request.threads:
        torch.set_num_threads(request.threads)
    with _fresh(request.output):
        return _prepared(request, recipe)


def _refuse_model(folder: Path) -> None:
    """An `OptionError` for a file, and for a folder with a model that no run has made."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise OptionError(f"{folder} is a file, or a link that leads nowhere: name a folder")
    if (folder / "run.json").exists() or (folder / "checkpoint.pt").exists():
        return
    files = names_in(folder)
    if found := [name for name in files if name in (WEIGHTS, INDEX) or ONNX.fullmatch(name)]:
        raise OptionError(
            f"{folder} holds a model ({found[0]}), which the training would replace: name another "
            "folder with --output"
        )


@contextmanager
def _fresh(folder: Path) -> Iterator[None]:
    """A folder that is there; one that was not before is removed where this fails."""
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if made:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _prepared(request: RunRequest, recipe: Recipe) -> PreparedRun:
    output = request.output
    before = read_request(output)
    if before is not None:
        _refuse_another_start(request, before)
    torch.manual_seed(recipe.seed)
    resumed = (output / "checkpoint.pt").exists()
    loaded = _load_start(request, recipe, resumed)
    _check_length(loaded, recipe)
    loaded.tokenizer.save_pretrained(output / "tokenizer")
    tokens = output / "tokens.npz"
    segments = tokenize_once(request.texts, loaded.tokenizer, recipe.block_tokens, tokens)
    trainer = Trainer(loaded.model, loaded.tokenizer, segments, recipe)
    start = copy_weights(trainer.model) if recipe.blend else None
    prepared = PreparedRun(trainer, output, resumed, start, loaded.missing)
    if resumed:
        trainer.load(prepared.checkpoint)
    content = _content(request, prepared, before)
    write_text(json.dumps(asdict(content), indent=2) + "\n", output / "run.json")
    return prepared


def _load_start(request: RunRequest, recipe: Recipe, resumed: bool) -> Weights:
    """The model and tokenizer that a run starts from; a folder that has a tokenizer keeps it."""
    stored, size = request.output / "tokenizer", request.vocabulary_size
    if request.config is not None:
        if stored.exists():
            tokenizer = load_tokenizer(stored)
        else:
            tokenizer = train_tokenizer(read_paragraphs(request.texts).texts, size or 16_000)
        return Weights(new_model(request.config, tokenizer, recipe.device), tokenizer)
    loaded = load_weights(request.init or "", recipe.device)
    model, tokenizer = loaded.model, loaded.tokenizer
    if resumed and stored.exists():
        own = load_tokenizer(stored)
        if own.get_vocab() != tokenizer.get_vocab():
            trim_as(model, tokenizer, own)
            tokenizer = own
    elif size and size != model.config.vocab_size:
        cache = request.output / "tokens-untrimmed.npz"
        whole = tokenize_once(request.texts, tokenizer, recipe.block_tokens, cache)
        tokenizer = trim(model, tokenizer, whole.ids, size)
    return Weights(model, tokenizer, loaded.missing)


def _check_length(start: Weights, recipe: Recipe) -> None:
    """A text fills a row at most, so no longer ones are of use."""
    longest = ModelConfig(start.model.config.to_dict()).usable_positions
    if longest is not None and recipe.block_tokens > longest:
        raise OptionError(
            f"--block-tokens must be at most {longest:,}, the longest text that the model takes; "
            f"it was {recipe.block_tokens:,}"
        )


def _refuse_another_start(request: RunRequest, before: StoredRequest) -> None:
    """One folder holds one run: another start or vocabulary would be ignored or mixed up."""
    config = request.config and str(request.config)
    for name, was, now in (
        ("init", before.init, request.init),
        ("config", before.config, config),
    ):
        if was != now and not (was and now and Path(was).resolve() == Path(now).resolve()):
            start = f"--{name} {was}" if was else f"without --{name}"
            raise OptionError(
                f"the run in {request.output} was started {start}; ask for the same to go on, or "
                "give another output folder to start anew"
            )
    size = request.vocabulary_size
    # The text may have had fewer tokens to offer than were asked for.
    if size and size not in (before.vocabulary_size, before.vocabulary_size_asked):
        raise OptionError(
            f"the run in {request.output} has a vocabulary of {before.vocabulary_size:,} "
            "tokens; leave --vocabulary-size out to go on, or give another output folder to "
            "start anew"
        )


def _content(
    request: RunRequest, prepared: PreparedRun, before: StoredRequest | None
) -> StoredRequest:
    trainer = prepared.trainer
    segments, config = trainer.segments, trainer.model.config
    content = StoredRequest(
        texts=[{"file": s.path.name, "share": s.share} for s in request.texts],
        init=request.init,
        config=str(request.config) if request.config else None,
        vocabulary_size=config.vocab_size,
        vocabulary_size_asked=request.vocabulary_size
        or getattr(before, "vocabulary_size_asked", None),
        missing_in_init=list(prepared.missing),
        dropout=dropout_values(config.to_dict()),
        recipe=asdict(trainer.recipe),
        parameters=sum(p.numel() for p in trainer.model.parameters()),
        segments=len(segments),
        tokens=len(segments.ids),
        characters=segments.characters,
        segment_form=asdict(trainer.network.form),
        versions={lib.__name__: lib.__version__ for lib in (torch, transformers, np)},
    )
    step = trainer.state.step
    if not (step and before):
        return content
    # What was asked for up to this step, where that differs from what is asked for now.
    asked = {name: getattr(before, name) for name in ("texts", "characters", "recipe")}
    changed = any(asked[name] != getattr(content, name) for name in asked)
    return replace(content, earlier=before.earlier + [{"until_step": step, **asked}] * changed)
