"""One training run in one folder.

run.json             the request: texts, start, recipe, versions, dropout; those of earlier stages
tokenizer/           the tokenizer of the run, trained or trimmed on request
checkpoint.pt        to resume from
log.jsonl            one `LogRow` a line
blend.json           with `blend`: the shares measured at the end, the best first
config.json, ...     the trained model, a Hugging Face folder, when the run is over
"""

import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from fillmask_ui.errors import OptionError
from fillmask_ui.features.train import torch_weights
from fillmask_ui.features.train.corpus import read_paragraphs, tokenize
from fillmask_ui.features.train.training_loop import Trainer, Validation
from fillmask_ui.features.train.training_recipe import LogRow, RunRequest, TrainingRecipe
from fillmask_ui.files import write_text
from fillmask_ui.models.loading_progress import quiet_transformers
from fillmask_ui.models.model_choice import check_threads
from fillmask_ui.models.model_files import ModelConfig, names_in
from fillmask_ui.models.runtimes import RUNTIMES
from fillmask_ui.schema import from_json

CHECKPOINT = "checkpoint.pt"
# Of the trained weights, in the averages with the start that are tried at the end.
SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
# What configs call the dropout of heads that a masked LM does not have.
_OTHER_HEADS = ("classifier", "cls", "pooler", "qa", "seq_classif", "summary")


@dataclass(frozen=True, kw_only=True)
class StoredRequest:
    """The content of `run.json`."""

    texts: list[dict[str, Any]]  # `file`, its name, and `share` of each
    init: str | None
    config: str | None
    vocabulary_size: int
    requested_vocabulary_size: int | None
    missing_in_init: list[str]
    dropout: dict[str, float]
    recipe: TrainingRecipe
    parameters: int
    segments: int
    tokens: int
    characters: int
    segment_form: dict[str, Any]
    versions: dict[str, str]
    # Texts, characters and recipe of earlier stages, each `until_step`.
    earlier: list[dict[str, Any]]


def read_request(folder: Path) -> StoredRequest | None:
    """What the run in a folder was asked for; None if the folder holds no run."""
    path = folder / "run.json"
    if not path.exists():
        return None
    return from_json(StoredRequest, path.read_bytes(), str(path))


def read_log(path: Path) -> list[LogRow]:
    """The rows of a log without a half-written last line."""
    lines = path.read_bytes().splitlines(keepends=True)
    return [from_json(LogRow, line, str(path)) for line in lines if line.endswith(b"\n")]


def missing_note(names: Sequence[str]) -> str:
    """A remark on weights that a start lacks."""
    return f"{len(names)} tensors that the start lacks, such as {names[0]}, began as random numbers"


