"""What is said of records, as HTML from templates: for the page and for notebooks.

The tints do not depend on the sentence, so that two sentences can be compared. A `unit` is nats or
bits.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import fillmask_ui.show.words as spelling
from fillmask_ui.comparing import Contrast, ContrastedWord
from fillmask_ui.comparing.word_contrast import DIFFERENT_CUTS, ComparedWord, summarize_comparison
from fillmask_ui.evaluation import Summary
from fillmask_ui.evaluation.alarms import UNCHANGED_ALARM
from fillmask_ui.evaluation.catalogue import figures_of
from fillmask_ui.evaluation.summary import GroupFigures
from fillmask_ui.filling.word_surprisal import WordSurprisal, summarize_surprisal
from fillmask_ui.intervals import Interval
from fillmask_ui.records import ROLES
from fillmask_ui.runs import RunInfo
from fillmask_ui.show.bars import Axis, Cell, Column, Columns, Mark, Row, short
from fillmask_ui.show.figures import interval_heading, models_of
from fillmask_ui.show.numbers import Share, cell_text, in_unit, is_zero, least_axis, percent, signed
from fillmask_ui.show.render import render
from fillmask_ui.show.sentences import (
    bound_text,
    change_text,
    measured_text,
    outlook_text,
    sentence,
    story_text,
)
from fillmask_ui.text_words import is_unspaced

# Words with a column each; the tables have them all.
MAX_COLUMNS = 100
# Words with bars, and those asked about.
MAX_ROWS = 10


def contrast_html(
    found: Contrast,
    vocabularies: Sequence[spelling.Spelling],
    *,
    of: str,
    names: tuple[str, str],
    titles: tuple[str, str],
    number: int | None,
    hidden: str | None = None,
    key: str = "",
    notes: Sequence[str] = (),
    by: str = "probability",
    unit: str = "nats",
    zoom: int = 1,
    live: bool = True,
) -> str:
    """The conclusion, the bars, the figures and the table of all words; the reference comes first.

    The chart calls the sides, `models` or `sentences` (`of`), by their `names`; `titles` are in
    full. `number` is that of the mask, None where the text has one; a click writes a word into the
    text and mask of `key`, if any.
    """
    name = partial(spelling.compared_name, first=vocabularies[0], second=vocabularies[1])
    by_change = sorted(found.candidates, key=lambda own: -abs(own.difference or 0.0))
    by_size = sorted(found.candidates, key=lambda own: -max(p or 0.0 for p in own.probabilities))
    change = by == "change"
    ordered = by_change if change else by_size
    shown = [own for place, own in enumerate(ordered) if place < MAX_ROWS or own.asked]
    steps = [100 * (own.difference or 0.0) for own in shown]
    fitted = Axis.fitted(steps, "points", signed=True, digits=2)
    axis = fitted if change else Axis.shares(zoom)
    most = by_change[0]
    rows = [
        Row(
            name(own),
            *_drawn_word(own, axis, change=change),
            key=""
            if own.reference_token_id is None or not key
            else f"{key}:{own.reference_token_id}",
            title=f"click to write {own.word} there",
            truth=own.asked and own.word == hidden,
            notes=("asked",) if own.asked and own.word != hidden else (),
        )
        for own in shown
    ]
    return render(
        "page/contrast.html",
        mask=found,
        of=of,
        names=names,
        titles=titles,
        change=change,
        rows=rows,
        axis=axis,
        words=by_size,
        name=name,
        points=lambda own: spelling.points(own) or "–",
        first=[name(own) for own in spelling.first_words(found)],
        most=None if is_zero(100 * (most.difference or 0.0), 2) else most,
        truth=next((own for own in found.candidates if own.asked and own.word == hidden), None),
        number=number,
        notes=notes,
        unit=unit,
        zoom=zoom,
        live=live,
    )


def _drawn_word(
    own: ContrastedWord, axis: Axis, *, change: bool
) -> tuple[tuple[Mark, ...], tuple[Cell, ...]]:
    """Bars and numbers; that of a change is in the colour of the side that gives more."""
    if not change:
        return axis.pair(own.probabilities), (Cell(spelling.points(own) or "–"), _ranks(own))
    cells = *(Cell("–" if p is None else percent(p)) for p in own.probabilities), _ranks(own)
    if own.difference is None:
        return (), cells
    side = "candidate" if own.difference > 0 else "reference"
    return (axis.mark(100 * own.difference, side, spelling.points(own)),), cells


def _ranks(own: ContrastedWord) -> Cell:
    """From the reference to the candidate; a rank that stays says little."""
    if own.reference_rank is None or own.candidate_rank is None:
        return Cell("–", quiet=True)
    return Cell(
        f"{own.reference_rank:,} → {own.candidate_rank:,}",
        quiet=own.reference_rank == own.candidate_rank,
    )


@dataclass(frozen=True)
class Levels:
    """The borders between the tints of words, in nats; below the first there is none."""

    borders: tuple[float, ...]

    def of(self, nats: float) -> int:
        """The number of the tint; 0 for none.

        >>> levels = Levels((2.0, 4.0))
        >>> levels.of(1.9), levels.of(2.0), levels.of(float("inf")), levels.of(float("nan"))
        (0, 1, 2, 0)
        """
        return sum(nats >= border for border in self.borders)

    def labels(self, unit: str) -> tuple[str, ...]:
        """What each tint stands for, in the reader's unit.

        >>> Levels((2.0, 4.0)).labels("nats"), Levels((2.0, 4.0)).labels("bits")
        (('0–2', '2–4', '4+'), ('0–2.9', '2.9–5.8', '5.8+'))
        """
        ends = [f"{in_unit(border, unit):.2g}" for border in self.borders]
        between = (f"{low}–{high}" for low, high in itertools.pairwise(("0", *ends)))
        return (*between, f"{ends[-1]}+")


# Of a KL divergence, and of a difference of losses.
CHANGES = Levels((0.05, 0.2, 0.5, 1.0))
# A uniform guess among 22,000 words costs 10 nats.
LOSSES = Levels((2.0, 4.0, 6.0, 8.0))


def surprisal_values(
    words: Sequence[WordSurprisal], vocabulary: spelling.Spelling, unit: str
) -> dict[str, Any]:
    """What the template of a sentence's surprisal is filled in with, for the words known so far."""
    columns = []
    for own in words[:MAX_COLUMNS]:
        if not own.unknown:
            loss, level = in_unit(own.nll_nats, unit), LOSSES.of(own.nll_nats)
            wanted = spelling.candidate_names(own.wanted, vocabulary)[0]
            columns.append(Column(own.word.text, loss, short(loss), wanted, level))
    return {
        "summary": summarize_surprisal(words),
        "unknown": [own.word.text for own in words if own.unknown],
        "unspaced": is_unspaced("".join(own.word.text for own in words)),
        "labels": LOSSES.labels(unit),
        "chart": Columns.of(columns, unit),
    }


