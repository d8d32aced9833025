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
from fillmask_ui.show.bars import Axis, BarRow, Cell, Mark, WordColumn, WordColumns, short
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
    contrast: Contrast,
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

    The chart calls what is compared, `models` or `sentences` (`of`), by their `names`; `titles` are
    in full. `number` is that of the mask, None where the text has one; a click writes a word into
    the text and mask of `key`, if any.
    """
    name = partial(spelling.compared_name, first=vocabularies[0], second=vocabularies[1])
    by_change = sorted(contrast.candidates, key=lambda word: -abs(word.difference or 0.0))
    by_size = sorted(
        contrast.candidates, key=lambda word: -max(p or 0.0 for p in word.probabilities)
    )
    change = by == "change"
    ordered = by_change if change else by_size
    words = ordered[:MAX_ROWS] + [word for word in ordered[MAX_ROWS:] if word.asked]
    if change:
        steps = [100 * (word.difference or 0.0) for word in words]
        axis = Axis.fitted(steps, "points", signed=True, digits=2)
    else:
        axis = Axis.shares(zoom)
    most = by_change[0]
    truth = next((w for w in contrast.candidates if w.asked and w.word == hidden), None)
    rows = [
        BarRow(
            name(word),
            *_drawn_word(word, axis, change=change),
            key=f"{key}:{word.reference_token_id}"
            if key and word.reference_token_id is not None
            else "",
            title=f"Click to write {word.word} here",
            truth=word is truth,
            notes=("asked",) if word.asked and word is not truth else (),
        )
        for word in words
    ]
    return render(
        "page/contrast.html",
        mask=contrast,
        of=of,
        names=names,
        titles=titles,
        change=change,
        rows=rows,
        axis=axis,
        words=by_size,
        name=name,
        points=lambda word: spelling.points(word) or "–",
        first=[name(word) for word in spelling.first_words(contrast)],
        most=None if is_zero(100 * (most.difference or 0.0), 2) else most,
        truth=truth,
        number=number,
        notes=notes,
        unit=unit,
        zoom=zoom,
        live=live,
    )


def _drawn_word(
    word: ContrastedWord, axis: Axis, *, change: bool
) -> tuple[tuple[Mark, ...], tuple[Cell, ...]]:
    """Bars and numbers; that of a change is in the colour of the one that gives more."""
    points, ranks = spelling.points(word), _ranks(word)
    if not change:
        return axis.pair(word.probabilities), (Cell(points or "–"), ranks)
    cells = (*(Cell("–" if p is None else percent(p)) for p in word.probabilities), ranks)
    if word.difference is None:
        return (), cells
    role = "candidate" if word.difference > 0 else "reference"
    return (axis.mark(100 * word.difference, role, points),), cells


def _ranks(word: ContrastedWord) -> Cell:
    """From the reference to the candidate; a rank that stays says little."""
    first, second = word.reference_rank, word.candidate_rank
    if first is None or second is None:
        return Cell("–", quiet=True)
    return Cell(f"{first:,} → {second:,}", quiet=first == second)


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
        borders = ["0", *(f"{in_unit(border, unit):.2g}" for border in self.borders)]
        ranges = (f"{low}–{high}" for low, high in itertools.pairwise(borders))
        return (*ranges, f"{borders[-1]}+")


# Of a KL divergence, and of a difference of losses.
CHANGES = Levels((0.05, 0.2, 0.5, 1.0))
# A uniform guess among 22,000 words costs 10 nats.
LOSSES = Levels((2.0, 4.0, 6.0, 8.0))


def surprisal_values(
    words: Sequence[WordSurprisal], vocabulary: spelling.Spelling, unit: str
) -> dict[str, Any]:
    """What the template of a sentence's surprisal is filled in with, for the words known so far."""
    columns = []
    for word in words[:MAX_COLUMNS]:
        if not word.unknown:
            loss, level = in_unit(word.nll_nats, unit), LOSSES.of(word.nll_nats)
            guess = spelling.candidate_names(word.expected, vocabulary)[0]
            columns.append(WordColumn(word.word.text, loss, short(loss), guess, level))
    return {
        "summary": summarize_surprisal(words),
        "unknown": [word.word.text for word in words if word.unknown],
        "unspaced": is_unspaced("".join(word.word.text for word in words)),
        "labels": LOSSES.labels(unit),
        "chart": WordColumns.of(columns, unit),
    }


def compared_values(
    words: Sequence[ComparedWord], alike: bool, tint: str, unit: str
) -> dict[str, Any]:
    """The same for a sentence under two models; `tint` as of `compared_column`."""
    columns = [
        compared_column(word, tint, unit) for word in words[:MAX_COLUMNS] if not word.unknown
    ]
    return {
        "tint": tint,
        "alike": alike,
        "labels": LOSSES.labels(unit),
        "note": "" if alike else DIFFERENT_CUTS,
        "chart": WordColumns.of(columns, unit),
        "summary": summarize_comparison(words),
        "unknown": [word.text for word in words if word.unknown],
    }


def compared_column(word: ComparedWord, tint: str, unit: str) -> WordColumn:
    """A word by the difference of its losses, or by one of them; an unknown one has no number."""
    if word.unknown:
        return WordColumn(word.text, 0.0, "unknown", "")
    reference = in_unit(word.reference_nll_nats, unit)
    candidate = in_unit(word.candidate_nll_nats, unit)
    losses = f"{short(reference)} → {short(candidate)}"
    if tint == "a":
        level = LOSSES.of(word.reference_nll_nats)
        return WordColumn(word.text, reference, f"{reference:.2f}", losses, level)
    if tint == "b":
        level = LOSSES.of(word.candidate_nll_nats)
        return WordColumn(word.text, candidate, f"{candidate:.2f}", losses, level)
    difference = candidate - reference
    if math.isnan(difference) or is_zero(difference, 2):
        return WordColumn(word.text, 0.0, "=", losses)
    role = "candidate" if difference > 0 else "reference"
    level = CHANGES.of(abs(word.difference_nats))
    return WordColumn(word.text, difference, signed(difference, 2), losses, level, role)


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
        metric_figures=[*_metric_figures(summary.comparison), *_metric_figures(summary.model)],
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
    change, span = 100 * pair.relative_change, pair.interval.map(lambda share: 100 * share)
    if not all(map(math.isfinite, (change, span.low, span.high))) or not span.low < span.high:
        return None
    return change, span, lambda number: f"{number:+.3g}%".replace("-", "−"), least_axis(2)


def _metric_figures(record: Any) -> Iterator[tuple[str, str]]:
    """What the metric alone has and is said beside its figure: numbers, and words behind them."""
    extra = record and record.extra
    for figure in figures_of(type(extra)) if extra else ():
        if figure.note:
            value = figure.value(extra)
            yield (cell_text(Share(value)) if figure.share else cell_text(value)), figure.note


def masked_figures(summary: Summary) -> GroupFigures | None:
    """The figures of mask tokens alone, where unchanged ones flatter the mean."""
    kinds = {group.name: group for group in summary.model.by_kind}
    return kinds.get("mask") if UNCHANGED_ALARM in summary.alarms else None
