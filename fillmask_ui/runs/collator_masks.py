"""The masks of the published evaluator: one PyTorch generator for all texts.

They depend on all texts before. For reproducing published figures (winml-cli, pull request 318:
`DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15, seed=42)`).
"""

from typing import Any, cast

import numpy as np

from fillmask_ui.errors import OptionError, how_to_install
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.masking import MASK, RANDOM, UNCHANGED, UNIFORM, HiddenTokens, MaskRecipe
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding

FEWEST_TOKENS = 3


class CollatorMasks:
    """transformers' collator as a source of hidden tokens, of each text once, in their order.

    An `OptionError` without PyTorch, or for whole words.
    """

    def __init__(self, vocabulary: Vocabulary, config: EvaluationConfig) -> None:
        recipe: MaskRecipe | None = getattr(config.metric, "recipe", None)
        if recipe is None or recipe.whole_word:
            raise OptionError(
                "the published evaluator measures cross-entropy and chooses tokens, not whole "
                "words: leave out --whole-word or use --mask-stream text"
            )
        if recipe.random_from != UNIFORM:
            raise OptionError(
                "the published evaluator draws random tokens uniformly: leave out --random-from or "
                "use --mask-stream text"
            )
        try:
            import torch
            from transformers import DataCollatorForLanguageModeling
        except ImportError as error:
            raise OptionError(
                "the mask stream 'collator' needs PyTorch, whose generator it reproduces: "
                f"{how_to_install('torch')}, or use the mask stream 'text'"
            ) from error
        self._mask_id = vocabulary.mask_id
        self._last: int | None = None
        self._collator = DataCollatorForLanguageModeling(
            cast("Any", _CollatorTokenizer(vocabulary)),
            mlm_probability=recipe.probability,
            mask_replace_prob=recipe.mask_share,
            random_replace_prob=recipe.random_share,
            seed=config.seed,
        )
        # Made here and not at the first call, where a worker process would be refused.
        self._collator.generator = torch.Generator().manual_seed(config.seed)

    def hide(self, encoding: Encoding, example_id: int) -> HiddenTokens:
        """Hidden tokens of the next text; a text twice would shift all that follow."""
        if example_id == self._last:
            raise ValueError(f"text {example_id} came twice: a stream of masks goes on only")
        self._last = example_id
        ids = shown_ids = np.array(encoding.ids, dtype=np.int64)  # [T]
        cols = ids[:0]
        if len(ids) >= FEWEST_TOKENS:
            batch = self._collator([encoding.ids])
            shown_ids = batch["input_ids"][0].numpy()
            cols = np.flatnonzero(batch["labels"][0].numpy() != -100)
        masked = shown_ids[cols] == self._mask_id
        changed = shown_ids[cols] != ids[cols]
        kinds = np.select([masked, changed], [MASK, RANDOM], UNCHANGED).astype(np.uint8)
        return HiddenTokens(ids, shown_ids, cols, kinds, self._mask_id)


class _CollatorTokenizer:
    """A vocabulary, as far as the collator asks a tokenizer."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.mask_token = vocabulary.mask_token

    def __len__(self) -> int:
        return self._vocabulary.size

    def convert_tokens_to_ids(self, _: str) -> int:
        return self._vocabulary.mask_id

    def get_special_tokens_mask(self, ids: list[int], **_: bool) -> list[int]:
        return [int(index in self._vocabulary.special_ids) for index in ids]
