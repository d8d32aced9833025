"""Which tokens of a text are hidden, and what the model sees in their place.

Special tokens (also unknown tokens, and masks in the text) are never hidden. What is hidden depends
on (seed, id of the text, its tokens) alone: never on batch, order or padding.

Axes: T tokens of one text, M hidden positions.
"""

import itertools
import json
import math
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from fillmask_ui.errors import OptionError
from fillmask_ui.files import asset
from fillmask_ui.options import check_options, option
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding
from fillmask_ui.text_words import meet_unspaced, text_words

KINDS = ("mask", "random", "unchanged")
MASK, RANDOM, UNCHANGED = range(3)

DEFAULT_SHARES = (0.8, 0.1, 0.1)
UNIFORM, UNIGRAM = "uniform", "unigram"


@dataclass(frozen=True)
class MaskRecipe:
    """How `hide_random` chooses tokens and what it shows in their place."""

    option_panel = "Metric cross-entropy"

    # that a token (or word) is chosen, in (0, 1]
    probability: float = option(
        0.15,
        "Share of the tokens to choose.",
        label="Mask probability",
        flags=("--mask-probability",),
        metavar="P",
    )
    # of the chosen tokens; they add up to 1
    mask_share: float = option(
        None,
        "Share of the chosen tokens shown as the mask token; 0.8, or 1 with --whole-word.",
        metavar="S",
    )
    random_share: float = option(
        None,
        "Share of the chosen tokens shown as a random token; 0.1, or 0 with --whole-word.",
        metavar="S",
    )
    unchanged_share: float = option(
        None,
        "Share of the chosen tokens shown unchanged; 0.1, or 0 with --whole-word.",
        metavar="S",
    )
    whole_word: bool = option(
        False,
        "Choose whole words and show them as mask tokens.",
        label="Whole words",
    )
    random_from: str = option(
        UNIFORM,
        "Random tokens: uniform, all of the vocabulary alike, as BERT; unigram, by their frequency "
        "in the embedded texts.",
        choices=(UNIFORM, UNIGRAM),
    )

    def __post_init__(self) -> None:
        check_options(self)
        if not 0 < self.probability <= 1:
            raise OptionError(
                "the mask probability must be above 0 and at most 1 (0.15 hides 15% of the "
                f"tokens); it was {self.probability:.10g}"
            )
        shares = [self.mask_share, self.random_share, self.unchanged_share]
        all_masked = self.whole_word and shares == [None] * 3
        defaults = (1.0, 0.0, 0.0) if all_masked else DEFAULT_SHARES
        shares = [
            default if share is None else share
            for share, default in zip(shares, defaults, strict=True)
        ]
        vars(self).update(mask_share=shares[0], random_share=shares[1], unchanged_share=shares[2])
        listed = " + ".join(f"{share:g}" for share in shares)
        if min(shares) < 0 or not math.isclose(sum(shares), 1, abs_tol=1e-9):
            raise OptionError(
                "the shares mask + random + unchanged must lie in [0, 1] and add up to 1; they "
                f"were {listed} = {sum(shares):g}"
            )
        if self.whole_word and self.mask_share != 1:
            raise OptionError(
                f"whole words are always shown as mask tokens: leave the shares {listed} out"
            )
        if self.random_from == UNIGRAM and self.random_share == 0:
            raise OptionError(
                "no token is shown as a random one, so there is nothing to draw from the unigram "
                "distribution: leave out --random-from or raise --random-share"
            )


@dataclass(frozen=True)
class HiddenTokens:
    """One text with hidden positions, seen by the model in one view or several."""

    ids: np.ndarray  # int64 [T], the true tokens
    input_ids: np.ndarray  # int64 [T], what the model sees
    cols: np.ndarray  # int64 [M], hidden positions, ascending
    kinds: np.ndarray  # uint8 [M], index into `KINDS`
    mask_id: int
    # int64 [M] if each position has a view of its own, which shows mask tokens from `cols[j]` on
    # and before `hidden_until[j]`; None for a single view
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
        """int64, indices into `cols` of the positions that are scored in one view."""
        return np.arange(len(self.cols)) if self.hidden_until is None else np.array([index])


def generator(seed: int, example_id: int) -> np.random.Generator:
    """The random numbers of one text; those of another text are independent of them."""
    check_seed(seed)
    return np.random.default_rng([seed, example_id])


def check_seed(seed: int) -> None:
    """An `OptionError` for a seed that run.json, or the programs that read it, cannot hold."""
    if not 0 <= seed < 2**63:
        raise OptionError(f"the seed must be 0 or larger and below 2^63; it was {seed:,}")


def hideable(ids: ArrayLike, special_ids: frozenset[int]) -> np.ndarray:
    """Bool [T], true where a token may be hidden.

    >>> hideable((101, 7, 8, 102), frozenset({101, 102}))
    array([False,  True,  True, False])
    """
    return np.isin(ids, list(special_ids), invert=True)


