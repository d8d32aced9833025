"""One training run in one folder.

Layout of the folder:

    run.json             what was asked: texts, start, recipe, versions; what was asked earlier
                         where a resumed run was given other texts or another recipe
    tokens.npz           the text as token ids
    tokenizer/           the tokenizer of the run (trained or trimmed where asked)
    checkpoint.pt        to resume from
    log.jsonl            one LogRow a line
    blend.json           the shares that were measured at the end, where asked for, the best first
    config.json, ...     the trained model, a Hugging Face folder, when the run is over
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.models.quiet import quiet_transformers
from fillmask_ui.training.blend import blend_with_start, copy_weights
from fillmask_ui.training.corpus import TextSource, read_paragraphs, tokenize_once
from fillmask_ui.training.loop import Trainer
from fillmask_ui.training.recipe import LogRow, Recipe
from fillmask_ui.training.trim import token_counts, trim_model, trim_tokenizer
from fillmask_ui.training.weights import load_weights


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

    texts: tuple[TextSource, ...]
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
    """

    trainer: Trainer
    output: Path
    resumed: bool
    start: dict[str, torch.Tensor] | None = None

    @property
    def checkpoint(self) -> Path:
        return self.output / "checkpoint.pt"

    @property
    def log(self) -> Path:
        return self.output / "log.jsonl"

    def rows(self, log_every: int = 10) -> Iterator[LogRow]:
        """Train; each row is in the log before it is yielded; the model is saved at the end.

        What is averaged at the end is the model, never the checkpoint.
        """
        with self.log.open("a", encoding="utf-8") as log:
            for row in self.trainer.run(self.checkpoint, log_every):
                log.write(json.dumps(row.to_dict()) + "\n")
                log.flush()
                yield row
        if self.start is not None:
            trials = [one.to_dict() for one in blend_with_start(self.trainer, self.start)]
            text = json.dumps(trials, indent=2) + "\n"
            (self.output / "blend.json").write_text(text, encoding="utf-8")
        with quiet_transformers():
            self.trainer.model.save_pretrained(self.output)
            self.trainer.tokenizer.save_pretrained(self.output)


def read_log(path: Path) -> list[LogRow]:
    """The rows of a log; a resumed run's repeated steps keep the later row.

    Raises:
        DataError: if the file is missing or no log.
    """
    rows: dict[int, LogRow] = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = LogRow(**json.loads(line))
            rows[row.step] = row
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path} is no training log: {error}") from error
    return [rows[step] for step in sorted(rows)]


def _attention(device: str) -> str:
    # With head sizes of 32 to 64 and rows of a few hundred tokens, torch's fused CPU kernel spends
    # more time in its backward pass than two plain matrix products do.
    return "sdpa" if device.startswith("cuda") else "eager"


def trim(model: Any, tokenizer: Any, ids: np.ndarray, size: int) -> Any:
    """Trim both to what a text needs; the trimmed tokenizer is returned.

    Args:
        model: changed in place.
        tokenizer: WordPiece.
        ids: int32, all token ids of the text.
        size: V', tokens to keep.
    """
    from tokenizers import Tokenizer

    trimming = trim_tokenizer(tokenizer, token_counts(ids, model.config.vocab_size), size)
    trim_model(model, trimming.kept)
    tokens = {name: getattr(tokenizer, name) for name in tokenizer.SPECIAL_TOKENS_ATTRIBUTES}
    named = {name: token for name, token in tokens.items() if isinstance(token, str)}
    return type(tokenizer)(
        tokenizer_object=Tokenizer.from_str(trimming.tokenizer_json),
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
    torch.manual_seed(recipe.seed)
    sources = list(request.texts)
    cache = output / "tokens.npz"
    if request.init is not None:
        loaded = load_weights(request.init, _attention(recipe.device))
        model, tokenizer = loaded.model, loaded.tokenizer
        if request.vocabulary_size and request.vocabulary_size != model.config.vocab_size:
            whole = tokenize_once(
                sources, tokenizer, recipe.block_tokens, output / "tokens-untrimmed.npz"
            )
            tokenizer = trim(model, tokenizer, whole.ids, request.vocabulary_size)
    else:
        from fillmask_ui.training.scratch import new_model, train_tokenizer

        tokenizer_folder = output / "tokenizer"
        if tokenizer_folder.exists():
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
        else:
            paragraphs = [text for source in sources for text in read_paragraphs(source)]
            tokenizer = train_tokenizer(paragraphs, request.vocabulary_size or 16_000)
        model = new_model(request.config, tokenizer, _attention(recipe.device))
    tokenizer.save_pretrained(output / "tokenizer")
    segments = tokenize_once(sources, tokenizer, recipe.block_tokens, cache)
    trainer = Trainer(model, tokenizer, segments, recipe)
    start = copy_weights(trainer.model) if recipe.blend else None
    prepared = PreparedRun(trainer, output, (output / "checkpoint.pt").exists(), start)
    if prepared.resumed:
        trainer.load(prepared.checkpoint)
    _write_request(request, recipe, trainer)
    return prepared


def _write_request(request: RunRequest, recipe: Recipe, trainer: Trainer) -> None:
    import transformers

    content = {
        "texts": [{"file": s.path.name, "share": s.share} for s in request.texts],
        "init": request.init,
        "config": request.config and str(request.config),
        "vocabulary_size": trainer.model.config.vocab_size,
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
    path = request.output / "run.json"
    content["earlier"] = _earlier(path, content, trainer.state.step)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _earlier(path: Path, content: dict[str, Any], step: int) -> list[dict[str, Any]]:
    """What a run was asked for up to `step`, where that differs from what it is asked for now."""
    if step == 0 or not path.exists():
        return []
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
        asked = {name: before[name] for name in ("texts", "characters", "recipe")}
        earlier = list(before.get("earlier", []))
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is not what a run wrote: {error}; delete it to go on") from error
    if any(asked[name] != content[name] for name in asked):
        earlier.append({"until_step": step, **asked})
    return earlier
