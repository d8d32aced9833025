"""The tokens of an evaluation in their sentences: which ones, as a table, and both models' view."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fillmask_ui.evaluation import EvaluatedText, TokenExample, TokenScores, token_example
from fillmask_ui.filling import fill, normalise_masks
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import SkippedText
from fillmask_ui.runs import Run
from fillmask_ui.show.charts.explore import candidate_names, percent
from fillmask_ui.show.render import text_html
from fillmask_ui.ui.widgets import Cell, Column, Row, table_html

WORST, DIFFERENT, FLIPPED = "largest loss", "largest difference", "best guess flipped"
SHOWN = 100
# So many texts are looked through while somebody waits.
MAX_TEXTS = 20_000
TOP_K = 10
_CONTEXT = 90


@dataclass(frozen=True)
class Choice:
    """Which tokens are to be shown.

    Attributes:
        order: `WORST`, `DIFFERENT` or `FLIPPED`.
        low: smallest loss under model A, in nats.
        high: the loss stays below this; infinite for no bound.
    """

    order: str = WORST
    low: float = 0.0
    high: float = math.inf

    @property
    def narrowed(self) -> bool:
        return self.low > 0 or math.isfinite(self.high)


@dataclass(frozen=True)
class Found:
    """Tokens that fit a choice.

    Attributes:
        tokens: the first `SHOWN`.
        count: how many fit.
        texts: how many were looked through.
        all_texts: whether that was all of them.
    """

    tokens: tuple[TokenExample, ...] = ()
    count: int = 0
    texts: int = 0
    all_texts: bool = True


def find(rows: Iterable[EvaluatedText | SkippedText], choice: Choice) -> Found:
    """The tokens that come first by a choice, ties in the order of the texts.

    Args:
        rows: of a run, or pairs of two runs.
        choice: with an order other than `WORST` only tokens that two models saw count.
    """
    best: list[tuple[tuple[float, int, int], TokenExample]] = []
    count = texts = 0
    measured = (row for row in rows if isinstance(row, EvaluatedText))
    for row in itertools.islice(measured, MAX_TEXTS):
        texts += 1
        values = _values(row, choice)  # [M], NaN for what does not fit
        fitting = np.flatnonzero(~np.isnan(values))
        count += len(fitting)
        for index in fitting:
            key = (float(values[index]), -row.id, -int(row.cols[index]))
            if len(best) < SHOWN:
                heapq.heappush(best, (key, token_example(row, index)))
            elif key > best[0][0]:
                heapq.heapreplace(best, (key, token_example(row, index)))
    best.sort(key=lambda entry: entry[0], reverse=True)
    more = next(measured, None) is not None
    return Found(tuple(token for _, token in best), count, texts, not more)


def _values(row: EvaluatedText, choice: Choice) -> np.ndarray:
    """float64 [M], large for what comes first, NaN for what does not fit."""
    nll = row.scores.nll_nats
    fits = (nll >= choice.low) & (nll < choice.high)
    values = nll
    if choice.order != WORST:
        if row.baseline is None:
            return np.full(len(nll), np.nan)
        values = np.abs(nll - row.baseline.nll_nats)
        if choice.order == FLIPPED:
            fits &= row.scores.top_ids != row.baseline.top_ids
    return np.where(fits, values, np.nan)


def paired(run_a: Run, run_b: Run) -> Iterator[EvaluatedText | SkippedText]:
    """Rows of a run with another run's scores as their baseline, where both hid the same tokens.

    Raises:
        DataError: if one of the runs cannot be read.
    """
    scores: dict[int, tuple[bytes, TokenScores]] = {}
    for row in itertools.islice(run_b.rows(), MAX_TEXTS):
        if isinstance(row, EvaluatedText):
            scores[row.id] = (_fingerprint(row), row.scores)
    for row in run_a.rows():
        if isinstance(row, EvaluatedText) and row.id in scores:
            fingerprint, other = scores[row.id]
            if fingerprint == _fingerprint(row):
                yield replace(row, baseline=other, difference=None, other=None)


def _fingerprint(row: EvaluatedText) -> bytes:
    return row.ids.tobytes() + b"|" + row.cols.tobytes() + b"|" + row.shown_ids.tobytes()


def tokens_html(found: Found, choice: Choice, *, pair: bool) -> str:
    """The tokens as a table: a click on the token opens Explore, one on the row shows more.

    Args:
        found: what to show.
        choice: that it was found by.
        pair: whether two models saw the tokens.
    """
    columns = [
        Column("Token", "The token to be found; click it to open the sentence in Explore"),
        Column("Loss A" if pair else "Loss", "In nats", number=True),
        *([Column("Loss B", "In nats", number=True, narrow=False)] if pair else []),
        *([Column("A − B", "Difference of the losses, in nats", number=True)] if pair else []),
        Column("Rank", "Of the token to be found, under A", number=True, narrow=False),
        Column("A says" if pair else "Model says", "The most probable token"),
        *([Column("B says", "The most probable token", narrow=False)] if pair else []),
        Column("Model saw", narrow=False),
        Column("Sentence"),
    ]
    rows = [
        Row(_cells(token, index, pair=pair), key=f"show:{index}")
        for index, token in enumerate(found.tokens)
    ]
    return table_html(_caption(found, choice), columns, rows, _note(found))


def _caption(found: Found, choice: Choice) -> str:
    which = {
        WORST: "Tokens with the largest loss",
        DIFFERENT: "Tokens with the largest difference",
        FLIPPED: "Tokens whose best guess flipped",
    }[choice.order]
    if not choice.narrowed:
        return which
    high = f"{choice.high:g}" if math.isfinite(choice.high) else "any"
    return f"{which}, of the {found.count:,} with a loss from {choice.low:g} to {high} nats"


def _note(found: Found) -> str:
    said = (
        "Click a token to open its sentence in Explore, or its row to see what is said of it there."
    )
    if not found.count:
        return "No token fits."
    if found.count > len(found.tokens):
        said += f" The first {len(found.tokens):,} of {found.count:,}."
    if not found.all_texts:
        said += f" Only the first {found.texts:,} texts were looked through."
    return said


def _sentence(token: TokenExample) -> Cell:
    """A cell that shows a token in its surroundings."""
    text, start, end = token.text, token.start, token.end
    left, right = max(0, start - _CONTEXT), min(len(text), end + _CONTEXT)
    before = ("…" if left else "") + text[left:start]
    after = text[end:right] + ("…" if right < len(text) else "")
    return Cell(text[start:end], kind="marked", before=before, after=after)


def _open(token: TokenExample, index: int) -> Cell:
    """A cell with a button of its own, which opens Explore."""
    label = f"open {token.token} in its sentence in Explore"
    return Cell(token.token, kind="action", title=label, key=f"open:{index}")


def _cells(token: TokenExample, index: int, *, pair: bool) -> list:
    difference = token.difference_nats
    own = f"{token.top_token} {percent(token.top_probability)}"
    more = f"{own}; show what {'both models say' if pair else 'the model says'} here"
    cells = [_open(token, index), Cell(f"{token.nll_nats:.3f}", token.nll_nats, kind="number")]
    if pair:
        base = token.baseline_nll_nats
        cells += [
            Cell("" if base is None else f"{base:.3f}", base, kind="number"),
            Cell("" if difference is None else f"{difference:+.3f}", difference, kind="number"),
        ]
    # The row's own button, for those who come by keyboard.
    guess = Cell(own, kind="action", title=more)
    cells += [Cell(f"{token.rank:,}", token.rank, kind="number"), guess]
    if pair:
        cells.append(Cell(token.baseline_top_token or "", kind="code"))
    return [*cells, Cell(token.kind), _sentence(token)]


@dataclass(frozen=True)
class Masked:
    """A sentence with one more mask.

    Attributes:
        text: with the mask.
        number: of the mask, from 0; others may have stood in the text before it.
    """

    text: str
    number: int


def masked(token: TokenExample, mask_token: str, most_characters: int) -> Masked:
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


@dataclass(frozen=True)
class View:
    """Which model is asked what it says of a token.

    Attributes:
        letter: `A` or `B`.
        model: it.
        nll_nats: of the token in the evaluation, where known.
    """

    letter: str
    model: MaskedLM
    nll_nats: float | None


def side_by_side_html(token: TokenExample, views: Sequence[View], most_characters: int) -> str:
    """The best words of each model for one token, beside each other.

    Args:
        token: in its text.
        views: one or two.
        most_characters: of the text around the token.

    Raises:
        FillmaskError: if the sentence cannot be shown to a model.
    """
    panels = "".join(_view_html(token, view, most_characters) for view in views)
    return (
        f'<div class="fm-sides" role="region" aria-label="What the models say of this token">'
        f'<p class="fm-sides-text" dir="auto">{_marked(token)}</p><p class="fm-note">Here this '
        "token alone is hidden; in the evaluation others of the text were hidden as well, so that "
        f'its loss was another.</p><div class="fm-sides-row">{panels}</div></div>'
    )


def _marked(token: TokenExample) -> str:
    before, after = token.text[: token.start], token.text[token.end :]
    hidden = token.text[token.start : token.end]
    return f"{text_html(before[-300:])}<mark>{text_html(hidden)}</mark>{text_html(after[:300])}"


def _view_html(token: TokenExample, view: View, most_characters: int) -> str:
    prompt = masked(token, view.model.vocabulary.mask_token, most_characters)
    mask = fill(view.model, prompt.text, top_k=TOP_K, joint=0).masks[prompt.number]
    widest = mask.candidates[0].probability or 1.0
    rows = [
        Row(
            [
                Cell(str(candidate.rank), candidate.rank, kind="number"),
                Cell(name),
                Cell(
                    percent(candidate.probability),
                    candidate.probability,
                    candidate.probability / widest,
                    "number",
                ),
            ],
            marked=candidate.token == token.token,
        )
        for name, candidate in zip(candidate_names(mask.candidates), mask.candidates, strict=True)
    ]
    loss = "" if view.nll_nats is None else f" Loss in the evaluation: {view.nll_nats:.4f} nats."
    columns = [Column("#", number=True), Column("Word"), Column("Probability", number=True)]
    return table_html(f"{view.letter}: {view.model.signature.name}", columns, rows, loss.strip())
