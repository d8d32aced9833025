"""The training loop: a generator of log rows, so that the caller decides what to show and when to
stop.

Everything random follows from (seed, step) or (seed, epoch); with the weights, the optimizer's
state and the clock in a checkpoint, a resumed run equals the uninterrupted one.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fillmask_ui.errors import DataError
from fillmask_ui.models.torch import torch_device
from fillmask_ui.training.corpus import (
    Segments,
    epoch_blocks,
    pack,
    split_validation,
    vocabulary_hash,
)
from fillmask_ui.training.masks import continuations, hide
from fillmask_ui.training.network import HiddenPositionModel, find_segment_form
from fillmask_ui.training.optimizer import Optimizers, rate_factor
from fillmask_ui.training.recipe import LogRow, Recipe

VALIDATION_SHARE = 0.15  # losses are compared at BERT's share, whatever the training share


# What cannot change when a run is resumed; its length and learning rate can.
_FIXED = ("block_tokens", "batch_blocks", "optimizer", "seed", "validation_segments")


@dataclass
class _State:
    step: int = 0
    elapsed_seconds: float = 0.0
    tokens: int = 0
    epoch: int = 0
    row: int = 0  # next block of the epoch


@dataclass(frozen=True)
class Update:
    """One step: the loss before it, the gradient's norm before clipping, the learning rate."""

    nll_nats: float
    gradient_norm: float
    rate: float


@dataclass(frozen=True)
class Validation:
    """On segments that were not trained on: mean loss and share of tokens ranked first."""

    nll_nats: float
    top1: float


