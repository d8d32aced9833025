"""AdamW or Muon with the usual parameter groups, and a schedule over any notion of progress.

Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/) orthogonalises the update of
the hidden layers' matrices; embeddings, biases and norms stay with AdamW.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import PreTrainedModel


def rate_factor(progress: float, warmup: float) -> float:
    """Factor on the peak learning rate: linear warm-up, then linear decay to zero at 1.

    `progress`, in [0, 1], and `warmup`, in [0, 1), are parts of all steps or of the time.

    >>> [rate_factor(p, 0.2) for p in (0.1, 0.2, 0.6, 1.0)]
    [0.5, 1.0, 0.5, 0.0]
    """
    return progress / warmup if progress < warmup else (1 - progress) / (1 - warmup)


class Optimizers:
    """One or two torch optimizers (`adamw` or `muon`) behind the calls that the loop makes."""

    def __init__(
        self, model: PreTrainedModel, name: str, learning_rate: float, weight_decay: float
    ) -> None:
        self.learning_rate = learning_rate  # at the peak
        output = model.get_output_embeddings()
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
        self.parameters = matrices + plain
        groups = [
            {"params": matrices, "weight_decay": weight_decay},
            {"params": plain, "weight_decay": 0.0},
        ]
        self.all: list[torch.optim.Optimizer] = []
        if name == "muon":
            muon = torch.optim.Muon([groups.pop(0)], learning_rate, adjust_lr_fn="match_rms_adamw")
            self.all.append(muon)
        self.all.append(torch.optim.AdamW(groups, learning_rate, betas=(0.9, 0.98), fused=True))

    def step(self, factor: float, clip: float) -> float:
        """Update at `factor` times the peak rate; the gradient's norm before clipping."""
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, clip)
        for optimizer in self.all:
            for group in optimizer.param_groups:
                group["lr"] = self.learning_rate * factor
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return float(norm)

    def state_dict(self) -> list[dict[str, Any]]:
        return [optimizer.state_dict() for optimizer in self.all]

    def load_state_dict(self, states: list[dict[str, Any]]) -> None:
        """The reverse of `state_dict`; the weight decay stays as it was asked for now."""
        for optimizer, state in zip(self.all, states, strict=True):
            for group, stored in zip(optimizer.param_groups, state["param_groups"], strict=True):
                stored["weight_decay"] = group["weight_decay"]
            optimizer.load_state_dict(state)
