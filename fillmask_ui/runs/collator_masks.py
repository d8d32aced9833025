"""The masks of the published evaluator: one PyTorch generator that runs through all texts.

There, `DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15, seed=42)` masks one text
after another, so the masks of a text depend on all texts before it. Use it to reproduce published
figures (winml-cli, pull request 318); `SeededMasks` for everything else.
"""

from typing import Any, cast

import numpy as np

from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.evaluation.schemes import CrossEntropy
from fillmask_ui.masking import MASK, RANDOM, UNCHANGED, HiddenTokens
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding

FEWEST_TOKENS = 3


class CollatorMasks:
    """transformers' collator as a source of hidden tokens.

    Texts have to come in the order of the run, each once: also those that a resumed run has done.

    Raises:
        OptionError: without PyTorch, or for whole words, which need what it is not given.
    """

    def __init__(self, vocabulary: Vocabulary, config: EvaluationConfig) -> None:
        scheme = config.scheme
        if not isinstance(scheme, CrossEntropy):
            raise OptionError(f"the published evaluator measures cross-entropy, not {scheme.name}")
        if scheme.recipe.whole_word:
            raise OptionError(
                "the published evaluator chooses tokens, not whole words: leave out --whole-word "
                "or use --mask-stream text"
            )
        try:
            import torch
            from transformers import DataCollatorForLanguageModeling
        except ImportError as error:
            raise OptionError(
                "the mask stream 'collator' needs PyTorch, whose generator it reproduces: "
                "pip install 'fillmask-ui[torch]', or use the mask stream 'text'"
            ) from error
        self._mask_id = vocabulary.mask_id
        self._last: int | None = None
        self._collator = DataCollatorForLanguageModeling(
            cast("Any", _CollatorTokenizer(vocabulary)),  # all that it asks of a tokenizer
            mlm_probability=scheme.recipe.probability,
            mask_replace_prob=scheme.recipe.mask_share,
            random_replace_prob=scheme.recipe.random_share,
            seed=config.seed,
        )
        # Made here and not at the first call, where a worker process would be refused.
        self._collator.generator = torch.Generator().manual_seed(config.seed)

    def hide(self, encoding: Encoding, example_id: int) -> HiddenTokens:
        """Hidden tokens of the next text, never of one twice: that would shift all that follow."""
        if example_id == self._last:
            raise ValueError(f"text {example_id} came twice: a stream of masks goes on only")
        self._last = example_id
        ids = np.array(encoding.ids, dtype=np.int64)  # [T]
        if len(ids) < FEWEST_TOKENS:
            return HiddenTokens(ids, ids, ids[:0], ids[:0].astype(np.uint8), self._mask_id)
        batch = self._collator([encoding.ids])
        input_ids = batch["input_ids"][0].numpy()
        labels = batch["labels"][0].numpy()
        cols = np.flatnonzero(labels != -100)
        shown, true = input_ids[cols], ids[cols]
        kinds = np.select([shown == self._mask_id, shown != true], [MASK, RANDOM], UNCHANGED)
        return HiddenTokens(ids, input_ids, cols, kinds.astype(np.uint8), self._mask_id)


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
