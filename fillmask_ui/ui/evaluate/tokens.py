"""The tokens of an evaluation in their sentences: filtered, tabulated, seen by both models."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fillmask_ui.evaluation import EvaluatedText, TokenExample
from fillmask_ui.evaluation.running_sums import LargestTokens
from fillmask_ui.masking import KINDS
from fillmask_ui.records import SkippedText
from fillmask_ui.runs.tokens import MeasuredToken
from fillmask_ui.show.figures import ROLES
from fillmask_ui.show.render import render
from fillmask_ui.show.words import TokenNames, candidate_names
from fillmask_ui.ui.run_tokens import reading_values, replayed

if TYPE_CHECKING:
    from fillmask_ui.models.loading_progress import ProgressCallback
    from fillmask_ui.ui.session import Session

WORST, DIFFERENT, FLIPPED = "largest loss", "largest difference", "best guess flipped"
CAPTIONS = {
    WORST: "Tokens with the largest loss",
    DIFFERENT: "Tokens with the largest difference",
    FLIPPED: "Tokens whose best guess flipped",
}
# What the model saw in place of the hidden token -> its name on the page.
SAW = {
    "": "all",
    "mask": "hidden as mask",
    "random": "replaced by a random word",
    "unchanged": "left unchanged",
}
SHOWN = 100
# Texts searched while somebody waits.
MAX_TEXTS = 20_000
TOP_K = 10
_CONTEXT = 90  # characters of the text on each side of a token
_TOKENS_AROUND = 60  # the same in tokens, above the models' predictions


@dataclass(frozen=True)
class TokenFilter:
    """Which tokens to show."""

    order: str = WORST  # `WORST`, `DIFFERENT` or `FLIPPED`
    low: float = 0.0  # smallest loss under the model, or the candidate, in nats
    high: float = math.inf  # largest loss, exclusive
    saw: str = ""  # a kind of `masking.KINDS`; blank for any


@dataclass(frozen=True)
class FoundTokens:
    """Tokens that fit a filter."""

    tokens: tuple[TokenExample, ...] = ()  # the first `SHOWN`
    count: int = 0  # how many fit
    texts: int = 0  # searched
    all_texts: bool = True  # whether all were searched


def find_tokens(rows: Iterable[EvaluatedText | SkippedText], wanted: TokenFilter) -> FoundTokens:
    """The first tokens by a filter, ties in the order of the texts.

    `rows` are of a run or pairs of two; orders other than `WORST` need tokens that two models saw.
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
    """float64 [M], larger first; -inf for tokens that do not fit."""
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
    """The names of the tokens in a table."""
    return TokenNames(name for t in found.tokens for name in (t.token, t.top_token))


def caption_of(wanted: TokenFilter) -> str:
    """The order of the tokens, and the filter on what the model saw."""
    return CAPTIONS[wanted.order] + (f", {SAW[wanted.saw]}" if wanted.saw else "")


def tokens_html(found: FoundTokens, wanted: TokenFilter, *, pair: bool) -> str:
    """A table of tokens: a click on a token opens Explore, one on a row shows more.

    `pair` says whether two models saw the tokens.
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


def side_by_side_html(
    session: Session, tokens: Sequence[MeasuredToken], on_progress: ProgressCallback | None = None
) -> str:
    """Each model's best words for one token, side by side, with the run's options.

    `tokens` holds that of the candidate, and of the reference if there is one.

    Raises:
        FillmaskError: if a model of the run is no longer available.
    """
    panels: list[dict[str, Any]] = []
    roles = ROLES if len(tokens) > 1 else ("model",)
    for role, token in zip(roles, reversed(tokens), strict=True):
        again = replayed(session, token, top_k=TOP_K, on_progress=on_progress)
        true, names = (
            again.mask.scored[0],
            candidate_names(again.mask.candidates, again.model.vocabulary),
        )
        reading = reading_values(again, _TOKENS_AROUND)
        read = [token.token for token in reading["tokens"]]
        loss = f"Loss in the run: {true.nll_nats:.4f} nats, rank {true.rank:,}."
        chosen = reading["chosen"]
        if chosen.step:
            loss = f"Step {chosen.step} wrote “{chosen.written}”. {loss}"
        panels.append(
            {
                **reading,
                # Models with the same tokenizer read the same input.
                "reads_otherwise": read not in [panel["read"] for panel in panels],
                "read": read,
                "caption": f"{role.capitalize()}: {again.model.signature.name}",
                "note": f"{loss} {again.changed}",
                "candidates": [*zip(names, again.mask.candidates, strict=True)],
                "true": true,
            }
        )
    return render("page/evaluate/sides.html", panels=panels)
