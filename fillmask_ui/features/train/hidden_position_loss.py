"""BERT's objective on packed rows: fresh masks for each batch, logits at hidden positions alone.

Two shortcuts, for any architecture whose head works position by position:

- a hook takes the hidden positions out of the body's last hidden state: logits are [M, V];
- segments that share a row do not see each other, if a probe finds that the architecture takes a
  [B, 1, T, T] mask and explicit positions.

Axes: B rows, T tokens, M hidden positions, V vocabulary.

Source:
    Devlin et al. 2018, arXiv:1810.04805, section 3.1 and appendix A.1; whole words as in the second
    release of the same authors' code (May 2019), where the tokens of a chosen word are shown, drawn
    or kept each by its own 80/10/10.
"""

from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from fillmask_ui.models.vocabulary import SubwordPrefixes
from fillmask_ui.text_words import UNSPACED


@dataclass(frozen=True)
class HiddenBatch:
    """A batch with hidden tokens."""

    input_ids: torch.Tensor  # int64 [B, T], what the model sees
    rows: torch.Tensor  # int64 [M]
    cols: torch.Tensor  # int64 [M]
    targets: torch.Tensor  # int64 [M], the true tokens


class TokenHider:
    """Hides each ordinary token, or each word of them, with the same probability."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerFast, vocabulary_size: int, whole_words: bool = False
    ) -> None:
        self._special = torch.tensor(sorted(set(tokenizer.all_special_ids)))  # padding is one
        self._mask, self._size = tokenizer.mask_token_id, vocabulary_size
        # Bool [V]: the tokens that continue the word to their left (`##ing`, no `Ġ` or `▁`).
        self.continues: torch.Tensor | None = None
        if whole_words:
            tokens = tokenizer.get_vocab()
            prefixes = SubwordPrefixes.of(tokens)
            self.continues = torch.zeros(max(tokens.values()) + 1, dtype=torch.bool)
            for token, token_id in tokens.items():
                # Without blanks between words a token is a word.
                is_word = UNSPACED.match(prefixes.word(token)) is not None
                self.continues[token_id] = prefixes.is_continuation(token) and not is_word

    def hide(
        self, ids: torch.Tensor, share: float, generator: torch.Generator, *, words: bool = True
    ) -> HiddenBatch:
        """Choose a share of int64 [B, T] on the CPU: 80% become masks, 10% random, 10% stay.

        With `words` off tokens are chosen one by one whatever the recipe says.
        """
        ordinary = ~torch.isin(ids, self._special)  # [B, T]
        draw = torch.rand(ids.shape, generator=generator)
        if words and self.continues is not None:
            inside = self.continues[ids] & ordinary
            inside[:, 1:] &= ordinary[:, :-1]
            inside[:, 0] = False
            cols = torch.arange(ids.shape[1]).expand(ids.shape)
            begins = torch.where(inside, 0, cols).cummax(dim=1).values  # column of the word's first
            draw = draw.gather(1, begins)
        rows, cols = (ordinary & (draw < share)).nonzero(as_tuple=True)  # [M], [M]
        targets = ids[rows, cols]
        fate = torch.rand(rows.shape, generator=generator)
        drawn = torch.randint(self._size, rows.shape, generator=generator)
        shown = torch.where(fate < 0.8, self._mask, torch.where(fate < 0.9, drawn, targets))
        input_ids = ids.clone()
        input_ids[rows, cols] = shown
        return HiddenBatch(input_ids, rows, cols, targets)


@dataclass(frozen=True)
class SegmentForm:
    """How rows of several segments are given to a model."""

    separate: bool  # whether attention and positions are per segment
    # First position (2 in RoBERTa); None if the architecture takes none (ALiBi, relative).
    position_offset: int | None = None
    # Of layers that look only so many tokens to each side (ModernBERT), which take their own mask.
    window: int | None = None

    def inputs(self, segment: torch.Tensor, position: torch.Tensor) -> dict[str, Any]:
        """Attention mask and positions of rows, as arguments of a model; both are int [B, T]."""
        if not self.separate:
            return {"attention_mask": (segment > 0).long()}
        same = segment[:, None, :, None] == segment[:, None, None, :]  # [B, 1, T, T]
        inputs: dict[str, Any] = {"attention_mask": _additive(same)}
        if self.window is not None:
            columns = torch.arange(segment.shape[1], device=segment.device)
            near = (columns[:, None] - columns[None, :]).abs() <= self.window  # [T, T]
            inputs["attention_mask"] = {
                "full_attention": inputs["attention_mask"],
                "sliding_attention": _additive(same & near),
            }
        if self.position_offset is not None:
            inputs["position_ids"] = position.long() + self.position_offset
        return inputs


def _additive(seen: torch.Tensor) -> torch.Tensor:
    # Finite, and rows of padding attend to padding: there is never a softmax over nothing.
    mask = torch.zeros(seen.shape, dtype=torch.float32, device=seen.device)
    return mask.masked_fill_(~seen, -1e9)


class HiddenPositionModel:
    """A masked LM called with rows in its `form` and the positions of the logits to compute."""

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        self._positions: tuple[torch.Tensor, torch.Tensor] | None = None
        model.base_model.register_forward_hook(self._take_positions)
        self._find_form()

    def _take_positions(self, _module: torch.nn.Module, _arguments: Any, output: Any) -> Any:
        if self._positions is not None:
            rows, cols = self._positions
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
        """Float [M, V] at `rows`, `cols` of packed rows as `Blocks` has them, in int64 [B, T]."""
        self._positions = (rows, cols)
        try:
            inputs = self.form.inputs(segment, position)
            return self.model(input_ids=input_ids, **inputs).logits[0]
        finally:
            self._positions = None

    @torch.no_grad()
    def _find_form(self) -> None:
        """Choose the form in which two segments in one row have the logits that each has alone."""
        model = self.model
        config, device, was_training = model.config, model.device, model.training
        model.eval()
        window, size = getattr(config, "sliding_window", None), config.vocab_size
        first, second = 5, 7 + 2 * (window or 0)  # long enough for a window to matter
        generator = torch.Generator().manual_seed(0)
        ids = torch.randint(min(10, size - 1), size, (1, first + second), generator=generator)
        ids = ids.to(device)
        segment = torch.tensor([[1] * first + [2] * second], device=device)
        position = torch.tensor([[*range(first), *range(second)]], device=device)
        separate = torch.cat(  # [T, V]
            [model(input_ids=part).logits[0] for part in ids.split([first, second], dim=1)]
        )
        cols = torch.arange(first + second, device=device)
        pad = getattr(config, "pad_token_id", None) or 0
        for form in (
            SegmentForm(True, 0),
            SegmentForm(True, pad + 1),
            SegmentForm(True, None),
            SegmentForm(True, 0, window),
        ):
            self.form = form
            try:
                packed = self.logits(ids, torch.zeros_like(cols), cols, segment, position)
            except (TypeError, ValueError, RuntimeError, IndexError, AttributeError):
                continue  # this architecture does not take such a mask or such positions
            # Relative to the logits' spread: those of untrained weights are close to each other.
            if (packed - separate).abs().max() < 1e-4 * separate.std():
                break
        else:
            self.form = SegmentForm(separate=False)
        model.train(was_training)
