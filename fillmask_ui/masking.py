"""Which tokens of a text are hidden, and what the model sees in their place.

Four ways to hide:

- `hide_random`: BERT's training objective (arXiv:1810.04805, section 3.1). Each token is chosen
  with a probability; of the chosen, a share is shown as the mask token, a share as a random
  token, the rest as it is. Optionally whole words.
- `hide_one_by_one`: each token once, in a view of its own: pseudo-log-likelihood, Salazar et al.
  2020, arXiv:1910.14659. `within_word` also hides the later sub-tokens of the same word: Kauf
  and Ivanova 2023, arXiv:2305.10588.
- `hide_uniform`: a share drawn uniformly from (0, 1], the objective of masked diffusion models
  (arXiv:2502.09992), in the variant with an exact count.
- `hide_suffix`: the last n tokens.

Special tokens (also the unknown token and masks that stand in the text) are never hidden. What is
hidden depends on (seed, id of the text, its tokens) alone: never on batch, order or padding.

Axes: T tokens of one text, M hidden positions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fillmask_ui.errors import OptionError
from fillmask_ui.options import option
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding

KINDS = ("mask", "random", "unchanged")
MASK, RANDOM, UNCHANGED = range(3)

DEFAULT_SHARES = (0.8, 0.1, 0.1)


@dataclass(frozen=True)
class MaskRecipe:
    """How `hide_random` chooses and shows tokens.

    Raises:
        OptionError: for values outside their range or shares that do not add up to 1.
    """

    # of a token (or word) to be chosen, in (0, 1]
    probability: float = option(
        0.15,
        "Share of tokens chosen; 0.15.",
        label="Mask probability",
        flags=("--mask-probability",),
        metavar="P",
    )
    # of the chosen, the share shown as the mask token; by default 0.8
    mask_share: float = option(None, "Of these, shown as the mask token; 0.8.", metavar="S")
    # of the chosen, the share shown as a random token; by default 0.1
    random_share: float = option(None, "Of these, shown as a random token; 0.1.", metavar="S")
    # of the chosen, the share shown as it is; by default 0.1. The three add up to 1.
    unchanged_share: float = option(None, "Of these, shown unchanged; 0.1.", metavar="S")
    # choose words, not tokens; then all of the chosen show the mask token, which is then the
    # default
    whole_word: bool = option(False, "Choose words, shown as mask tokens.", label="Whole words")

    def __post_init__(self) -> None:
        if not 0 < self.probability <= 1:
            raise OptionError(
                "the mask probability must be above 0 and at most 1 (0.15 hides 15 % of the "
                f"tokens); it was {self.probability:g}"
            )
        given = (self.mask_share, self.random_share, self.unchanged_share)
        all_masked = self.whole_word and given == (None, None, None)
        defaults = (1.0, 0.0, 0.0) if all_masked else DEFAULT_SHARES
        shares = [
            default if share is None else share
            for share, default in zip(given, defaults, strict=True)
        ]
        names = ("mask_share", "random_share", "unchanged_share")
        for name, share in zip(names, shares, strict=True):
            object.__setattr__(self, name, share)
        listed = " + ".join(f"{share:g}" for share in shares)
        if not all(0 <= share <= 1 for share in shares):
            raise OptionError(
                "each of the shares mask + random + unchanged must lie in [0, 1]; "
                f"they were {listed}"
            )
        if not math.isclose(sum(shares), 1, abs_tol=1e-9):
            raise OptionError(
                f"the shares mask + random + unchanged must add up to 1; {listed} = {sum(shares):g}"
            )
        if self.whole_word and self.mask_share != 1:
            raise OptionError(
                "whole words are always shown as mask tokens: leave the shares out, or give "
                f"mask 1, random 0, unchanged 0; they were {listed}"
            )


@dataclass(frozen=True)
class HiddenTokens:
    """One text with hidden positions, seen by the model in one view or several."""

    ids: np.ndarray  # int64 [T], the text as it is
    # int64 [T], what the model sees; where `hidden_until` is given, `view` says
    input_ids: np.ndarray
    cols: np.ndarray  # int64 [M], hidden positions, ascending
    kinds: np.ndarray  # uint8 [M], index into `KINDS`
    mask_id: int
    # int64 [M] where each position has a view of its own: view j shows mask tokens at `cols[j]` up
    # to `hidden_until[j]`, without the latter. None: one view.
    hidden_until: np.ndarray | None = None

    @property
    def true_ids(self) -> np.ndarray:
        """int64 [M], the tokens to be found."""
        return self.ids[self.cols]

    @property
    def view_count(self) -> int:
        """How many rows of a batch the text takes."""
        return 1 if self.hidden_until is None else len(self.cols)

    def view(self, index: int) -> np.ndarray:
        """int64 [T], the tokens that the model sees in one view."""
        if self.hidden_until is None:
            return self.input_ids
        seen = self.ids.copy()
        seen[self.cols[index] : self.hidden_until[index]] = self.mask_id
        return seen

    def scored(self, index: int) -> np.ndarray:
        """int64, the entries of `cols` that are scored in one view."""
        if self.hidden_until is None:
            return np.arange(len(self.cols))
        return np.array([index])


def generator(seed: int, example_id: int) -> np.random.Generator:
    """The random numbers of one text; those of another text are independent of them.

    Raises:
        OptionError: if the seed is negative.
    """
    if seed < 0:
        raise OptionError(f"the seed must be 0 or larger; it was {seed}")
    return np.random.default_rng([seed, example_id])


def hideable(ids: np.ndarray, special_ids: frozenset[int]) -> np.ndarray:
    """Bool [T], true where a token may be hidden.

    >>> hideable(np.array([101, 7, 8, 102]), frozenset({101, 102}))
    array([False,  True,  True, False])
    """
    return ~np.isin(ids, np.fromiter(special_ids, np.int64, len(special_ids)))


def word_starts(encoding: Encoding, special_ids: frozenset[int]) -> np.ndarray:
    """Where a word begins, a word being what stands between blanks.

    A token begins a word if there is a gap in the text before it, if its own characters begin
    with a blank, or if the token before it is special.

    Returns:
        bool [T], false for special tokens.

    Source:
        The rule of transformers' `DataCollatorForLanguageModeling` with `whole_word_mask`, but
        for two cases: a blank inside a token's span counts as a gap (else some SentencePiece
        tokenizers run all words of a text together), and two tokens that share a character, as
        byte-level ones do for `é`, have no gap between them.
    """
    real = hideable(np.array(encoding.ids), special_ids)
    starts = real.copy()
    for index in range(1, len(encoding)):
        span, before = encoding.spans[index], encoding.spans[index - 1]
        gap = span.start > before.end or encoding.text[span.start : span.start + 1].isspace()
        starts[index] = real[index] and (gap or not real[index - 1])
    return starts


def hide_random(
    ids: np.ndarray,
    *,
    can_hide: np.ndarray,
    mask_id: int,
    vocabulary_size: int,
    rng: np.random.Generator,
    recipe: MaskRecipe,
    starts: np.ndarray | None = None,
) -> HiddenTokens:
    """Choose tokens at random and replace them by the recipe.

    Args:
        ids: int64 [T], special tokens included, no padding.
        can_hide: bool [T], from `hideable`.
        mask_id: id of the mask token.
        vocabulary_size: random tokens are drawn from [0, vocabulary_size).
        rng: advanced by the draws.
        recipe: shares and probability.
        starts: bool [T], from `word_starts`; wanted where the recipe hides whole words.

    Returns:
        One view; M may be 0 in a short text.

    Raises:
        ValueError: if the recipe hides whole words and `starts` is missing.

    Source:
        The same draws as transformers' `DataCollatorForLanguageModeling(return_tensors="np")`
        makes for a batch of this one text.
    """
    ids = np.asarray(ids, dtype=np.int64)
    size = ids.shape  # (T,)
    if recipe.whole_word:
        if starts is None:
            raise ValueError("whole words need `starts`, from word_starts(encoding)")
        chosen = rng.binomial(1, np.where(starts, recipe.probability, 0.0), size=size).astype(bool)
        word = np.cumsum(starts)  # [T], number of the word that a token belongs to
        chosen = can_hide & np.isin(word, word[chosen])
    else:
        chosen = rng.binomial(1, np.where(can_hide, recipe.probability, 0.0), size=size)
        chosen = chosen.astype(bool)
    kinds = np.full(size, UNCHANGED, dtype=np.uint8)
    masked = rng.binomial(1, recipe.mask_share, size=size).astype(bool) & chosen
    kinds[masked] = MASK
    input_ids = ids.copy()
    input_ids[masked] = mask_id
    if recipe.mask_share < 1 and recipe.random_share > 0:
        # Division can exceed 1 by an ulp, as in 0.1 / (1 - 0.9).
        scaled = min(1.0, recipe.random_share / (1 - recipe.mask_share))
        random = rng.binomial(1, scaled, size=size).astype(bool) & chosen & ~masked
        kinds[random] = RANDOM
        input_ids[random] = rng.integers(0, vocabulary_size, size=int(random.sum()), dtype=np.int64)
    cols = np.flatnonzero(chosen)
    return HiddenTokens(ids, input_ids, cols, kinds[cols], mask_id)


def hide_one_by_one(
    ids: np.ndarray, *, can_hide: np.ndarray, mask_id: int, word_ids: tuple | None = None
) -> HiddenTokens:
    """Each token once, in a view of its own.

    Args:
        ids: int64 [T].
        can_hide: bool [T], from `hideable`.
        mask_id: id of the mask token.
        word_ids: of `Encoding`; if given, the later sub-tokens of the word are hidden too.

    >>> plan = hide_one_by_one(np.array([1, 5, 6, 2]), mask_id=9,
    ...     can_hide=np.array([False, True, True, False]), word_ids=(None, 0, 0, None))
    >>> plan.view(0), plan.view(1)
    (array([1, 9, 9, 2]), array([1, 5, 9, 2]))
    """
    ids = np.asarray(ids, dtype=np.int64)
    cols = np.flatnonzero(can_hide)
    until = cols + 1
    if word_ids is not None:
        for index, col in enumerate(cols):
            end = col + 1
            while end < len(ids) and can_hide[end] and word_ids[end] == word_ids[col]:
                end += 1
            until[index] = end
    return HiddenTokens(ids, ids, cols, np.full(len(cols), MASK, np.uint8), mask_id, until)


def hide_uniform(
    ids: np.ndarray, *, can_hide: np.ndarray, mask_id: int, rng: np.random.Generator
) -> HiddenTokens:
    """A share of the tokens drawn uniformly from (0, 1], all shown as the mask token.

    Of n tokens that can be hidden, ceil(share * n) are, so never none and every count from 1 to
    n is equally likely.
    """
    places = np.flatnonzero(can_hide)
    share = 1.0 - rng.random()  # random() lies in [0, 1)
    count = math.ceil(share * len(places))
    return _all_masked(ids, np.sort(rng.permutation(places)[:count]), mask_id)


def hide_suffix(ids: np.ndarray, *, can_hide: np.ndarray, mask_id: int, count: int) -> HiddenTokens:
    """The last `count` tokens that can be hidden, or all where there are fewer."""
    return _all_masked(ids, np.flatnonzero(can_hide)[-count:], mask_id)


def _all_masked(ids: np.ndarray, cols: np.ndarray, mask_id: int) -> HiddenTokens:
    ids = np.asarray(ids, dtype=np.int64)
    input_ids = ids.copy()
    input_ids[cols] = mask_id
    return HiddenTokens(ids, input_ids, cols, np.full(len(cols), MASK, np.uint8), mask_id)


def hide_encoding(
    encoding: Encoding, vocabulary: Vocabulary, *, recipe: MaskRecipe, rng: np.random.Generator
) -> HiddenTokens:
    """`hide_random` for a text as the vocabulary encodes it."""
    ids = np.array(encoding.ids, dtype=np.int64)
    return hide_random(
        ids,
        can_hide=hideable(ids, vocabulary.special_ids),
        mask_id=vocabulary.mask_id,
        vocabulary_size=vocabulary.size,
        rng=rng,
        recipe=recipe,
        starts=word_starts(encoding, vocabulary.special_ids) if recipe.whole_word else None,
    )
