"""Fresh masks for each training batch, BERT's 80/10/10 at any share.

Axes: B rows, T tokens, M hidden positions.

Source:
    Devlin et al. 2018, arXiv:1810.04805, section 3.1 and appendix A.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Hidden:
    """A batch with tokens hidden.

    Attributes:
        input_ids: int64 [B, T], what the model sees.
        rows: int64 [M].
        cols: int64 [M].
        targets: int64 [M], the true tokens.
    """

    input_ids: torch.Tensor
    rows: torch.Tensor
    cols: torch.Tensor
    targets: torch.Tensor


def hide(
    ids: torch.Tensor,
    special_ids: torch.Tensor,
    mask_id: int,
    vocabulary_size: int,
    share: float,
    generator: torch.Generator,
) -> Hidden:
    """Each ordinary token is chosen with probability `share`.

    Of the chosen, 80 % become the mask token, 10 % a uniformly drawn token, 10 % stay.

    Args:
        ids: int64 [B, T] on the generator's device.
        special_ids: int64 [S], never chosen; padding is one of them.
        mask_id: of the mask token.
        vocabulary_size: random tokens are drawn from [0, vocabulary_size).
        share: in (0, 1).
        generator: decides everything.
    """
    ordinary = ~torch.isin(ids, special_ids)  # [B, T]
    chosen = ordinary & (torch.rand(ids.shape, generator=generator, device=ids.device) < share)
    rows, cols = chosen.nonzero(as_tuple=True)  # [M], [M]
    targets = ids[rows, cols]
    fate = torch.rand(rows.shape, generator=generator, device=ids.device)
    drawn = torch.randint(vocabulary_size, rows.shape, generator=generator, device=ids.device)
    shown = torch.where(fate < 0.8, mask_id, torch.where(fate < 0.9, drawn, targets))
    input_ids = ids.clone()
    input_ids[rows, cols] = shown
    return Hidden(input_ids, rows, cols, targets)
