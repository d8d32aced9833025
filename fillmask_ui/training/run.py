"""One training run in one folder.

Layout of the folder:

    run.json             what was asked: texts, start, recipe, versions; what was asked earlier
                         where a resumed run was given other texts or another recipe; what the
                         start lacks; the model's dropout
    tokens.npz           the text as token ids
    tokenizer/           the tokenizer of the run (trained or trimmed where asked)
    checkpoint.pt        to resume from
    log.jsonl            one LogRow a line
    blend.json           the shares that were measured at the end, where asked for, the best first
    config.json, ...     the trained model, a Hugging Face folder, when the run is over
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.models.quiet import quiet_transformers
from fillmask_ui.training.blend import blend_with_start, copy_weights
from fillmask_ui.training.corpus import CorpusPart, read_paragraphs, tokenize_once
from fillmask_ui.training.loop import Trainer
from fillmask_ui.training.recipe import LogRow, Recipe
from fillmask_ui.training.trim import kept_ids, token_counts, trim_model, trim_tokenizer
from fillmask_ui.training.weights import Weights, dropout_values, load_weights


@dataclass(frozen=True)
class RunRequest:
    """What a run starts from.

    Attributes:
        texts: the training text.
        output: folder of the run.
        init: folder (or hub id) of the weights to continue from.
        config: Hugging Face config file to start from scratch with; one of the two is given.
        vocabulary_size: trim the vocabulary of `init` to so many tokens; from scratch, the size
            of the tokenizer that is trained on the text.
        threads: CPU threads; None leaves torch's choice.
    """

    texts: tuple[CorpusPart, ...]
    output: Path
    init: str | None = None
    config: Path | None = None
    vocabulary_size: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if (self.init is None) == (self.config is None):
            raise OptionError("give either --init (weights) or --config (from scratch)")
        if not self.texts:
            raise OptionError("give at least one text file")


@dataclass(frozen=True)
class PreparedRun:
    """A trainer and the files it writes.

    Attributes:
        trainer: ready to run, resumed if the folder held a checkpoint.
        output: folder of the run.
        resumed: whether a checkpoint was found.
        start: a copy of the initial weights, where the recipe averages with them at the end.
        missing: names of the weights that the start lacks; they began as random numbers.
    """

    trainer: Trainer
    output: Path
    resumed: bool
    start: dict[str, torch.Tensor] | None = None
    missing: tuple[str, ...] = ()

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

        What is averaged at the end is the model, never the checkpoint.

        Args:
            log_every: steps between rows.
            stop: asked after each step; where true, the checkpoint is saved and training ends
                before its time, without a model.
        """
        self._cut_log()
        with self.log.open("a", encoding="utf-8") as log:
            for row in self.trainer.run(self.checkpoint, log_every, stop):
                log.write(json.dumps(row.to_dict()) + "\n")
                log.flush()
                yield row
        if not self.trainer.finished:
            return
        if self.start is not None:
            trials = [one.to_dict() for one in blend_with_start(self.trainer, self.start)]
            text = json.dumps(trials, indent=2) + "\n"
            (self.output / "blend.json").write_text(text, encoding="utf-8")
        with quiet_transformers():
            self.trainer.model.save_pretrained(self.output)
            self.trainer.tokenizer.save_pretrained(self.output)

    def _cut_log(self) -> None:
        """Drop the rows behind the checkpoint: those steps are trained again, or never."""
        if not self.log.exists():
            return
        kept = [row for row in read_log(self.log) if row.step <= self.trainer.state.step]
        partial = self.log.with_suffix(".partial")
        text = "".join(json.dumps(row.to_dict()) + "\n" for row in kept)
        partial.write_text(text, encoding="utf-8")
        partial.replace(self.log)


def read_log(path: Path) -> list[LogRow]:
    """The rows of a log; the later row of a repeated step, no half-written last line.

    Raises:
        DataError: if the file is missing or no log.
    """
    rows: dict[int, LogRow] = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if not line.endswith("\n"):
                break
            row = LogRow(**json.loads(line))
            rows[row.step] = row
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path} is no training log: {error}") from error
    return [rows[step] for step in sorted(rows)]


def _attention(device: str) -> str | None:
    # On cuda transformers takes its fused attention where the architecture has one. On the CPU,
    # with head sizes of 32 to 64 and rows of a few hundred tokens, torch's fused kernel spends
    # more time in its backward pass than two plain matrix products do.
    return None if device.startswith("cuda") else "eager"


def trim(model: Any, tokenizer: Any, ids: np.ndarray, size: int) -> Any:
    """Trim both to what a text needs; the trimmed tokenizer is returned.

    Args:
        model: changed in place.
        tokenizer: WordPiece.
        ids: int32, all token ids of the text.
        size: V', tokens to keep.
    """
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    trimming = trim_tokenizer(tokenizer, token_counts(ids, model.config.vocab_size), size)
    trim_model(model, trimming.kept)
    tokens = {name: getattr(tokenizer, name) for name in tokenizer.SPECIAL_TOKENS_ATTRIBUTES}
    named = {name: token for name, token in tokens.items() if isinstance(token, str)}
    # The class of a family would build its normalizer anew, from other arguments than its file's.
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(trimming.tokenizer_json),
        model_input_names=tokenizer.model_input_names,
        model_max_length=tokenizer.model_max_length,
        **named,
    )