def compared_values(
    words: Sequence[ComparedWord], alike: bool, tint: str, unit: str
) -> dict[str, Any]:
    """The same for a sentence under two models; `tint` as of `compared_column`."""
    columns = [compared_column(own, tint, unit) for own in words[:MAX_COLUMNS]]
    return {
        "tint": tint,
        "alike": alike,
        "labels": LOSSES.labels(unit),
        "note": "" if alike else DIFFERENT_CUTS,
        "chart": Columns.of([own for own in columns if own.below], unit),
        "summary": summarize_comparison(words),
        "unknown": [own.text for own in words if own.unknown],
    }


def compared_column(own: ComparedWord, tint: str, unit: str) -> Column:
    """A word by the difference of its losses, or by one of them; an unknown one has no number."""
    if own.unknown:
        return Column(own.text, 0.0, "unknown", "")
    one, two = (in_unit(nats, unit) for nats in (own.reference_nll_nats, own.candidate_nll_nats))
    both = f"{short(one)} → {short(two)}"
    if tint != "difference":
        value, nats = (
            (one, own.reference_nll_nats) if tint == "a" else (two, own.candidate_nll_nats)
        )
        return Column(own.text, value, f"{value:.2f}", both, LOSSES.of(nats))
    value = two - one
    if math.isnan(value) or is_zero(value, 2):
        return Column(own.text, 0.0, "=", both)
    side = "candidate" if value > 0 else "reference"
    level = CHANGES.of(abs(own.difference_nats))
    return Column(own.text, value, signed(value, 2), both, level, side)


def summary_html(
    summary: Summary,
    labels: Sequence[str],
    info: RunInfo | None = None,
    *,
    final: bool = True,
    so_far: str = "",
    link: str = "",
    live: bool = True,
) -> str:
    """What was measured of models with these labels: the verdict, its interval, the figures.

    `info` of the run has the sizes; `so_far` qualifies the verdict of an unfinished run; `link`
    opens the page with this result, blank for none. `final` adds what can be done next.
    """
    return render(
        "page/summary.html",
        live=live,
        summary=summary,
        models=models_of(summary),
        roles=ROLES,  # a model alone has the colour of the reference
        labels=labels,
        story=story_text(summary, labels[-1], final=final and not so_far),
        link=link,
        final=final,
        so_far=so_far,
        masked=masked_figures(summary),
        said=[*_said(summary.comparison), *_said(summary.model)],
        bound=bound_text(summary),
        measured=measured_text(summary, info),
        drawn=_drawn(summary),
        change=change_text(summary),
        outlook=outlook_text(summary),
        interval=interval_heading(summary),
        alarms=[sentence(alarm) for alarm in summary.alarms if alarm != UNCHANGED_ALARM],
    )


def _drawn(summary: Summary) -> tuple[float, Interval, Callable[[float], str], float] | None:
    """The verdict's change in percent, its interval, how numbers are written and `least_axis`."""
    pair = summary.comparison
    if pair is None or pair.interval is None:
        return None
    change, span = 100 * pair.relative_change, pair.interval.map(lambda end: 100 * end)
    if not all(map(math.isfinite, (change, span.low, span.high))) or not span.low < span.high:
        return None
    return change, span, lambda end: f"{end:+.3g}%".replace("-", "−"), least_axis(2)


def _said(record: Any) -> Iterator[tuple[str, str]]:
    """What the metric alone has and is said beside its figure: numbers, and words behind them."""
    own = record and record.extra
    for figure in figures_of(type(own)) if own else ():
        if figure.note:
            value = figure.value(own)
            yield (cell_text(Share(value)) if figure.share else cell_text(value)), figure.note


def masked_figures(summary: Summary) -> GroupFigures | None:
    """The figures of mask tokens alone, where unchanged ones flatter the mean."""
    kinds = {group.name: group for group in summary.model.by_kind}
    return kinds.get("mask") if UNCHANGED_ALARM in summary.alarms else None
