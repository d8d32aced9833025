"""One training run in one folder.

Layout of the folder:

    run.json             what was asked: texts, start, recipe, versions; what was asked earlier
                         where a resumed run was given other texts or another recipe; what the
                         start lacks; the model's dropout
    tokenizer/           the tokenizer of the run (trained or trimmed where asked)
    checkpoint.pt        to resume from
    log.jsonl            one LogRow per line
    blend.json           the shares that were measured at the end, where asked for, the best first
    config.json, ...     the trained model, a Hugging Face folder, when the run is over
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
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
from fillmask_ui.models.model_files import ModelConfig, names_in, read_config
from fillmask_ui.models.runtime_model import check_threads
from fillmask_ui.models.runtimes import RUNTIMES
from fillmask_ui.schema import from_json
from fillmask_ui.training.corpus import CorpusPart, Paragraphs, read_paragraphs, tokenize
from fillmask_ui.training.torch_weights import (
    Weights,
    load_tokenizer,
    load_weights,
    new_model,
    train_tokenizer,
)
from fillmask_ui.training.training_loop import Trainer, Validation
from fillmask_ui.training.training_recipe import LogRow, TrainingRecipe
from fillmask_ui.training.vocabulary_trimming import trim, trim_as

# Of the trained weights, in the averages with the start that are tried at the end.
SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
# What configs call the dropout of heads that a masked LM does not have.
_OTHER_HEADS = ("classifier", "cls", "pooler", "qa", "seq_classif", "summary")


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


def read_log(path: Path) -> list[LogRow]:
    """The rows of a log; the later row of a repeated step, no half-written last line."""
    lines = path.read_bytes().splitlines(keepends=True)
    found = [from_json(LogRow, line, str(path)) for line in lines if line.endswith(b"\n")]
    rows = {row.step: row for row in found}
    return [rows[step] for step in sorted(rows)]


def missing_note(names: Sequence[str]) -> str:
    """A remark on weights that a start lacks.

    >>> missing_note(["head.bias", "head.weight"])
    '2 tensors that the start lacks, such as head.bias, began as random numbers'
    """
    return f"{len(names)} tensors that the start lacks, such as {names[0]}, began as random numbers"


def dropout_values(config: dict[str, Any]) -> dict[str, float]:
    """What a Hugging Face config says of dropout in a masked LM, zeros left out.

    >>> dropout_values({"hidden_dropout_prob": 0.1, "attention_dropout": 0.0, "qa_dropout": 0.1})
    {'hidden_dropout_prob': 0.1}
    """
    return {
        name: value
        for name, value in config.items()
        if "drop" in name
        and not name.startswith(_OTHER_HEADS)
        and isinstance(value, float)
        and value > 0
    }


@dataclass(frozen=True)
class TrainingRun:
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
            trials = [
                {"share": share, **asdict(one)}
                for share, one in blend_with_start(trainer, self.start).items()
            ]
            write_text(json.dumps(trials, indent=2) + "\n", self.output / "blend.json")
        with quiet_transformers():
            trainer.model.save_pretrained(self.output)
            trainer.tokenizer.save_pretrained(self.output)


def _line(row: LogRow) -> str:
    return json.dumps(asdict(row)) + "\n"


def copy_weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """A copy of a model's state that later training does not change."""
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def blend_with_start(trainer: Trainer, start: dict[str, torch.Tensor]) -> dict[float, Validation]:
    """Average the trained weights with the initial ones; the best average stays in the model.

    Both are good and err differently, and a share of the old weights often lowers the loss on text
    that neither saw.

    Returns:
        What each share of the trained weights scores in validation, the best first.

    Source:
        Wortsman et al. 2022, "Robust fine-tuning of zero-shot models", arXiv:2109.01903.
    """
    trained = copy_weights(trainer.model)

    def load(share: float) -> None:
        blended = {
            # What is no float, such as a counter, stays as trained.
            name: torch.lerp(start[name], tensor, share) if tensor.is_floating_point() else tensor
            for name, tensor in trained.items()
        }
        trainer.model.load_state_dict(blended)

    measured = {}
    for share in SHARES:
        load(share)
        measured[share] = trainer.validate()
    ranked = sorted(SHARES, key=lambda share: measured[share].nll_nats)
    load(ranked[0])
    return {share: measured[share] for share in ranked}


