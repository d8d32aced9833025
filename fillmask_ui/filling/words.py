"""Words as tokens at a mask, and their probability there."""

from collections.abc import Iterator, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.batching import logits_of_batch, pad
from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Encoding, ScoredPart, ScoredWord

ROWS_PER_CALL = 64  # of a model: M rows bring M x V logits

# What the model reads to predict one token, the token's position there, and the token.
MaskedView: TypeAlias = tuple[tuple[int, ...], int, int]


def log_probabilities_at(
    model: MaskedLM, texts: Sequence[Sequence[int]], positions: Sequence[int]
) -> np.ndarray:
    """Log-probabilities at one position of each of M texts, float64 [M, V]."""
    return scoring.exponentials(raw_logits_at(model, texts, positions)).log_probabilities


def raw_logits_at(
    model: MaskedLM, texts: Sequence[Sequence[int]], positions: Sequence[int]
) -> np.ndarray:
    """Logits at one position of each of M texts, float32 [M, V]; equal texts are read once."""
    distinct = {ids: row for row, ids in enumerate(dict.fromkeys(tuple(ids) for ids in texts))}
    batch = pad([np.array(ids) for ids in distinct], model.vocabulary.pad_id)  # [B, T]
    rows = np.array([distinct[tuple(ids)] for ids in texts], dtype=np.int64)  # [M]
    cols = np.array(positions, dtype=np.int64)  # [M]
    return logits_of_batch(model, batch, rows, cols)


@dataclass(frozen=True)
class TokenizedWord:
    """A word as it would be tokenized at one mask."""

    word: str
    ids: tuple[int, ...]


def split_into_tokens(
    model: MaskedLM, encoding: Encoding, position: int, words: Sequence[str]
) -> tuple[TokenizedWord, ...]:
    """Sub-tokens of words at a mask, given what stands to its left.

    Raises:
        OptionError: if a word has no tokens, cannot be spelled or is itself a mask.
        TextError: if the text would be too long with the word in it.
    """
    start = encoding.spans[position].start
    before = encoding.text[start - 1 : start] if start else ""
    vocabulary, tokenized = model.vocabulary, []
    for word in words:
        candidate = f"the candidate {word if len(word) <= 80 else f'{word[:40]}...'!r}"
        ids = tuple(vocabulary.encode_word(word.strip(), before)) if word.strip() else ()
        if not ids:
            raise OptionError(f"{candidate} has no tokens in this model's vocabulary: leave it out")
        if vocabulary.unk_id in ids:
            raise OptionError(
                f"{candidate} cannot be spelled in this model's vocabulary, so it has no "
                "probability of its own: leave it out"
            )
        if vocabulary.mask_id in ids:
            raise OptionError(f"{candidate} is itself a mask: give a word")
        length = len(encoding) - 1 + len(ids)
        if length > model.max_tokens:
            raise TextError(
                f"with the {len(ids):,} sub-tokens of {candidate} the text has {length:,} tokens "
                f"and this model takes at most {model.max_tokens:,}: shorten it"
            )
        tokenized.append(TokenizedWord(word, ids))
    return tuple(tokenized)


def tokens_of(model: MaskedLM, encoding: Encoding, position: int, word: str) -> tuple[int, ...]:
    """The tokens of a word at a mask; none if it cannot be spelled there or is too long."""
    with suppress(OptionError, TextError):
        return split_into_tokens(model, encoding, position, [word])[0].ids
    return ()


def sole_token(model: MaskedLM, encoding: Encoding, position: int, word: str) -> int | None:
    """The token that a word is at a mask; None if it is none or several."""
    ids = tokens_of(model, encoding, position, word)
    return ids[0] if len(ids) == 1 else None


def word_scores(
    model: MaskedLM,
    ids: Sequence[int],
    position: int,
    words: Sequence[TokenizedWord],
    log_probs: np.ndarray,
) -> tuple[ScoredWord, ...]:
    """Scores of words at a mask of T token ids; `log_probs`, float64 [1, V], are those there."""
    scored = []
    for word in words:
        if len(word.ids) == 1:
            parts = scoring.target_nll_nats(log_probs, np.array(word.ids))
            rank = int(scoring.ranks(log_probs, np.array(word.ids))[0])
        else:
            around = ids[:position], word.ids, ids[position + 1 :]
            parts = view_nlls(model, left_to_right(*around, model.vocabulary.mask_id))
            rank = None  # a rank among words of several tokens is not defined
        nll = float(parts.sum())
        scored_parts = tuple(
            ScoredPart(token_id, model.vocabulary.token(token_id), float(part))
            for token_id, part in zip(word.ids, parts, strict=True)
        )
        scored.append(ScoredWord(word.word, nll, float(np.exp(-nll)), rank, scored_parts))
    return tuple(scored)


def left_to_right(
    before: Sequence[int], ids: Sequence[int], after: Sequence[int], mask_id: int
) -> list[MaskedView]:
    """A view for each token of a word: those before it filled in, itself and the later hidden."""
    views = []
    for part, token in enumerate(ids):
        masks = [mask_id] * (len(ids) - part)
        views.append(((*before, *ids[:part], *masks, *after), len(before) + part, token))
    return views


def scored_views(
    model: MaskedLM, views: Sequence[MaskedView]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Tokens asked for, [M], and log-probabilities, [M, V], of some views at a time.

    All V-wide rows of a long word would not fit.
    """
    for start in range(0, len(views), ROWS_PER_CALL):
        texts, positions, tokens = zip(*views[start : start + ROWS_PER_CALL], strict=True)
        yield np.array(tokens), log_probabilities_at(model, texts, positions)


def view_nlls(model: MaskedLM, views: Sequence[MaskedView]) -> np.ndarray:
    """NLL of the token that each view asks for, float64 [n], in nats."""
    scored = scored_views(model, views)
    return np.concatenate([scoring.target_nll_nats(row, tokens) for tokens, row in scored])


def tokens_read(text: Sized, words: Sequence[TokenizedWord]) -> int:
    """Tokens that the model reads at one mask for words of several sub-tokens."""
    lengths = [len(word.ids) for word in words if len(word.ids) > 1]
    return sum(length * (len(text) - 1 + length) for length in lengths)
