"""How much each word of a text without masks surprises the model.

Definition. The loss of a word is -ln P(word | the rest of the text), each word hidden in turn. A
word of n sub-tokens is hidden whole and scored from left to right: sub-token j sees those before
it, those after it are masks. So the loss is the one that `score_candidates` gives the word once
masks stand in its place. The mean over all sub-tokens is the log of the pseudo-perplexity.

Rivals: hiding one sub-token at a time with the rest of its word visible (arXiv:1910.14659) makes
long words too easy; a causal model sees the left context only, so its surprisals do not compare.

Unknown tokens stand for words that the vocabulary cannot spell. What is hidden is then not the
word that a reader sees: such words are scored and flagged, and no sum counts them.

Source:
    Pseudo-log-likelihood: Salazar et al. 2020, arXiv:1910.14659; within a word from left to right:
    Kauf and Ivanova 2023, arXiv:2305.10588.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.batching import windows
from fillmask_ui.errors import TextError
from fillmask_ui.filling.predict import candidates_of
from fillmask_ui.filling.prompt import check_length, encode_text
from fillmask_ui.filling.text_words import TextWord, text_words
from fillmask_ui.filling.words import ROWS_PER_CALL, exponentials_at
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Candidate, Encoding, ModelSignature, ScoredPart, finite

# Words that the model would have put in place of each word.
WANTED = 5
# Tokens that the model reads between two reports: some tenths of a second on two cores.
WINDOW_TOKENS = 512


@dataclass(frozen=True)
class WordSurprise:
    """One word of a text, as the model sees it coming from all the others."""

    word: TextWord
    nll_nats: float  # -ln P(word), the sum over `parts`
    parts: tuple[ScoredPart, ...]  # its sub-tokens, each given those before it
    rank: int | None  # among all V tokens where the word is one token, else None
    wanted: tuple[Candidate, ...]  # the best tokens where one mask stands in its place, best first
    unknown: bool  # whether it has a token that the vocabulary uses for what it cannot spell

    @property
    def probability(self) -> float:
        return math.exp(-self.nll_nats)


@dataclass(frozen=True)
class SurpriseSummary:
    """The words of a text together, unknown ones left out."""

    words: int
    tokens: int  # their sub-tokens
    total_nll_nats: float
    most: WordSurprise  # the most surprising word, the first of a tie

    @property
    def mean_token_nll_nats(self) -> float:
        return self.total_nll_nats / self.tokens

    @property
    def mean_word_nll_nats(self) -> float:
        return self.total_nll_nats / self.words

    @property
    def pseudo_perplexity(self) -> float:
        """e^ of the mean per sub-token; infinite past what a float holds."""
        mean = self.mean_token_nll_nats
        return math.exp(mean) if mean < 700 else math.inf


@dataclass(frozen=True)
class SentenceSurprise:
    """Every word of one text."""

    encoding: Encoding
    signature: ModelSignature  # of the model
    words: tuple[WordSurprise, ...]  # from left to right

    @property
    def summary(self) -> SurpriseSummary | None:
        return summarize_surprise(self.words)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values; the shape that `fillmask-ui surprise --json` prints."""
        summary = self.summary
        means = ("mean_token_nll_nats", "mean_word_nll_nats", "pseudo_perplexity")
        names = ("tokens", "total_nll_nats", *means)
        return {
            "text": self.encoding.text,
            "model": self.signature.name,
            "signature": str(self.signature),
            **{name: finite(getattr(summary, name, None)) for name in names},
            "words": [surprise_dict(found) for found in self.words],
        }


def surprise_dict(found: WordSurprise) -> dict[str, Any]:
    """One word as plain JSON-ready values."""
    return {
        "word": found.word.text,
        "start": found.word.start,
        "end": found.word.end,
        "nll_nats": finite(found.nll_nats),
        "probability": found.probability,
        "rank": found.rank,
        "unknown": found.unknown,
        "parts": [finite(asdict(part)) for part in found.parts],
        "wanted": [finite(asdict(candidate)) for candidate in found.wanted],
    }


def sentence_surprise(model: MaskedLM, text: str) -> SentenceSurprise:
    """The loss of every word of a text without masks, each hidden once.

    Args:
        model: from `load_model`.
        text: any text that the model takes; its cost grows with the square of its length.

    Raises:
        TextError: if the text is blank, has a mask or is too long.
        ModelOutputError: if the model returns NaN.

    >>> from fillmask_ui import load_model
    >>> found = sentence_surprise(load_model("embedded"), "The cat sat on the moon.")
    >>> found.summary.most.word.text
    'moon'
    """
    encoding = encode_unmasked(model, text)
    words = tuple(word for window in surprise_windows(model, text) for word in window)
    return SentenceSurprise(encoding, model.signature, words)