def prepare(request: RunRequest, recipe: TrainingRecipe) -> TrainingRun:
    """Read the text, load or make the model, resume where the folder holds a checkpoint.

    Nothing is written where this fails.

    Raises:
        FillmaskError: for texts, models, options or checkpoints that cannot be used.
    """
    output = request.output
    if recipe.blend and request.init is None:
        raise OptionError("averaging with the start (--blend) needs weights to start from: --init")
    check_threads(request.threads)
    _refuse_model(output)
    before = read_request(output)
    if before is not None:
        _refuse_another_start(request, before)
    if request.threads:
        torch.set_num_threads(request.threads)
    torch.manual_seed(recipe.seed)
    resumed = (output / "checkpoint.pt").exists()
    paragraphs = read_paragraphs(request.texts)
    loaded = _load_start(request, recipe, paragraphs, resumed)
    _check_length(loaded, recipe)
    segments = tokenize(paragraphs, loaded.tokenizer, recipe.block_tokens)
    trainer = Trainer(loaded.model, loaded.tokenizer, segments, recipe)
    start = copy_weights(trainer.model) if recipe.blend else None
    run = TrainingRun(trainer, output, resumed, start, loaded.missing)
    if resumed:
        trainer.load(run.checkpoint)
    output.mkdir(parents=True, exist_ok=True)
    loaded.tokenizer.save_pretrained(output / "tokenizer")
    content = _content(request, run, before)
    write_text(json.dumps(asdict(content), indent=2) + "\n", output / "run.json")
    return run


def _refuse_model(folder: Path) -> None:
    """An `OptionError` for a folder with a model that no run has made."""
    if (folder / "run.json").exists() or (folder / "checkpoint.pt").exists():
        return
    files = names_in(folder)
    if found := [name for row in RUNTIMES.values() for name in row.among(files)]:
        raise OptionError(
            f"{folder} holds a model ({found[0]}), which the training would replace: name another "
            "folder with --output"
        )


def _refuse_another_start(request: RunRequest, before: StoredRequest) -> None:
    """One folder holds one run: another start or vocabulary would be ignored or mixed up."""
    anew = "give another output folder to start anew"
    config = request.config and str(request.config)
    for name, was, now in (
        ("init", before.init, request.init),
        ("config", before.config, config),
    ):
        if was != now and not (was and now and Path(was).resolve() == Path(now).resolve()):
            start = f"--{name} {was}" if was else f"without --{name}"
            raise OptionError(
                f"the run in {request.output} was started {start}; ask for the same to go on, or "
                f"{anew}"
            )
    size = request.vocabulary_size
    # The text may have had fewer tokens to offer than were asked for.
    if size and size not in (before.vocabulary_size, before.vocabulary_size_asked):
        raise OptionError(
            f"the run in {request.output} has a vocabulary of {before.vocabulary_size:,} tokens; "
            f"leave --vocabulary-size out to go on, or {anew}"
        )


def _load_start(
    request: RunRequest, recipe: TrainingRecipe, paragraphs: Paragraphs, resumed: bool
) -> Weights:
    """The model and tokenizer that a run starts from; a folder that has a tokenizer keeps it."""
    stored, size = request.output / "tokenizer", request.vocabulary_size
    if request.config is not None:
        if stored.exists():
            tokenizer = load_tokenizer(stored)
        else:
            tokenizer = train_tokenizer(paragraphs.texts, size or 16_000)
        return Weights(new_model(request.config, tokenizer, recipe.device), tokenizer)
    loaded = load_weights(request.init or "", recipe.device)
    model, tokenizer = loaded.model, loaded.tokenizer
    if resumed and stored.exists():
        own = load_tokenizer(stored)
        if own.get_vocab() != tokenizer.get_vocab():
            trim_as(model, tokenizer, own)
            tokenizer = own
    elif size and size != model.config.vocab_size:
        whole = tokenize(paragraphs, tokenizer, recipe.block_tokens)
        tokenizer = trim(model, tokenizer, whole.ids, size)
    return replace(loaded, tokenizer=tokenizer)


def _check_length(start: Weights, recipe: TrainingRecipe) -> None:
    """A text fills a row at most, so no longer ones are of use."""
    longest = ModelConfig(start.model.config.to_dict()).usable_positions
    if longest is not None and recipe.block_tokens > longest:
        raise OptionError(
            f"--block-tokens must be at most {longest:,}, the longest text that the model takes; "
            f"it was {recipe.block_tokens:,}"
        )


def _content(request: RunRequest, run: TrainingRun, before: StoredRequest | None) -> StoredRequest:
    trainer = run.trainer
    segments, config = trainer.segments, trainer.model.config
    asked_size = request.vocabulary_size or getattr(before, "vocabulary_size_asked", None)
    content = StoredRequest(
        texts=[{"file": part.path.name, "share": part.share} for part in request.texts],
        init=request.init,
        config=str(request.config) if request.config else None,
        vocabulary_size=config.vocab_size,
        vocabulary_size_asked=asked_size,
        missing_in_init=list(run.missing),
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
