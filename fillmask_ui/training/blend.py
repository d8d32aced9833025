"""Average the trained weights with those that training started from.

Both are good and err differently, and the path between them goes through better ones: a share of
the old weights often lowers the loss on text that neither saw. The share is chosen by the
validation loss.

Source:
    Wortsman et al. 2022, "Robust fine-tuning of zero-shot models", arXiv:2109.01903.
"""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from fillmask_ui.training.loop import Trainer, Validation

SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)  # of the trained weights


def copy_weights(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """A copy of a model's state that later training does not change."""
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def blend_with_start(trainer: Trainer, start: dict[str, torch.Tensor]) -> dict[float, Validation]:
    """What each share scores, the best first, which is left in the trainer's model."""
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
