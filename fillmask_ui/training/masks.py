"""Fresh masks for each training batch, BERT's 80/10/10 at any share, by tokens or by whole words.

Axes: B rows, T tokens, M hidden positions, V vocabulary.

Source:
    Devlin et al. 2018, arXiv:1810.04805, section 3.1 and appendix A.1; whole words as in the second
    release of the same authors' code (May 2019), where the tokens of a chosen word are shown, drawn
    or kept each by its own 80/10/10.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from transformers import PreTrainedTokenizerFast

from fillmask_ui.models.subword_prefixes import SubwordPrefixes


@dataclass(frozen=True)
class Hidden:
    """A batch with tokens hidden."""

    input_ids: torch.Tensor  # int64 [B, T], what the model sees
    rows: torch.Tensor  # int64 [M]
    cols: torch.Tensor  # int64 [M]
    targets: torch.Tensor  # int64 [M], the true tokens

    def keep(self, chosen: torch.Tensor) -> Hidden:
        """With these of the hidden positions alone, bool [M]; what the model sees stays."""
        return Hidden(self.input_ids, self.rows[chosen], self.cols[chosen], self.targets[chosen])


def continuations(tokenizer: PreTrainedTokenizerFast) -> torch.Tensor:
    """Bool [V], true for tokens that continue the word to their left (`##ing`, no `Ġ` or `▁`)."""
    tokens = tokenizer.get_vocab()
    prefixes = SubwordPrefixes.of(tokens)
    continues = torch.zeros(max(tokens.values()) + 1, dtype=torch.bool)
    for token, token_id in tokens.items():
        continues[token_id] = prefixes.is_continuation(token)
    return continues


def hide(
    ids: torch.Tensor,  # int64 [B, T] on the generator's device
    special_ids: torch.Tensor,  # int64 [S], never chosen; padding is one of them
    mask_id: int,
    vocabulary_size: int,  # random tokens are drawn from [0, vocabulary_size)
    share: float,  # in (0, 1)
    generator: torch.Generator,
    continues: torch.Tensor | None = None,  # of `continuations`, to choose whole words
) -> Hidden:
    """Each ordinary token, or each word of them, is chosen with probability `share`.

    Of the chosen, 80 % become the mask token, 10 % a uniformly drawn token, 10 % stay.
    """
    ordinary = ~torch.isin(ids, special_ids)  # [B, T]
    draw = torch.rand(ids.shape, generator=generator, device=ids.device)
    if continues is not None:
        inside = continues[ids] & ordinary
        inside[:, 1:] &= ordinary[:, :-1]
        inside[:, 0] = False
        cols = torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)
        begins = torch.where(inside, 0, cols).cummax(dim=1).values  # column of the word's first
        draw = draw.gather(1, begins)
    chosen = ordinary & (draw < share)
    rows, cols = chosen.nonzero(as_tuple=True)  # [M], [M]
    targets = ids[rows, cols]
    fate = torch.rand(rows.shape, generator=generator, device=ids.device)
    drawn = torch.randint(vocabulary_size, rows.shape, generator=generator, device=ids.device)
    shown = torch.where(fate < 0.8, mask_id, torch.where(fate < 0.9, drawn, targets))
    input_ids = ids.clone()
    input_ids[rows, cols] = shown
    return Hidden(input_ids, rows, cols, targets)