def prepare(request: RunRequest, recipe: Recipe) -> PreparedRun:
    """Read the text, load or make the model, resume where the folder holds a checkpoint.

    Raises:
        FillmaskError: for texts, models, options or checkpoints that cannot be used.
    """
    if recipe.blend and request.init is None:
        raise OptionError("averaging with the start (--blend) needs weights to start from: --init")
    if request.threads:
        torch.set_num_threads(request.threads)
    output = request.output
    output.mkdir(parents=True, exist_ok=True)
    before = _read_before(output / "run.json")
    _refuse_another_start(request, before)
    torch.manual_seed(recipe.seed)
    resumed = (output / "checkpoint.pt").exists()
    if request.init is None:
        loaded = _from_scratch(request, recipe)
    else:
        loaded = _from_weights(request, recipe, resumed)
    loaded.tokenizer.save_pretrained(output / "tokenizer")
    segments = tokenize_once(
        list(request.texts), loaded.tokenizer, recipe.block_tokens, output / "tokens.npz"
    )
    trainer = Trainer(loaded.model, loaded.tokenizer, segments, recipe)
    start = copy_weights(trainer.model) if recipe.blend else None
    prepared = PreparedRun(trainer, output, resumed, start, loaded.missing)
    if resumed:
        trainer.load(prepared.checkpoint)
    _write_request(request, recipe, prepared, before)
    return prepared


def _from_weights(request: RunRequest, recipe: Recipe, resumed: bool) -> Weights:
    """The weights of --init with all tokens or, in a resumed run, with those that it kept."""
    loaded = load_weights(request.init, _attention(recipe.device))
    model, tokenizer = loaded.model, loaded.tokenizer
    size, stored = request.vocabulary_size, request.output / "tokenizer"
    if resumed and stored.exists():
        own = _load_tokenizer(stored)
        if own.get_vocab() != tokenizer.get_vocab():
            trim_model(model, kept_ids(tokenizer, own))
            tokenizer = own
    elif size and size != model.config.vocab_size:
        cache = request.output / "tokens-untrimmed.npz"
        whole = tokenize_once(list(request.texts), tokenizer, recipe.block_tokens, cache)
        tokenizer = trim(model, tokenizer, whole.ids, size)
    return Weights(model, tokenizer, loaded.missing)


def _from_scratch(request: RunRequest, recipe: Recipe) -> Weights:
    """Random weights and a tokenizer of the text; a folder that has one keeps it."""
    from fillmask_ui.training.scratch import new_model, train_tokenizer

    stored = request.output / "tokenizer"
    if stored.exists():
        tokenizer = _load_tokenizer(stored)
    else:
        paragraphs = read_paragraphs(request.texts).texts
        tokenizer = train_tokenizer(paragraphs, request.vocabulary_size or 16_000)
    return Weights(new_model(request.config, tokenizer, _attention(recipe.device)), tokenizer)


def _load_tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def _read_before(path: Path) -> dict[str, Any] | None:
    """What the folder's run was asked for before; None for a new one.

    Raises:
        DataError: if the file is not what a run wrote.
    """
    if not path.exists():
        return None
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
        for name in ("texts", "characters", "recipe", "init", "config", "vocabulary_size"):
            before[name]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is not what a run wrote: {error}; delete it to go on") from error
    return before


def _refuse_another_start(request: RunRequest, before: dict[str, Any] | None) -> None:
    """One folder holds one run: another start or vocabulary would be ignored or mixed up.

    Raises:
        OptionError: if the request names another than before.
    """
    if before is None:
        return
    config = request.config and str(request.config)
    for name, now in (("init", request.init), ("config", config)):
        was = before[name]
        if was != now and not (was and now and Path(was).resolve() == Path(now).resolve()):
            told = f"--{name} {was}" if was else f"without --{name}"
            raise OptionError(
                f"the run in {request.output} was started {told}; ask for the same to go on, or "
                "give another output folder to start anew"
            )
    size = request.vocabulary_size
    # The text may have had fewer tokens to offer than were asked for.
    if size and size not in (before["vocabulary_size"], before.get("vocabulary_size_asked")):
        raise OptionError(
            f"the run in {request.output} has a vocabulary of {before['vocabulary_size']:,} "
            "tokens; leave --vocabulary-size out to go on, or give another output folder to "
            "start anew"
        )


def _write_request(
    request: RunRequest, recipe: Recipe, prepared: PreparedRun, before: dict[str, Any] | None
) -> None:
    import transformers

    trainer = prepared.trainer
    content = {
        "texts": [{"file": s.path.name, "share": s.share} for s in request.texts],
        "init": request.init,
        "config": request.config and str(request.config),
        "vocabulary_size": trainer.model.config.vocab_size,
        "vocabulary_size_asked": request.vocabulary_size
        or (before or {}).get("vocabulary_size_asked"),
        "missing_in_init": list(prepared.missing),
        "dropout": dropout_values(trainer.model.config.to_dict()),
        "recipe": asdict(recipe),
        "parameters": sum(p.numel() for p in trainer.model.parameters()),
        "segments": len(trainer.segments),
        "tokens": len(trainer.segments.ids),
        "characters": trainer.segments.characters,
        "segment_form": asdict(trainer.network.form),
        "versions": {
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "numpy": np.__version__,
        },
    }
    content["earlier"] = _earlier(before, content, trainer.state.step)
    text = json.dumps(content, indent=2) + "\n"
    (request.output / "run.json").write_text(text, encoding="utf-8")


def _earlier(
    before: dict[str, Any] | None, content: dict[str, Any], step: int
) -> list[dict[str, Any]]:
    """What a run was asked for up to `step`, where that differs from what it is asked for now."""
    if step == 0 or before is None:
        return []
    asked = {name: before[name] for name in ("texts", "characters", "recipe")}
    earlier = list(before.get("earlier", []))
    if any(asked[name] != content[name] for name in asked):
        earlier.append({"until_step": step, **asked})
    return earlier
