"""What the loop asks of a Hugging Face masked LM: one loss, on the hidden positions alone.

Two shortcuts, for any architecture whose head works position by position:

- the head sees only the hidden positions: a hook takes them out of the body's last hidden state,
  so logits are [M, V] and never [B, T, V];
- segments that share a row do not see each other, where the architecture takes a [B, 1, T, T]
  mask and explicit positions. Whether it does is found by a probe, not looked up in a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class SegmentForm:
    """How rows of several segments are given to a model.

    Attributes:
        separate: whether attention and positions are per segment.
        position_offset: added to positions that count from 0 (RoBERTa counts from 2); None
            if the architecture takes no positions (ALiBi, relative).
        window: for architectures with layers that look only so many tokens to each side
            (ModernBERT), how many; they take one mask for each kind of layer.
    """

    separate: bool
    position_offset: int | None = None
    window: int | None = None


def segment_inputs(
    form: SegmentForm, segment: torch.Tensor, position: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Attention mask and positions for packed rows.

    Args:
        form: as found by `find_segment_form`.
        segment: int [B, T], 0 where padded.
        position: int [B, T], from 0 in each segment.
    """
    if not form.separate:
        return {"attention_mask": (segment > 0).long()}
    same = segment[:, None, :, None] == segment[:, None, None, :]  # [B, 1, T, T]
    inputs: dict[str, Any] = {"attention_mask": _additive(same)}
    if form.window is not None:
        place = torch.arange(segment.shape[1], device=segment.device)
        near = (place[:, None] - place[None, :]).abs() <= form.window  # [T, T]
        inputs["attention_mask"] = {
            "full_attention": inputs["attention_mask"],
            "sliding_attention": _additive(same & near),
        }
    if form.position_offset is not None:
        inputs["position_ids"] = position.long() + form.position_offset
    return inputs


def _additive(seen: torch.Tensor) -> torch.Tensor:
    # Finite, and rows of padding attend to padding: there is never a softmax over nothing.
    mask = torch.zeros(seen.shape, dtype=torch.float32, device=seen.device)
    return mask.masked_fill_(~seen, -1e9)


class HiddenPositionModel:
    """A masked LM called with the positions whose logits are wanted."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self._wanted: tuple[torch.Tensor, torch.Tensor] | None = None
        self.form = SegmentForm(separate=False)
        model.base_model.register_forward_hook(self._take_wanted)

    def _take_wanted(self, _module: Any, _arguments: Any, output: Any) -> Any:
        if self._wanted is None:
            return output
        rows, cols = self._wanted
        output.last_hidden_state = output.last_hidden_state[rows, cols][None]  # [1, M, H]
        return output

    def logits(
        self,
        input_ids: torch.Tensor,
        rows: torch.Tensor,
        cols: torch.Tensor,
        segment: torch.Tensor,
        position: torch.Tensor,
    ) -> torch.Tensor:
        """Float [M, V] at the asked positions of packed rows.

        Args:
            input_ids: int64 [B, T].
            rows: int64 [M].
            cols: int64 [M].
            segment: int [B, T].
            position: int [B, T].
        """
        self._wanted = (rows, cols)
        try:
            inputs = segment_inputs(self.form, segment, position)
            return self.model(input_ids=input_ids, **inputs).logits[0]
        finally:
            self._wanted = None


@torch.no_grad()
def find_segment_form(network: HiddenPositionModel) -> SegmentForm:
    """Whether two segments in one row give the logits that each gives alone.

    The model decides, not its name: a form counts as supported if its logits equal those of the
    segments on their own.
    """
    model = network.model
    was_training = model.training
    model.eval()
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(0)
    size = model.config.vocab_size
    window = getattr(model.config, "sliding_window", None)
    first, second = 5, 7 + 2 * (window or 0)  # long enough for a window to matter
    ids = torch.randint(min(10, size - 1), size, (1, first + second), generator=generator)
    ids = ids.to(device)
    segment = torch.tensor([[1] * first + [2] * second], device=device)
    position = torch.tensor([[*range(first), *range(second)]], device=device)
    alone = torch.cat(
        [model(input_ids=ids[:, :first]).logits, model(input_ids=ids[:, first:]).logits], dim=1
    )[0]  # [T, V]
    cols = torch.arange(first + second, device=device)
    pad = getattr(model.config, "pad_token_id", None) or 0
    found = SegmentForm(separate=False)
    for form in (
        SegmentForm(True, 0),
        SegmentForm(True, pad + 1),
        SegmentForm(True, None),
        SegmentForm(True, 0, window),
    ):
        network.form = form
        try:
            packed = network.logits(ids, torch.zeros_like(cols), cols, segment, position)
        except (TypeError, ValueError, RuntimeError, IndexError, AttributeError):
            continue  # this architecture does not take such a mask or such positions
        # Relative to the logits' spread: those of untrained weights are close to each other.
        if (packed - alone).abs().max() < 1e-4 * alone.std():
            found = form
            break
    network.form = found
    model.train(was_training)
    return found
