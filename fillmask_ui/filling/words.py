"""Probability of given words at a mask, whatever the number of their sub-tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.filling.query import ROWS_PER_CALL, log_probabilities_at
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Encoding, ScoredPart, ScoredWord


@dataclass(frozen=True)
class TokenizedWord:
    """A word as it would be tokenized at one mask."""

    word: str
    ids: tuple[int, ...]


def split_into_tokens(
    model: MaskedLM, encoding: Encoding, position: int, words: Sequence[str]
) -> tuple[TokenizedWord, ...]:
    """Sub-tokens of words at a mask, by what stands to the left of that mask.

    Raises:
        OptionError: if a word has no tokens, cannot be spelled or is itself a mask.
        TextError: if the text would be too long with the word in it.
    """
    start = encoding.spans[position].start
    before = encoding.text[start - 1 : start] if start else ""
    tokenized = []
    for word in words:
        ids = model.vocabulary.encode_word(word.strip(), before) if word.strip() else ()
        if not ids:
            raise OptionError(
                f"the candidate {word!r} has no tokens in this model's vocabulary: leave it out"
            )
        if model.vocabulary.unk_id in ids:
            raise OptionError(
                f"the candidate {word!r} cannot be spelled in this model's vocabulary, so it has "
                "no probability of its own: leave it out"
            )
        if model.vocabulary.mask_id in ids:
            raise OptionError(f"the candidate {word!r} is itself a mask: give a word")
        length = len(encoding) - 1 + len(ids)
        if length > model.max_tokens:
            raise TextError(
                f"with the {len(ids):,} sub-tokens of the candidate {word[:40]!r} the text has "
                f"{length:,} tokens and this model takes at most {model.max_tokens:,}: shorten it"
            )
        tokenized.append(TokenizedWord(word, tuple(ids)))
    return tuple(tokenized)


def word_scores(
    model: MaskedLM,
    encoding: Encoding,
    position: int,
    words: Sequence[TokenizedWord],
    log_probs: np.ndarray,
) -> tuple[ScoredWord, ...]:
    """Scores of words at one mask, in the order given.

    Args:
        model: for the sub-tokens of longer words.
        encoding: the text.
        position: of the mask.
        words: tokenized for this mask.
        log_probs: float64 [1, V] at the mask; all that words of one token need.
    """
    scored = []
    for word in words:
        targets = np.array(word.ids, dtype=np.int64)
        if len(word.ids) == 1:
            parts = scoring.target_nll_nats(log_probs, targets)
            rank = int(scoring.ranks(log_probs, targets)[0])
        else:
            parts = _left_to_right(model, encoding, position, word.ids)
            rank = None  # a rank among words of several tokens is not defined
        nll = float(parts.sum())
        scored.append(
            ScoredWord(
                word=word.word,
                nll_nats=nll,
                probability=float(np.exp(-nll)),
                rank=rank,
                parts=tuple(
                    ScoredPart(token_id, model.vocabulary.token(token_id), float(part))
                    for token_id, part in zip(word.ids, parts, strict=True)
                ),
            )
        )
    return tuple(scored)


def _left_to_right(
    model: MaskedLM, encoding: Encoding, position: int, ids: tuple[int, ...]
) -> np.ndarray:
    """NLL of each sub-token, those before it filled in, it and those after it hidden.

    All rows have one length, so no padding is needed and no score depends on its neighbours.

    Returns:
        float64 [n], in nats.
    """
    before, after = encoding.ids[:position], encoding.ids[position + 1 :]
    hidden = model.vocabulary.mask_id
    texts = [
        (*before, *ids[:part], *[hidden] * (len(ids) - part), *after) for part in range(len(ids))
    ]
    targets = np.array(ids, dtype=np.int64)
    nlls = []
    # One call at a time, reduced to one number per row: n x V logits of a long word would not fit.
    for start in range(0, len(ids), ROWS_PER_CALL):
        rows = range(start, min(start + ROWS_PER_CALL, len(ids)))
        at = [position + part for part in rows]
        log_probs = log_probabilities_at(model, [texts[part] for part in rows], at)  # [m, V]
        nlls.append(scoring.target_nll_nats(log_probs, targets[rows.start : rows.stop]))
    return np.concatenate(nlls)


def tokens_read(encoding: Encoding, words: Sequence[TokenizedWord]) -> int:
    """Tokens that the model reads to score words at one mask beyond the pass that all share."""
    lengths = [len(word.ids) for word in words if len(word.ids) > 1]
    return sum(length * (len(encoding) - 1 + length) for length in lengths)