def surprise_windows(
    model: MaskedLM,
    text: str,
    *,
    start: int = 0,
    window_tokens: int = WINDOW_TOKENS,
    most_work: int | None = None,
) -> Iterator[tuple[WordSurprise, ...]]:
    """`sentence_surprise` as it is computed: some words at a time, at least one.

    Args:
        model: from `load_model`.
        text: without masks.
        start: number of the first word wanted, as `text_words` counts them, from 0.
        window_tokens: tokens that the model reads for one window, unless one word takes more.
        most_work: tokens that the model may be made to read for one word; None for any number.

    Raises:
        TextError: as `sentence_surprise`, and at a word that takes more than `most_work`.
        ModelOutputError: as `sentence_surprise`.
    """
    encoding = encode_unmasked(model, text)
    words = text_words(encoding, model.vocabulary)[start:]

    def cost(word: TextWord) -> int:
        parts = len(word.tokens)
        tokens = parts * len(encoding) + (len(encoding) - parts + 1 if parts > 1 else 0)
        if most_work is not None and tokens > most_work:
            raise TextError(
                f"the word {word.text[:40]!r} has {parts:,} sub-tokens, which makes the model read "
                f"{tokens:,} tokens, and here {most_work:,} are allowed: shorten it"
            )
        return tokens

    for window in windows(words, cost, max_size=window_tokens, max_items=ROWS_PER_CALL):
        yield _surprises(model, encoding, window)


def summarize_surprise(words: Sequence[WordSurprise]) -> SurpriseSummary | None:
    """The words of a text, or those computed so far; None where the model knows none of them."""
    known = [word for word in words if not word.unknown]
    if not known:
        return None
    total = math.fsum(word.nll_nats for word in known)
    tokens = sum(len(word.parts) for word in known)
    return SurpriseSummary(len(known), tokens, total, max(known, key=lambda word: word.nll_nats))


def encode_unmasked(model: MaskedLM, text: str) -> Encoding:
    """A text without masks as token ids; a `TextError` as of `sentence_surprise`."""
    vocabulary = model.vocabulary
    if not text.strip():
        raise TextError("the text is empty: write a sentence, without a mask")
    encoding = encode_text(vocabulary, text)
    if all(encoding.special):
        raise TextError("the tokenizer leaves nothing of the text: write words that it knows")
    if vocabulary.mask_id in encoding.ids:
        raise TextError(
            f"the text has a mask, and here each word is hidden in turn: write a word in place of "
            f"{vocabulary.mask_token}"
        )
    check_length(model, encoding)
    return encoding


@dataclass(frozen=True)
class _View:
    """The text as the model sees it while it guesses one token."""

    ids: tuple[int, ...]
    position: int
    target: int  # the true token there


def _views(model: MaskedLM, encoding: Encoding, word: TextWord) -> list[_View]:
    """One per sub-token of a word; for several one more, in which one mask stands for the word."""
    first, end = word.tokens[0], word.tokens[-1] + 1
    hidden = model.vocabulary.mask_id
    views = [
        _View(
            (*encoding.ids[:token], *[hidden] * (end - token), *encoding.ids[end:]),
            token,
            encoding.ids[token],
        )
        for token in word.tokens
    ]
    if len(views) > 1:
        widened = (*encoding.ids[:first], hidden, *encoding.ids[end:])
        views.append(_View(widened, first, encoding.ids[first]))
    return views


def _surprises(
    model: MaskedLM, encoding: Encoding, words: Sequence[TextWord]
) -> tuple[WordSurprise, ...]:
    views = [_views(model, encoding, word) for word in words]
    flat = [view for of_word in views for view in of_word]
    nlls: list[float] = []
    ranks: list[int] = []
    best: list[tuple[Candidate, ...]] = []
    # One call at a time, reduced to a few numbers per row: all V-wide rows would not fit.
    for start in range(0, len(flat), ROWS_PER_CALL):
        chunk = flat[start : start + ROWS_PER_CALL]
        targets = np.array([view.target for view in chunk])  # [M]
        log_probs = exponentials_at(
            model, [view.ids for view in chunk], [view.position for view in chunk]
        ).log_probabilities  # [M, V]
        nlls += scoring.target_nll_nats(log_probs, targets).tolist()
        ranks += scoring.ranks(log_probs, targets).tolist()
        top = scoring.top_k(log_probs, WANTED)
        best += [
            candidates_of(model.vocabulary, *row)
            for row in zip(top.token_ids, top.nll_nats, strict=True)
        ]
    found, row = [], 0
    for word, of_word in zip(words, views, strict=True):
        parts = tuple(
            ScoredPart(encoding.ids[token], encoding.tokens[token], nlls[row + part])
            for part, token in enumerate(word.tokens)
        )
        found.append(
            WordSurprise(
                word,
                math.fsum(part.nll_nats for part in parts),
                parts,
                ranks[row] if len(parts) == 1 else None,
                best[row + len(of_word) - 1],
                any(part.token_id in model.vocabulary.special_ids for part in parts),
            )
        )
        row += len(of_word)
    return tuple(found)