def dropout_values(config: dict[str, Any]) -> dict[str, float]:
    """The dropout of a masked LM in a Hugging Face config, zeros left out.

    >>> dropout_values({"hidden_dropout_prob": 0.1, "attention_dropout": 0.0, "qa_dropout": 0.1})
    {'hidden_dropout_prob': 0.1}
    """
    return {
        name: rate
        for name, rate in config.items()
        if "drop" in name and isinstance(rate, float) and rate
        if not name.startswith(_OTHER_HEADS)
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
    def log(self) -> Path:
        return self.output / "log.jsonl"

    def rows(
        self, log_every: int = 10, stop: Callable[[], bool] = lambda: False
    ) -> Iterator[LogRow]:
        """Train as `Trainer.run`, each row logged before it is yielded; save the model at the end.

        Averaging with the start changes the saved model, never the checkpoint.
        """
        trainer = self.trainer
        if self.log.exists():
            # The steps behind the checkpoint are trained again, or never.
            rows = [row for row in read_log(self.log) if row.step <= trainer.state.step]
            write_text("".join(map(_line, rows)), self.log)
        with self.log.open("a", encoding="utf-8") as log:
            for row in trainer.run(self.output / CHECKPOINT, log_every, stop):
                log.write(_line(row))
                log.flush()
                yield row
        if not trainer.finished:
            return
        if self.start is not None:
            validations = blend_with_start(trainer, self.start)
            trials = [{"share": share, **asdict(result)} for share, result in validations.items()]
            write_text(json.dumps(trials, indent=2) + "\n", self.output / "blend.json")
        with quiet_transformers():
            trainer.model.save_pretrained(self.output)
            trainer.tokenizer.save_pretrained(self.output)


def _line(row: LogRow) -> str:
    return json.dumps(asdict(row)) + "\n"


def blend_with_start(trainer: Trainer, start: dict[str, torch.Tensor]) -> dict[float, Validation]:
    """Average the trained weights with the initial ones, and keep the best average in the model.

    Returns the validation of each share of the trained weights, the best first.

    Source:
        Wortsman et al. 2022, "Robust fine-tuning of zero-shot models", arXiv:2109.01903.
    """
    trained = deepcopy(trainer.model.state_dict())

    def load(share: float) -> None:
        blended = {
            # Integers, such as a counter, stay as trained.
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
    """Read the text, load or make the model, resume; nothing is written if that fails."""
    output = request.output
    if recipe.blend and request.init is None:
        raise OptionError("averaging with the start (--blend) needs weights to start from: --init")
    check_threads(request.threads)
    resumed = (output / CHECKPOINT).exists()
    before = read_request(output)
    if before is not None:
        _refuse_another_start(request, before)
    elif not resumed:
        _refuse_model(output)
    if request.threads:
        torch.set_num_threads(request.threads)
    torch.manual_seed(recipe.seed)
    paragraphs = read_paragraphs(request.texts)

    # A folder that has a tokenizer keeps it.
    stored, size = output / "tokenizer", request.vocabulary_size
    missing: tuple[str, ...] = ()
    if request.config is not None:
        if stored.exists():
            tokenizer = torch_weights.load_tokenizer(stored)
        else:
            tokenizer = torch_weights.train_tokenizer(paragraphs.texts, size or 16_000)
        model = torch_weights.new_model(request.config, tokenizer, recipe.device)
    else:
        loaded = torch_weights.load_weights(request.init or "", recipe.device)
        model, tokenizer, missing = loaded.model, loaded.tokenizer, loaded.missing
        if resumed and stored.exists():
            stored_tokenizer = torch_weights.load_tokenizer(stored)
            if stored_tokenizer.get_vocab() != tokenizer.get_vocab():
                torch_weights.trim_as(model, tokenizer, stored_tokenizer)
                tokenizer = stored_tokenizer
        elif size and size != model.config.vocab_size:
            ids = tokenize(paragraphs, tokenizer, recipe.block_tokens).ids
            tokenizer = torch_weights.trim(model, tokenizer, ids, size)
    longest = ModelConfig(model.config.to_dict()).usable_positions
    if longest is not None and recipe.block_tokens > longest:
        raise OptionError(
            f"--block-tokens must be at most {longest:,}, the longest text that the model takes; "
            f"it was {recipe.block_tokens:,}"
        )

    segments = tokenize(paragraphs, tokenizer, recipe.block_tokens)
    trainer = Trainer(model, tokenizer, segments, recipe)
    start = deepcopy(model.state_dict()) if recipe.blend else None
    run = TrainingRun(trainer, output, resumed, start, missing)
    if resumed:
        trainer.load(output / CHECKPOINT)
    output.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(stored)
    content = json.dumps(asdict(_content(request, run, before)), indent=2)
    write_text(content + "\n", output / "run.json")
    return run


def _refuse_model(folder: Path) -> None:
    files = names_in(folder)
    if names := [name for row in RUNTIMES.values() for name in row.among(files)]:
        raise OptionError(
            f"{folder} holds a model ({names[0]}), which the training would replace: name another "
            "folder with --output"
        )


def _refuse_another_start(request: RunRequest, before: StoredRequest) -> None:
    """One folder holds one run: another start or vocabulary would be ignored or mixed up."""
    anew = "give another output folder to start anew"
    for name in ("init", "config"):
        earlier, requested = getattr(before, name), getattr(request, name)
        if earlier and requested:
            same = Path(earlier).resolve() == Path(requested).resolve()
        else:
            same = not earlier and not requested
        if not same:
            start = f"--{name} {earlier}" if earlier else f"without --{name}"
            raise OptionError(
                f"the run in {request.output} was started {start}; ask for the same to go on, or "
                f"{anew}"
            )
    size = request.vocabulary_size
    # The text may have had fewer tokens to offer than were asked for.
    if size and size not in (before.vocabulary_size, before.requested_vocabulary_size):
        raise OptionError(
            f"the run in {request.output} has a vocabulary of {before.vocabulary_size:,} tokens; "
            f"leave --vocabulary-size out to go on, or {anew}"
        )


def _content(request: RunRequest, run: TrainingRun, before: StoredRequest | None) -> StoredRequest:
    trainer = run.trainer
    segments, config, step = trainer.segments, trainer.model.config, trainer.state.step
    choices: dict[str, Any] = {
        "texts": [{"file": part.path.name, "share": part.share} for part in request.texts],
        "characters": segments.characters,
        "recipe": trainer.recipe,
    }
    earlier: list[dict[str, Any]] = []
    if before and step:
        earlier = before.earlier
        former = {name: getattr(before, name) for name in choices}
        if former != choices:
            earlier = [*earlier, {"until_step": step, **former}]
    return StoredRequest(
        **choices,
        init=request.init,
        config=str(request.config) if request.config else None,
        vocabulary_size=config.vocab_size,
        requested_vocabulary_size=request.vocabulary_size
        or (before.requested_vocabulary_size if before else None),
        missing_in_init=list(run.missing),
        dropout=dropout_values(config.to_dict()),
        parameters=sum(p.numel() for p in trainer.model.parameters()),
        segments=len(segments),
        tokens=len(segments.ids),
        segment_form=asdict(trainer.network.form),
        versions={lib.__name__: lib.__version__ for lib in (torch, transformers, np)},
        earlier=earlier,
    )