def word_starts(encoding: Encoding, special_ids: frozenset[int]) -> np.ndarray:
    """Where words with the signs at them begin: bool [T], false for special tokens.

    Words that no blank parts are hidden together, unless their script writes none.

    Source:
        The rule of transformers' `DataCollatorForLanguageModeling` with `whole_word_mask`, which
        compares the offsets of neighbouring tokens. It joins all words of tokenizers whose offsets
        take in blanks, and of scripts without them.
    """
    real = hideable(encoding.ids, special_ids)
    starts = real & ~np.concatenate([[False], real[:-1]])
    words = text_words(encoding)
    for before, word in itertools.pairwise(words):
        gap = before.is_blank or word.is_blank or before.end < word.start
        if gap or meet_unspaced(encoding.text[before.end - 1], encoding.text[word.start]):
            starts[word.tokens[0]] = real[word.tokens[0]]
    return starts


def hide_random(
    encoding: Encoding, vocabulary: Vocabulary, recipe: MaskRecipe, rng: np.random.Generator
) -> HiddenTokens:
    """Choose tokens (or words) at random and show them by the recipe; M may be 0.

    Source:
        BERT, arXiv:1810.04805, section 3.1, by the draws of transformers'
        `DataCollatorForLanguageModeling(return_tensors="np")` for a batch of this one text.
    """
    ids = np.array(encoding.ids, dtype=np.int64)
    size = ids.shape  # (T,)
    can_hide = hideable(ids, vocabulary.special_ids)
    starts = word_starts(encoding, vocabulary.special_ids) if recipe.whole_word else can_hide
    chosen = rng.binomial(1, np.where(starts, recipe.probability, 0.0), size=size).astype(bool)
    if recipe.whole_word:
        word = np.cumsum(starts)  # [T], number of the word that a token belongs to
        chosen = can_hide & np.isin(word, word[chosen])
    kinds = np.full(size, UNCHANGED, dtype=np.uint8)
    masked = rng.binomial(1, recipe.mask_share, size=size).astype(bool) & chosen
    kinds[masked] = MASK
    input_ids = ids.copy()
    input_ids[masked] = vocabulary.mask_id
    if recipe.mask_share < 1 and recipe.random_share > 0:
        # Division can exceed 1 by an ulp, as in 0.1 / (1 - 0.9).
        scaled = min(1.0, recipe.random_share / (1 - recipe.mask_share))
        random = rng.binomial(1, scaled, size=size).astype(bool) & chosen & ~masked
        kinds[random] = RANDOM
        input_ids[random] = random_ids(vocabulary, recipe.random_from, rng, int(random.sum()))
    cols = np.flatnonzero(chosen)
    return HiddenTokens(ids, input_ids, cols, kinds[cols], vocabulary.mask_id)


def random_ids(
    vocabulary: Vocabulary, random_from: str, rng: np.random.Generator, count: int
) -> np.ndarray:
    """Random tokens, int64 [count]: all alike, or by their frequency in the embedded texts.

    The frequencies are not those of the measured texts: masks would then depend on other texts.

    Source:
        BERT draws uniformly (its `create_pretraining_data.py`); Jurafsky and Martin, Speech and
        Language Processing (3rd ed. draft), chapter "Masked Language Models", by unigram
        probability.
    """
    if random_from == UNIFORM:
        return rng.integers(0, vocabulary.size, size=count, dtype=np.int64)
    tokens = _embedded_tokens(vocabulary)
    if not len(tokens):
        raise OptionError(
            "the tokenizer knows no word of the embedded texts, so there are no frequencies: leave "
            "out --random-from"
        )
    return tokens[rng.integers(0, len(tokens), size=count)]


_EMBEDDED_TOKENS: WeakKeyDictionary[Vocabulary, np.ndarray] = WeakKeyDictionary()


def _embedded_tokens(vocabulary: Vocabulary) -> np.ndarray:
    """All ordinary tokens of the embedded texts, int64 [N]; read once for each vocabulary."""
    if vocabulary not in _EMBEDDED_TOKENS:
        lines = (asset("texts") / "embedded.jsonl").read_text("utf-8").splitlines()
        ids = [i for line in lines for i in vocabulary.encode(json.loads(line)["text"]).ids]
        tokens = np.array(ids, dtype=np.int64)
        _EMBEDDED_TOKENS[vocabulary] = tokens[hideable(tokens, vocabulary.special_ids)]
    return _EMBEDDED_TOKENS[vocabulary]


def hide_as_masks(
    encoding: Encoding,
    vocabulary: Vocabulary,
    cols: np.ndarray,
    hidden_until: np.ndarray | None = None,
) -> HiddenTokens:
    """The tokens at `cols`, all shown as mask tokens; arguments as of `HiddenTokens`."""
    ids = np.array(encoding.ids, dtype=np.int64)
    input_ids = ids.copy()
    input_ids[cols] = vocabulary.mask_id
    kinds = np.full(len(cols), MASK, np.uint8)
    return HiddenTokens(ids, input_ids, cols, kinds, vocabulary.mask_id, hidden_until)
