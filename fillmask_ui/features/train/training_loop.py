"""The training loop: a generator of log rows; the caller decides what to show and when to stop.

Everything random follows from (seed, step) or (seed, epoch), so that a run resumed from a
checkpoint equals the uninterrupted one.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from fillmask_ui.errors import DataError, opening
from fillmask_ui.features.train.corpus import Blocks, Segments, epoch_blocks, held_out, pack
from fillmask_ui.features.train.hidden_position_loss import (
    HiddenBatch,
    HiddenPositionModel,
    TokenHider,
)
from fillmask_ui.features.train.training_recipe import LogRow, TrainingRecipe
from fillmask_ui.models.torch_model import torch_device

VALIDATION_SHARE = 0.15  # losses are compared at BERT's share, whatever the training share

# What cannot change when a run is resumed; its length and learning rate can.
_FIXED = ("block_tokens", "batch_blocks", "optimizer", "seed", "validation_segments")


def rate_factor(progress: float, warmup: float) -> float:
    """Factor on the peak learning rate: linear warm-up, then linear decay to zero at 1.

    >>> [rate_factor(p, 0.2) for p in (0.1, 0.2, 0.6, 1.0)]
    [0.5, 1.0, 0.5, 0.0]
    """
    return progress / warmup if progress < warmup else (1 - progress) / (1 - warmup)


def make_optimizers(model: PreTrainedModel, recipe: TrainingRecipe) -> list[torch.optim.Optimizer]:
    """AdamW, or Muon for the matrices and AdamW for the rest; only matrices decay.

    Source:
        Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/
    """
    rate, output = recipe.learning_rate, model.get_output_embeddings()
    embeddings = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, torch.nn.Embedding) or module is output
        for parameter in module.parameters()
    }
    matrices: list[torch.nn.Parameter] = []
    plain: list[torch.nn.Parameter] = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            is_matrix = parameter.ndim == 2 and id(parameter) not in embeddings
            (matrices if is_matrix else plain).append(parameter)
    decaying = {"params": matrices, "weight_decay": recipe.weight_decay}
    groups: list[dict[str, Any]] = [decaying, {"params": plain, "weight_decay": 0.0}]
    optimizers: list[torch.optim.Optimizer] = []
    if recipe.optimizer == "muon":
        optimizers.append(torch.optim.Muon([groups.pop(0)], rate, adjust_lr_fn="match_rms_adamw"))
    return [*optimizers, torch.optim.AdamW(groups, rate, betas=(0.9, 0.98), fused=True)]


@dataclass
class _State:
    step: int = 0
    elapsed_seconds: float = 0.0
    tokens: int = 0
    epoch: int = 0
    row: int = 0  # next block of the epoch


@dataclass(frozen=True)
class Validation:
    """Mean loss, and share of tokens ranked first, on segments held out of the training."""

    nll_nats: float
    top1: float


def _int64(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(values.astype(np.int64))


class Trainer:
    """Weights, optimizers and text of one run."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        segments: Segments,
        recipe: TrainingRecipe,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.recipe, self.tokenizer, self.segments, self.clock = recipe, tokenizer, segments, clock
        self.device = torch_device(recipe.device)
        self.model = model
        model.to(self.device)  # type: ignore[arg-type]
        model.config.use_cache = False
        self.network = HiddenPositionModel(model)
        if recipe.compile:
            body = model.base_model
            body.forward = torch.compile(body.forward, dynamic=False)
        self.optimizers = make_optimizers(model, recipe)
        self.hiding = TokenHider(tokenizer, model.config.vocab_size, recipe.whole_word)
        self.held_out = held_out(len(segments), recipe.validation_segments)
        self._chosen = np.setdiff1d(np.arange(len(segments)), self.held_out)
        self.state = _State()
        self._blocks = self._epoch()
        if len(self._blocks) < recipe.batch_blocks:
            raise DataError(
                f"the text fills {len(self._blocks)} blocks of {recipe.block_tokens} tokens, and a "
                f"batch has {recipe.batch_blocks}: give more text or smaller batches"
            )

    def _epoch(self) -> Blocks:
        size, seed, pad_id = self.recipe.block_tokens, self.recipe.seed, self.tokenizer.pad_token_id
        return epoch_blocks(self.segments, self._chosen, size, pad_id, seed, self.state.epoch)

    def _logits(self, hidden: HiddenBatch, batch: Blocks) -> torch.Tensor:
        """Float32 [M, V] on the device, at the hidden positions of a batch."""
        half = self.recipe.precision == "bf16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=half):
            logits = self.network.logits(
                hidden.input_ids.to(self.device),
                hidden.rows.to(self.device),
                hidden.cols.to(self.device),
                segment=_int64(batch.segment).to(self.device),
                position=_int64(batch.position).to(self.device),
            )
        return logits.float()

    def _next_batch(self) -> Blocks:
        """The next B rows; a remainder smaller than a batch is left out at the end of an epoch."""
        size, state = self.recipe.batch_blocks, self.state
        if state.row + size > len(self._blocks):
            state.epoch, state.row = state.epoch + 1, 0
            self._blocks = self._epoch()
        state.row += size
        return self._blocks.rows(np.arange(state.row - size, state.row))

    def _progress(self) -> float:
        if self.recipe.steps is not None:
            return self.state.step / self.recipe.steps
        return self.state.elapsed_seconds / (60 * (self.recipe.minutes or 0))

    @property
    def finished(self) -> bool:
        return self._progress() >= 1

    def step(self) -> LogRow:
        """One update of the weights; the loss is that before it."""
        recipe, state = self.recipe, self.state
        started = self.clock()
        batch = self._next_batch()
        generator = torch.Generator().manual_seed(recipe.seed * 1_000_003 + state.step)
        hidden = self.hiding.hide(_int64(batch.ids), recipe.mask_probability, generator)
        # Dropout draws from torch's own generator, whose state is in no checkpoint.
        torch.manual_seed(int(torch.randint(2**62, (), generator=generator)))
        self.model.train()
        logits = self._logits(hidden, batch)
        loss = torch.nn.functional.cross_entropy(logits, hidden.targets.to(self.device))
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip)
        # A run by steps takes the middle of each step: neither the first nor the last is lost.
        progress = (state.step + 0.5) / recipe.steps if recipe.steps else self._progress()
        rate = recipe.learning_rate * rate_factor(progress, recipe.warmup)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        state.step += 1
        state.tokens += int((batch.segment > 0).sum())
        nll = float(loss.detach())
        state.elapsed_seconds += self.clock() - started
        return LogRow(
            step=state.step,
            elapsed_seconds=state.elapsed_seconds,
            progress=min(self._progress(), 1.0),
            tokens=state.tokens,
            epoch=state.epoch + state.row / len(self._blocks),
            rate=rate,
            train_nll_nats=nll,
            gradient_norm=float(norm),
        )

    @torch.no_grad()
    def validate(self) -> Validation:
        """Loss at 15% on the segments held out, always with the same masks."""
        recipe = self.recipe
        blocks = pack(
            self.segments, self.held_out, recipe.block_tokens, self.tokenizer.pad_token_id
        )
        generator = torch.Generator().manual_seed(recipe.seed)
        total, right, count = 0.0, 0, 0
        self.model.eval()
        for start in range(0, len(blocks), recipe.batch_blocks):
            # Filled up to a whole batch, so that a compiled body sees one shape only.
            index = np.arange(start, start + recipe.batch_blocks)
            batch = blocks.rows(np.minimum(index, len(blocks) - 1))
            ids = _int64(batch.ids)
            hidden = self.hiding.hide(ids, VALIDATION_SHARE, generator, words=False)
            real = torch.from_numpy(index < len(blocks))[hidden.rows]
            logits, targets = self._logits(hidden, batch), hidden.targets.to(self.device)
            losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
            total += float(losses[real].double().sum())
            right += int((logits.argmax(-1) == targets)[real].sum())
            count += int(real.sum())
        return Validation(total / count, right / count)

    def run(
        self,
        checkpoint: Path | None = None,
        log_every: int = 10,
        stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[LogRow]:
        """Train to the end of the recipe, a row every `log_every` steps and at the end.

        From time to time and at the end it validates and saves the checkpoint; after a step that
        `stop` ends it saves.
        """
        recipe, state = self.recipe, self.state
        losses: list[float] = []
        saved = state.elapsed_seconds
        stopped = False
        while not (stopped or self.finished):
            row = self.step()
            losses.append(row.train_nll_nats)
            done, stopped = self.finished, stop()
            due = state.elapsed_seconds - saved >= 60 * recipe.checkpoint_minutes
            if not (done or stopped or due or state.step % log_every == 0):
                continue
            if len(self.held_out) and (done or due):
                started = self.clock()
                validation = self.validate()
                row = replace(
                    row, validation_nll_nats=validation.nll_nats, validation_top1=validation.top1
                )
                state.elapsed_seconds += self.clock() - started
            if checkpoint and (done or stopped or due):
                self.save(checkpoint)
            if due:
                saved = state.elapsed_seconds
            yield replace(
                row,
                elapsed_seconds=state.elapsed_seconds,
                progress=min(self._progress(), 1.0),
                train_nll_nats=float(np.mean(losses)),
            )
            losses.clear()

    def save(self, path: Path) -> None:
        """Write all that `load` needs; a crash while writing leaves the older file."""
        partial = path.with_suffix(".partial")
        content = {
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "state": asdict(self.state),
            "recipe": asdict(self.recipe),
        }
        torch.save(content, partial)
        partial.replace(path)

    def load(self, path: Path) -> None:
        """Go on from a checkpoint of the same tokens and a like recipe; weight decay may change."""
        with opening("a training checkpoint", path):
            stored = torch.load(path, map_location=self.device, weights_only=True)
        saved, current = stored["recipe"], asdict(self.recipe)
        changed = [f"{name} was {saved[name]}" for name in _FIXED if saved[name] != current[name]]
        if changed:
            raise DataError(
                f"{path} is of another run, {', '.join(changed)}; give another output folder"
            )
        self.model.load_state_dict(stored["model"])
        for optimizer, state in zip(self.optimizers, stored["optimizers"], strict=True):
            for group, before in zip(optimizer.param_groups, state["param_groups"], strict=True):
                before["weight_decay"] = group["weight_decay"]
            optimizer.load_state_dict(state)
        self.state = _State(**stored["state"])
        self._blocks = self._epoch()
