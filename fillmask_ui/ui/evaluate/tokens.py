"""The tokens of an evaluation in their sentences: which ones, as a table, and both models' view."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fillmask_ui.evaluation import EvaluatedText, TokenExample
from fillmask_ui.evaluation.tallies import LargestTokens
from fillmask_ui.filling import normalise_masks
from fillmask_ui.masking import KINDS
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import SkippedText
from fillmask_ui.show.render import render
from fillmask_ui.show.words import TokenNames, candidate_names
from fillmask_ui.ui.links import MAX_TEXT_CHARACTERS

if TYPE_CHECKING:
    from fillmask_ui.ui.session import Session

WORST, DIFFERENT, FLIPPED = "largest loss", "largest difference", "best guess flipped"
CAPTIONS = {
    WORST: "Tokens with the largest loss",
    DIFFERENT: "Tokens with the largest difference",
    FLIPPED: "Tokens whose best guess flipped",
}
# What the model saw in place of the hidden token -> how the page says it.
SAW = {
    "": "all",
    "mask": "hidden as mask",
    "random": "replaced by a random word",
    "unchanged": "left unchanged",
}
SHOWN = 100
# So many texts are looked through while somebody waits.
MAX_TEXTS = 20_000
TOP_K = 10
_CONTEXT = 90  # characters of the text on each side of a token
_CONTEXT_ABOVE = 300  # the same above what the models say of it


@dataclass(frozen=True)
class TokenFilter:
    """Which tokens are to be shown."""

    order: str = WORST  # `WORST`, `DIFFERENT` or `FLIPPED`
    low: float = 0.0  # smallest loss under model A, in nats
    high: float = math.inf  # the loss stays below this; infinite for no bound
    saw: str = ""  # what the model saw, a kind of `masking.KINDS`; blank for any


@dataclass(frozen=True)
class FoundTokens:
    """Tokens that fit a filter."""

    tokens: tuple[TokenExample, ...] = ()  # the first `SHOWN`
    count: int = 0  # how many fit
    texts: int = 0  # how many were looked through
    all_texts: bool = True  # whether that was all of them


def find_tokens(rows: Iterable[EvaluatedText | SkippedText], wanted: TokenFilter) -> FoundTokens:
    """The tokens that come first by a filter, ties in the order of the texts.

    Args:
        rows: of a run, or pairs of two runs.
        wanted: with an order other than `WORST` only tokens that two models saw count.
    """
    largest = LargestTokens(SHOWN)
    count = texts = 0
    measured = (row for row in rows if isinstance(row, EvaluatedText))
    for row in itertools.islice(measured, MAX_TEXTS):
        values = _values(row, wanted)
        texts += 1
        count += int((values > -np.inf).sum())
        largest.add(row, values)
    more = next(measured, None) is not None
    return FoundTokens(largest.examples(), count, texts, not more)


def _values(row: EvaluatedText, wanted: TokenFilter) -> np.ndarray:
    """float64 [M], large for what comes first, -inf for what does not fit."""
    values = nll = row.scores.nll_nats
    fits = (nll >= wanted.low) & (nll < wanted.high)
    if wanted.saw:
        fits &= row.kinds == KINDS.index(wanted.saw)
    if wanted.order != WORST:
        if row.baseline is None:
            return np.full(len(nll), -np.inf)
        values = np.abs(nll - row.baseline.nll_nats)
        if wanted.order == FLIPPED:
            fits &= row.scores.top_ids != row.baseline.top_ids
    return np.where(fits & ~np.isnan(values), values, -np.inf)


def token_names(found: FoundTokens) -> TokenNames:
    """What the tokens of a table are called."""
    return TokenNames(name for t in found.tokens for name in (t.token, t.top_token))


def caption_of(wanted: TokenFilter) -> str:
    """Which tokens come first, and what the model saw of them where that was chosen."""
    return CAPTIONS[wanted.order] + (f", {SAW[wanted.saw]}" if wanted.saw else "")


def tokens_html(found: FoundTokens, wanted: TokenFilter, *, pair: bool) -> str:
    """The tokens as a table: a click on the token opens Explore, one on the row shows more.

    Args:
        found: what to show.
        wanted: that it was found by.
        pair: whether two models saw the tokens.
    """
    return render(
        "page/evaluate/tokens.html",
        found=found,
        caption=caption_of(wanted),
        saw=SAW,
        narrowed=wanted.low > 0 or wanted.high < math.inf,
        low=wanted.low,
        high=f"{wanted.high:g}" if wanted.high < math.inf else "any",
        pair=pair,
        names=token_names(found),
        around=_CONTEXT,
    )


@dataclass(frozen=True)
class Masked:
    """A sentence with one more mask."""

    text: str  # with the mask
    number: int  # of the mask, from 0; others may have stood in the text before it


def masked(
    token: TokenExample, mask_token: str, most_characters: int = MAX_TEXT_CHARACTERS
) -> Masked:
    """The sentence with this one token hidden; a very long text is cut around it.

    Args:
        token: in its text.
        mask_token: of the model.
        most_characters: about so much of the text is kept.
    """
    start, end = token.start, token.end
    # Some tokenizers count the blank before a word as part of it.
    while start < end and token.text[start].isspace():
        start += 1
    left, right = token.text[:start], token.text[end:]
    if len(token.text) > most_characters:
        half = most_characters // 2
        left, right = left[-half:], right[:half]
    left = normalise_masks(left, mask_token)
    return Masked(f"{left}{mask_token}{right}", left.count(mask_token))


def hidden_word(token: TokenExample) -> str:
    """The hidden token as a word that Explore can score; blank where it is a part of one."""
    before, after = token.text[: token.start], token.text[token.end :]
    hidden = token.text[token.start : token.end]
    inside = hidden[:1].isalnum() and before[-1:].isalnum()
    word = hidden.strip()
    return "" if inside or after[:1].isalnum() or "," in word else word


def side_by_side_html(session: Session, token: TokenExample, models: Sequence[MaskedLM]) -> str:
    """The best words of each model for one token, beside each other.

    Args:
        session: runs the models.
        token: in its text.
        models: one or two.

    Raises:
        FillmaskError: if the sentence cannot be shown to a model.
    """
    panels = []
    losses = (token.nll_nats, token.baseline_nll_nats)
    for letter, model, loss in zip("AB", models, losses, strict=False):
        prompt = masked(token, model.vocabulary.mask_token)
        mask = session.fill(model, prompt.text, top_k=TOP_K, joint=0).masks[prompt.number]
        names = candidate_names(mask.candidates, model.vocabulary)
        panels.append(
            {
                "caption": f"{letter}: {model.signature.name}",
                "note": "" if loss is None else f"Loss in the evaluation: {loss:.4f} nats.",
                "candidates": [*zip(names, mask.candidates, strict=True)],
            }
        )
    return render(
        "page/evaluate/sides.html",
        before=token.text[: token.start][-_CONTEXT_ABOVE:],
        hidden=token.text[token.start : token.end],
        after=token.text[token.end :][:_CONTEXT_ABOVE],
        token=token.token,
        panels=panels,
    )
