"""Two distributions at one mask as one chart: of two models, or of two sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fillmask_ui.comparing import Contrast, ContrastedWord
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.show.numbers import percent
from fillmask_ui.show.render import render
from fillmask_ui.show.words import compared_name, first_words, points
from fillmask_ui.ui.explore.charts import Axis, Cell, Mark, Row
from fillmask_ui.ui.explore.explore_state import Question

# Words with bars, and those asked about; the table has them all.
MAX_ROWS = 10


@dataclass(frozen=True)
class Sides:
    """Who says what; the reference comes first."""

    of: str  # `models` or `sentences`
    names: tuple[str, str]  # as the chart calls them
    titles: tuple[str, str]  # in full
    vocabularies: tuple[Vocabulary, Vocabulary]


def contrast_html(
    mask: Contrast,
    sides: Sides,
    question: Question,
    *,
    number: int | None,
    hidden: str | None = None,
    key: str = "",
    notes: Sequence[str] = (),
) -> str:
    """The conclusion, the bars, the figures and the table of all words.

    Args:
        mask: the comparison.
        sides: whose distributions these are.
        question: has the order of the rows, the unit and the end of the axis.
        number: of the mask, from 0; None where the text has one.
        hidden: the word behind the mask, if known.
        key: text and mask that a click writes into; blank where it writes nothing.
        notes: remarks below the figures.
    """

    def name(own: ContrastedWord) -> str:
        return compared_name(own, *sides.vocabularies)

    by_change = sorted(mask.candidates, key=lambda own: -abs(own.difference or 0.0))
    by_size = sorted(mask.candidates, key=lambda own: -max(p or 0.0 for p in own.probabilities))
    change = question.by == "change"
    ordered = by_change if change else by_size
    shown = [own for place, own in enumerate(ordered) if place < MAX_ROWS or own.asked]
    steps = [100 * (own.difference or 0.0) for own in shown]
    axis = Axis.fitted(steps, "points", signed=True) if change else Axis.shares(question.zoom)
    rows = []
    for own in shown:
        bars = _difference(own, axis) if change else _shares(own, axis)
        rows.append(
            Row(
                name(own),
                bars,
                (*(_share_cells(own) if change else (Cell(_points(own)),)), _ranks(own)),
                "" if own.token_id is None or not key else f"{key}:{own.token_id}",
                title=f"click to write {own.word} there",
                truth=own.asked and own.word == hidden,
                notes=("asked",) if own.asked and own.word != hidden else (),
            )
        )
    true = next((own for own in mask.candidates if own.asked and own.word == hidden), None)
    return render(
        "page/explore/contrast.html",
        mask=mask,
        sides=sides,
        change=change,
        rows=rows,
        axis=axis,
        words=by_size,
        name=name,
        points=_points,
        first=[name(own) for own in first_words(mask)],
        most=by_change[0],
        truth=true,
        number=number,
        notes=notes,
        unit=question.unit,
        zoom=question.zoom,
    )


def _difference(own: ContrastedWord, axis: Axis) -> tuple[Mark, ...]:
    """One bar, in the colour of the side that gives more; none without both."""
    if own.difference is None:
        return ()
    side = "candidate" if own.difference > 0 else "reference"
    return (axis.mark(100 * own.difference, side, _points(own)),)


def _shares(own: ContrastedWord, axis: Axis) -> tuple[Mark, ...]:
    pairs = zip(("reference", "candidate"), own.probabilities, strict=True)
    return tuple(axis.mark(100 * p, side, percent(p)) for side, p in pairs if p is not None)


def _share_cells(own: ContrastedWord) -> tuple[Cell, ...]:
    return tuple(Cell("–" if p is None else percent(p)) for p in own.probabilities)


def _points(own: ContrastedWord) -> str:
    return points(own).replace("-", "−") or "–"


def _ranks(own: ContrastedWord) -> Cell:
    """From the reference to the candidate; a rank that stays says little."""
    if own.rank is None or own.other_rank is None:
        return Cell("–", quiet=True)
    return Cell(f"{own.rank:,} → {own.other_rank:,}", quiet=own.rank == own.other_rank)
