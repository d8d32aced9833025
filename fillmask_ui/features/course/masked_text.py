"""One text masked by a seed, exactly as the evaluator masks the first text of a run.

Axes: T tokens of the text, M chosen tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fillmask_ui.errors import TextError
from fillmask_ui.filling.prompt import check_length, encode_text
from fillmask_ui.masking import KINDS, HiddenTokens, MaskRecipe, generator, hide_random, hideable
from fillmask_ui.protocol import MaskedLM, Vocabulary
from fillmask_ui.records import Encoding

FIRST_TEXT = 0  # id of the first text of a run; masks depend on (seed, id, tokens)
# With more tokens it takes too many seeds until one chooses a certain token and no other.
MOST_ALONE = 12
_SEEDS_TRIED = 5_000


@dataclass(frozen=True)
class Token:
    """One token of a masked text."""

    position: int  # in the text, special tokens counted, from 0
    token_id: int  # original
    shown_id: int  # what the model reads there
    kind: str  # of `KINDS`; blank for a token that is not chosen
    fixed: bool  # can never be chosen, as special tokens


@dataclass(frozen=True, eq=False)
class SeedMaskedText:
    """A text with some of its tokens chosen."""

    encoding: Encoding
    hidden: HiddenTokens
    tokens: tuple[Token, ...]  # T

    @property
    def chosen(self) -> tuple[Token, ...]:
        """The M tokens that have a loss."""
        return tuple(token for token in self.tokens if token.kind)

    @property
    def free(self) -> int:
        return sum(not token.fixed for token in self.tokens)


def encoded(model: MaskedLM, text: str) -> Encoding:
    """All tokens of a text; a `TextError` if it is empty, too long or no token can be chosen."""
    if not text.strip():
        raise TextError("the text is empty: write a sentence or two")
    vocabulary = model.vocabulary
    encoding = encode_text(vocabulary, text)
    check_length(model, encoding)
    if not hideable(encoding.ids, vocabulary.special_ids).any():
        raise TextError(
            "no token of this text can be chosen: special tokens, masks and words that the "
            "vocabulary does not know never are; write some ordinary words"
        )
    return encoding


def hide(
    encoding: Encoding, vocabulary: Vocabulary, seed: int, recipe: MaskRecipe | None = None
) -> HiddenTokens:
    """What the evaluator hides of its first text, by default with its default recipe."""
    return hide_random(encoding, vocabulary, recipe or MaskRecipe(), generator(seed, FIRST_TEXT))


def mask_text(
    model: MaskedLM, text: str, seed: int, recipe: MaskRecipe | None = None
) -> SeedMaskedText:
    """A text as the model would read it under a seed; M may be 0. Errors as of `encoded`."""
    encoding = encoded(model, text)
    hidden = hide(encoding, model.vocabulary, seed, recipe)
    kinds = dict(zip(hidden.cols.tolist(), (KINDS[kind] for kind in hidden.kinds), strict=True))
    can_hide = hideable(hidden.ids, model.vocabulary.special_ids)
    columns = zip(hidden.ids.tolist(), hidden.input_ids.tolist(), can_hide.tolist(), strict=True)
    tokens = tuple(
        Token(position, token_id, shown_id, kinds.get(position, ""), not free)
        for position, (token_id, shown_id, free) in enumerate(columns)
    )
    return SeedMaskedText(encoding, hidden, tokens)


@dataclass(frozen=True)
class Shares:
    """How often tokens of one text were chosen, over one seed or many."""

    tokens: int  # that could be chosen, in all seeds together
    kinds: tuple[int, ...]  # chosen tokens by `KINDS`
    empty: int  # seeds that choose no token

    @property
    def chosen(self) -> int:
        return sum(self.kinds)


def shares(
    encoding: Encoding, vocabulary: Vocabulary, recipe: MaskRecipe, seeds: Sequence[int]
) -> Shares:
    """Count what some seeds choose of a text."""
    kinds = [hide(encoding, vocabulary, seed, recipe).kinds for seed in seeds]
    counts = np.bincount(np.concatenate(kinds), minlength=len(KINDS))
    free = int(hideable(encoding.ids, vocabulary.special_ids).sum())
    empty = sum(not len(chosen_kinds) for chosen_kinds in kinds)
    return Shares(len(seeds) * free, tuple(counts.tolist()), empty)


@dataclass(frozen=True, eq=False)
class Alone:
    """A seed that chooses one token of a text and no other."""

    seed: int
    kind: str  # of `KINDS`
    hidden: HiddenTokens

    @property
    def position(self) -> int:
        return int(self.hidden.cols[0])


def each_kind(encoding: Encoding, vocabulary: Vocabulary, first_seed: int) -> tuple[Alone, ...]:
    """The first seeds that choose nothing but the last word's last token, one for each kind.

    A `TextError` if the text has more than `MOST_ALONE` tokens that can be chosen.
    """
    free = np.flatnonzero(hideable(encoding.ids, vocabulary.special_ids)).tolist()
    if len(free) > MOST_ALONE:
        raise TextError(
            f"the text has {len(free)} tokens, more than {MOST_ALONE}: seeds that "
            "choose just one of so many are rare; shorten it"
        )
    word_position = next(
        (position for position in reversed(free) if _is_word(encoding, position)), free[-1]
    )
    alone_by_kind: dict[str, Alone] = {}
    for seed in range(first_seed, first_seed + _SEEDS_TRIED):
        hidden = hide(encoding, vocabulary, seed)
        if hidden.cols.tolist() == [word_position]:
            kind = KINDS[hidden.kinds[0]]
            alone_by_kind.setdefault(kind, Alone(seed, kind, hidden))
        if len(alone_by_kind) == len(KINDS):
            break
    return tuple(alone_by_kind[kind] for kind in KINDS if kind in alone_by_kind)


def _is_word(encoding: Encoding, position: int) -> bool:
    span = encoding.spans[position]
    return any(character.isalnum() for character in encoding.text[span.start : span.end])