class Trainer:
    """Weights, optimizer and text of one run."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        segments: Segments,
        recipe: Recipe,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.recipe, self.tokenizer, self.segments, self.clock = recipe, tokenizer, segments, clock
        self.device = torch_device(recipe.device)
        self.model = model.to(self.device)
        self.network = HiddenPositionModel(self.model)
        self.model.config.use_cache = False
        find_segment_form(self.network)
        if recipe.compile:
            self.model.base_model.forward = torch.compile(
                self.model.base_model.forward, dynamic=False
            )
        self.optimizers = Optimizers(
            self.model, recipe.optimizer, recipe.learning_rate, recipe.weight_decay
        )
        self.special_ids = torch.tensor(sorted(set(tokenizer.all_special_ids)), device=self.device)
        self.continues = continuations(tokenizer) if recipe.whole_word else None
        split = split_validation(len(segments), recipe.validation_segments)
        self.chosen, self.held = split.training, split.validation
        self.state = _State()
        self._blocks = self._epoch(0)
        if len(self._blocks) < recipe.batch_blocks:
            raise DataError(
                f"the text fills {len(self._blocks)} blocks of {recipe.block_tokens} tokens, a "
                f"batch wants {recipe.batch_blocks}; give more text or smaller batches"
            )

    def _epoch(self, epoch: int) -> Any:
        return epoch_blocks(
            self.segments,
            self.chosen,
            self.recipe.block_tokens,
            self.tokenizer.pad_token_id,
            self.recipe.seed,
            epoch,
        )

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self.recipe.precision == "bf16":
            return torch.autocast(self.device.type, torch.bfloat16)
        return contextlib.nullcontext()

    def _tensor(self, values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(values.astype(np.int64)).to(self.device)

    def _next_rows(self) -> slice:
        """The next B rows; a rest smaller than a batch at an epoch's end is left out."""
        size, state = self.recipe.batch_blocks, self.state
        if state.row + size > len(self._blocks):
            state.epoch, state.row = state.epoch + 1, 0
            self._blocks = self._epoch(state.epoch)
        rows = slice(state.row, state.row + size)
        state.row += size
        return rows

    def _progress(self) -> float:
        if self.recipe.steps is not None:
            return self.state.step / self.recipe.steps
        return self.state.elapsed_seconds / (60 * self.recipe.minutes)

    @property
    def finished(self) -> bool:
        """Whether the recipe's steps or minutes are over."""
        return self._progress() >= 1

    def step(self) -> Update:
        """One update of the weights."""
        recipe, state = self.recipe, self.state
        started = self.clock()
        rows = self._next_rows()
        ids = self._tensor(self._blocks.ids[rows])
        segment = self._tensor(self._blocks.segment[rows])
        position = self._tensor(self._blocks.position[rows])
        generator = torch.Generator().manual_seed(recipe.seed * 1_000_003 + state.step)
        hidden = hide(
            ids.cpu(),
            self.special_ids.cpu(),
            self.tokenizer.mask_token_id,
            self.model.config.vocab_size,
            recipe.mask_share,
            generator,
            self.continues,
        )
        # Dropout draws from torch's own generator, whose state is in no checkpoint.
        torch.manual_seed(int(torch.randint(2**62, (), generator=generator)))
        self.model.train()
        with self._autocast():
            logits = self.network.logits(
                hidden.input_ids.to(self.device),
                hidden.rows.to(self.device),
                hidden.cols.to(self.device),
                segment,
                position,
            )
        loss = torch.nn.functional.cross_entropy(logits.float(), hidden.targets.to(self.device))
        loss.backward()
        # A run by steps takes the middle of each step: neither the first nor the last is lost.
        progress = (state.step + 0.5) / recipe.steps if recipe.steps else self._progress()
        factor = rate_factor(progress, recipe.warmup)
        norm = self.optimizers.step(factor, recipe.clip)
        state.step += 1
        state.tokens += int((segment > 0).sum())
        nll = float(loss.detach())
        state.elapsed_seconds += self.clock() - started
        return Update(nll, norm, factor * recipe.learning_rate)

    @torch.no_grad()
    def validate(self) -> Validation:
        """Loss at 15 % on the segments kept out, always with the same masks."""
        blocks = pack(
            self.segments, self.held, self.recipe.block_tokens, self.tokenizer.pad_token_id
        )
        generator = torch.Generator().manual_seed(self.recipe.seed)
        total, right, count = 0.0, 0, 0
        self.model.eval()
        size = self.recipe.batch_blocks
        for start in range(0, len(blocks), size):
            # Filled up to a whole batch, so that a compiled body sees one shape only.
            index = np.arange(start, start + size)
            real = torch.from_numpy(index < len(blocks))
            index = np.minimum(index, len(blocks) - 1)
            hidden = hide(
                torch.from_numpy(blocks.ids[index].astype(np.int64)),
                self.special_ids.cpu(),
                self.tokenizer.mask_token_id,
                self.model.config.vocab_size,
                VALIDATION_SHARE,
                generator,
            )
            keep = real[hidden.rows]
            rows, cols = hidden.rows[keep], hidden.cols[keep]
            targets = hidden.targets[keep].to(self.device)
            with self._autocast():
                logits = self.network.logits(
                    hidden.input_ids.to(self.device),
                    rows.to(self.device),
                    cols.to(self.device),
                    self._tensor(blocks.segment[index]),
                    self._tensor(blocks.position[index]),
                )
            losses = torch.nn.functional.cross_entropy(logits.float(), targets, reduction="none")
            total += float(losses.double().sum())
            right += int((logits.argmax(-1) == targets).sum())
            count += len(targets)
        return Validation(total / count, right / count)

    def run(
        self,
        checkpoint: Path | None = None,
        log_every: int = 10,
        stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[LogRow]:
        """Train to the end of the recipe, a row every `log_every` steps and at the end.

        Args:
            checkpoint: file to which the state is saved from time to time and at the end.
            log_every: steps between rows.
            stop: asked after each step; where true, that is saved and the last.
        """
        recipe, state = self.recipe, self.state
        losses: list[float] = []
        validated = saved = state.elapsed_seconds
        stopped = False
        while not (stopped or self.finished):
            update = self.step()
            losses.append(update.nll_nats)
            done, stopped = self.finished, stop()
            due = state.elapsed_seconds - validated >= 60 * recipe.validation_minutes
            if not (done or stopped or due or state.step % log_every == 0):
                continue
            validation = None
            if len(self.held) and (done or due):
                started = self.clock()
                validation = self.validate()
                state.elapsed_seconds += self.clock() - started
                validated = state.elapsed_seconds
            old = state.elapsed_seconds - saved >= 60 * recipe.checkpoint_minutes
            if checkpoint and (done or stopped or old):
                self.save(checkpoint)
                saved = state.elapsed_seconds
            yield LogRow(
                step=state.step,
                elapsed_seconds=state.elapsed_seconds,
                progress=min(self._progress(), 1.0),
                tokens=state.tokens,
                epoch=state.epoch + state.row / len(self._blocks),
                rate=update.rate,
                train_nll_nats=float(np.mean(losses)),
                gradient_norm=update.gradient_norm,
                validation_nll_nats=validation and validation.nll_nats,
                validation_top1=validation and validation.top1,
            )
            losses.clear()

    def save(self, path: Path) -> None:
        """Write all that `load` needs; a crash while writing leaves the older file."""
        partial = path.with_suffix(".partial")
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimizers": self.optimizers.state_dict(),
                "state": asdict(self.state),
                "recipe": asdict(self.recipe),
                "vocabulary": vocabulary_hash(self.tokenizer),
            },
            partial,
        )
        partial.replace(path)

    def load(self, path: Path) -> None:
        """Go on where a checkpoint stands.

        Raises:
            DataError: if the file is no checkpoint of this model and recipe.
        """
        try:
            stored = torch.load(path, map_location=self.device, weights_only=True)
            changed = [
                f"{name} was {stored['recipe'][name]}"
                for name in _FIXED
                if stored["recipe"][name] != getattr(self.recipe, name)
            ]
            vocabulary = vocabulary_hash(self.tokenizer)
            # Checkpoints of earlier versions do not name theirs.
            if stored.get("vocabulary", vocabulary) != vocabulary:
                changed.append("its weights belong to other tokens")
            if changed:
                raise ValueError(", ".join(changed))
            self.model.load_state_dict(stored["model"])
            self.optimizers.load_state_dict(stored["optimizers"])
            self.state = _State(**stored["state"])
        except (OSError, KeyError, RuntimeError, ValueError, EOFError) as error:
            raise DataError(
                f"{path} is no checkpoint of this run: {error}; give another output folder "
                "to start anew"
            ) from error
        self._blocks = self._epoch(self.state.epoch)
