"""The surprisal of each word of a text without masks.

Definition. The surprisal of a word is its loss, -ln P(word | the rest of the text), each word
hidden in turn. A word of n sub-tokens is hidden whole and scored from left to right, as
`score_candidates` does. The mean over all sub-tokens is the log of the pseudo-perplexity.

Rivals: hiding one sub-token at a time with the rest of its word visible (arXiv:1910.14659) makes
long words too easy; a causal model sees the left context only, so its surprisals do not compare.

With a text `given` before it, the words of the text alone are scored, each hidden in turn behind
all of the given text: the conditional score of minicons (`MaskedLMScorer.conditional_score` with
the PLL metric `within_word_l2r`), its sign turned.

Words with an unknown token are scored and flagged, and no sum counts them: what was hidden is not
the word that a reader sees.

Source:
    Pseudo-log-likelihood: Salazar et al. 2020, arXiv:1910.14659; within a word from left to right:
    Kauf and Ivanova 2023, arXiv:2305.10588.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import fillmask_ui.filling.words as word_tokens
from fillmask_ui import scoring
from fillmask_ui.batching import windows
from fillmask_ui.errors import TextError
from fillmask_ui.filling.candidates import candidates_of
from fillmask_ui.filling.prompt import encode_unmasked
from fillmask_ui.protocol import MaskedLM, ModelLike, as_model
from fillmask_ui.records import (
    Candidate,
    Displayed,
    Encoding,
    ModelSignature,
    ScoredPart,
    counted,
    excerpt,
    finite,
)
from fillmask_ui.text_words import UNSPACED_NOTE, TextWord, is_unspaced, text_words

BEST_TOKENS = 5  # listed for each word
WINDOW_TOKENS = 512  # that the model reads between two reports


@dataclass(frozen=True)
class WordSurprisal:
    """One word of a text, predicted from all the others."""

    word: TextWord
    nll_nats: float  # -ln P(word), the sum over `parts`
    parts: tuple[ScoredPart, ...]  # its sub-tokens, each given those before it
    rank: int | None  # among all V tokens; None for several tokens
    expected: tuple[Candidate, ...]  # the best tokens at one mask in its place
    unknown: bool  # whether the vocabulary cannot spell it

    @property
    def probability(self) -> float:
        return math.exp(-self.nll_nats)

    def to_dict(self) -> dict[str, Any]:
        scores = asdict(self)
        word = scores.pop("word")
        span = {"word": word["text"], "start": word["start"], "end": word["end"]}
        return finite({**span, **scores, "probability": self.probability})


@dataclass(frozen=True)
class SurprisalSummary:
    """The words of a text together, unknown ones left out."""

    word_count: int
    tokens: int  # their sub-tokens
    total_nll_nats: float
    most: WordSurprisal  # the most surprising word, the first of a tie

    @property
    def mean_token_nll_nats(self) -> float:
        return self.total_nll_nats / self.tokens

    @property
    def mean_word_nll_nats(self) -> float:
        return self.total_nll_nats / self.word_count

    @property
    def pseudo_perplexity(self) -> float:
        mean = self.mean_token_nll_nats
        return math.exp(mean) if mean < 700 else math.inf


@dataclass(frozen=True)
class SentenceSurprisal(Displayed):
    """Every word of one text."""

    encoding: Encoding
    signature: ModelSignature
    words: tuple[WordSurprisal, ...]  # from left to right, without those of `given`
    given: str = ""  # the beginning of the text that was read and not scored

    def __repr__(self) -> str:
        summary = self.summary
        loss = f", {summary.total_nll_nats:.3f} nats" if summary else ""
        words = counted(len(self.words), "word")
        return f"SentenceSurprisal({excerpt(self.encoding.text)}, {words}{loss})"

    @property
    def summary(self) -> SurprisalSummary | None:
        return summarize_surprisal(self.words)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        return (UNSPACED_NOTE,) if is_unspaced(self.encoding.text) else ()

    def to_dict(self) -> dict[str, Any]:
        """What `fillmask-ui surprise --json` prints."""
        means = ("mean_token_nll_nats", "mean_word_nll_nats", "pseudo_perplexity")
        names = ("tokens", "total_nll_nats", *means)
        return {
            "text": self.encoding.text,
            **({"given": self.given} if self.given else {}),
            "model": self.signature.name,
            "signature": str(self.signature),
            "notes": list(self.notes),
            **{name: finite(getattr(self.summary, name, None)) for name in names},
            "words": [word.to_dict() for word in self.words],
        }


def surprisal(
    model: ModelLike, text: str, *, given: str = "", most_work: int | None = None
) -> SentenceSurprisal:
    """The surprisal of every word of a text; costs the square of its length.

    `given` is a text before it, which the model reads as well. Errors are those of `fill` and
    `surprisal_windows`, or a `TextError` for a text with a mask.

    >>> from fillmask_ui import load_model
    >>> model = load_model("embedded")
    >>> surprisal(model, "The cat sat on the moon.").summary.most.word.text
    'moon'
    >>> alone = surprisal(model, "It is wet.").summary.total_nll_nats
    >>> rain = surprisal(model, "It is wet.", given="Rain fell on the street.")
    >>> rain.summary.total_nll_nats < alone
    True
    """
    model = as_model(model)
    encoding = encode_unmasked(model, text)
    given, start = given.strip(), 0
    if given:
        text = f"{given} {text}"
        encoding = encode_unmasked(model, text)
        start = sum(word.start < len(given) for word in text_words(encoding))
    windows_of_words = surprisal_windows(model, text, start=start, most_work=most_work)
    words = tuple(word for window in windows_of_words for word in window)
    return SentenceSurprisal(encoding, model.signature, words, given)


def surprisal_windows(
    model: MaskedLM,
    text: str,
    *,
    start: int = 0,
    window_tokens: int = WINDOW_TOKENS,
    most_work: int | None = None,
) -> Iterator[tuple[WordSurprisal, ...]]:
    """`surprisal` in windows: some words at a time, from number `start` on.

    The model reads at most `window_tokens` tokens for a window, unless one word takes more, and
    more than `most_work` for a word is a `TextError`.
    """
    encoding = encode_unmasked(model, text)
    words = text_words(encoding)[start:]

    def cost(word: TextWord) -> int:
        parts = len(word.tokens)
        tokens = parts * len(encoding) + (len(encoding) - parts + 1 if parts > 1 else 0)
        if most_work is not None and tokens > most_work:
            raise TextError(
                f"the word {word.text[:40]!r} has {parts:,} sub-tokens, which makes the model read "
                f"{tokens:,} tokens, and here {most_work:,} are allowed: shorten it"
            )
        return tokens

    for window in windows(words, cost, max_size=window_tokens, max_items=word_tokens.ROWS_PER_CALL):
        yield _surprisals(model, encoding, window)


def summarize_surprisal(words: Sequence[WordSurprisal]) -> SurprisalSummary | None:
    """Of the words computed so far; None if the model knows none of them."""
    spelled = [word for word in words if not word.unknown]
    if not spelled:
        return None
    total = math.fsum(word.nll_nats for word in spelled)
    tokens = sum(len(word.parts) for word in spelled)
    most = max(spelled, key=lambda word: word.nll_nats)
    return SurprisalSummary(len(spelled), tokens, total, most)


def _views(model: MaskedLM, encoding: Encoding, word: TextWord) -> list[word_tokens.MaskedView]:
    """One per sub-token of a word; for several one more with one mask in place of the word."""
    ids, mask_id = encoding.ids, model.vocabulary.mask_id
    first, end = word.tokens[0], word.tokens[-1] + 1
    views = word_tokens.left_to_right(ids[:first], ids[first:end], ids[end:], mask_id)
    if len(views) > 1:
        views.append(((*ids[:first], mask_id, *ids[end:]), first, ids[first]))
    return views


@dataclass(frozen=True)
class _ViewScore:
    """What the model says of the token that one view asks for."""

    nll_nats: float
    rank: int
    best: tuple[Candidate, ...]


def _surprisals(
    model: MaskedLM, encoding: Encoding, words: Sequence[TextWord]
) -> tuple[WordSurprisal, ...]:
    views = [_views(model, encoding, word) for word in words]
    all_views = [view for word_views in views for view in word_views]
    scores = _view_scores(model, all_views)
    surprisals = []
    for word, word_views in zip(words, views, strict=True):
        word_scores = [next(scores) for _ in word_views]
        parts = tuple(
            ScoredPart(encoding.ids[token], encoding.tokens[token], word_scores[index].nll_nats)
            for index, token in enumerate(word.tokens)
        )
        nll = math.fsum(part.nll_nats for part in parts)
        rank = word_scores[0].rank if len(parts) == 1 else None
        unknown = any(part.token_id in model.vocabulary.special_ids for part in parts)
        surprisals.append(WordSurprisal(word, nll, parts, rank, word_scores[-1].best, unknown))
    return tuple(surprisals)


def _view_scores(model: MaskedLM, views: Sequence[word_tokens.MaskedView]) -> Iterator[_ViewScore]:
    for targets, log_probs in word_tokens.scored_views(model, views):
        nlls = scoring.target_nll_nats(log_probs, targets).tolist()
        ranks = scoring.ranks(log_probs, targets).tolist()
        top = scoring.top_k(log_probs, BEST_TOKENS)
        for row in range(len(targets)):
            best = candidates_of(model.vocabulary, top.token_ids[row], top.nll_nats[row])
            yield _ViewScore(nlls[row], ranks[row], best)
