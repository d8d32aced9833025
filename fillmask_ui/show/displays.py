"""Records as notebooks show them: a data frame, HTML in the page's templates, a chart of each.

A row of `DISPLAYS` for each kind of record of the core; features bring rows for theirs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from fillmask_ui.comparing import Comparison, Contrast
from fillmask_ui.comparing.word_contrast import SentenceComparison
from fillmask_ui.evaluation import EvaluatedText, Rows, Summary, summarize
from fillmask_ui.evaluation.catalogue import figures_of
from fillmask_ui.extensions import features, load
from fillmask_ui.filling.candidates import MAX_JOINT_MASKS
from fillmask_ui.filling.logit_lens import LogitLens
from fillmask_ui.filling.word_surprisal import SentenceSurprisal
from fillmask_ui.records import ROLES, Filling
from fillmask_ui.show import answers
from fillmask_ui.show.charts.record_charts import Bars, bars_figure, summary_figure
from fillmask_ui.show.drawing import MAX_BARS, bars_of
from fillmask_ui.show.figures import models_of, roles_of
from fillmask_ui.show.render import render
from fillmask_ui.show.words import ListedTokens

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]  # of a data frame, by column
still: Callable[..., str] = partial(render, live=False, unit="nats", version="")
_mask_html: Callable[..., str] = partial(
    answers.contrast_html, of="models", names=ROLES, live=False
)
_SHOWN_TOKENS = 10


def filling_rows(found: Filling) -> Iterator[Row]:
    """The candidates of each mask, then the words asked about that are none."""
    for number, mask in enumerate(found.masks, start=1):
        place, listed = {"mask": number, "position": mask.position}, set[int]()
        totals = itertools.accumulate(own.probability for own in mask.candidates)
        for own, total in zip(mask.candidates, totals, strict=True):
            more = {"nll_bits": own.nll_bits, "cumulative_probability": total, "asked": False}
            yield {**place, **vars(own), **more}
            listed.add(own.token_id)
        for word in mask.scored:
            if not listed.issuperset(word.ids):
                said = {name: getattr(word, name) for name in ("rank", "word", "probability")}
                losses = {"nll_nats": word.nll_nats, "nll_bits": word.nll_bits}
                yield {**place, **said, **losses, "asked": True}


def comparison_rows(found: Comparison) -> Iterator[Row]:
    """The words of each mask."""
    names = {
        "reference_model": found.reference.signature.name,
        "candidate_model": found.candidate.signature.name,
    }
    for number, mask in enumerate(found.masks, start=1):
        place = {
            "mask": number,
            "reference_position": mask.reference_position,
            "candidate_position": mask.candidate_position,
        }
        yield from ({**place, **vars(own), **names} for own in mask.candidates)


def _surprisal_rows(found: SentenceSurprisal) -> Iterator[Row]:
    for own in found.words:
        said = {name: getattr(own, name) for name in ("nll_nats", "probability", "rank", "unknown")}
        best = {"wanted": own.wanted[0].word, "wanted_probability": own.wanted[0].probability}
        place = {"word": own.word.text, "start": own.word.start, "end": own.word.end}
        yield {**place, **said, "tokens": len(own.parts), **best}


def _layer_rows(found: LogitLens) -> Iterator[Row]:
    for token in found.positions:
        for guess in token.layers:
            place = {"position": token.position, "at": token.token, "layer": guess.layer}
            true = {"true_probability": guess.true.probability} if guess.true else {}
            yield from ({**place, **vars(own), **true} for own in guess.candidates)


def _token_rows(rows: Rows) -> Iterator[Row]:
    for row in rows:
        if isinstance(row, EvaluatedText):
            yield from (vars(row.example(entry)) for entry in range(len(row.cols)))


def _summary_rows(summary: Summary) -> Iterator[Row]:
    sides = [*zip(roles_of(summary), models_of(summary), strict=True)]
    for of, record in (*sides, ("comparison", summary.comparison)):
        own = [] if of == "comparison" else [summary.metric_figure]
        for figure in () if record is None else (*own, *figures_of(type(record))):
            value, span = figure.value(record), figure.interval_of(record)
            ends = {"low": span and span.low, "high": span and span.high}
            if isinstance(value, int | float):
                yield {"of": of, "figure": figure.key, "unit": figure.unit, "value": value, **ends}


def listed(*records: Any) -> ListedTokens:
    """The vocabulary of the tokens that some records name."""
    return ListedTokens({own.token_id: own.token for own in records})


def _filling_html(found: Filling) -> Iterator[str]:
    for number, mask in enumerate(found.masks):
        size = found.signature.vocabulary_size
        bars = bars_of(mask, number, listed(*mask.candidates), size)
        values = {"filling": found, "selected": number, "mask": mask, "bars": bars, "zoom": 1}
        left_out = max(0, len(mask.candidates) - MAX_BARS)
        yield still("page/bars.html", **values, left_out=left_out, hidden=None)
    yield still("page/joint.html", filling=found, most=MAX_JOINT_MASKS)


def _comparison_html(found: Comparison) -> Iterator[str]:
    names = found.reference.signature.name, found.candidate.signature.name
    both = ([m.candidates for m in own.masks] for own in (found.reference, found.candidate))
    known = [listed(*itertools.chain(*candidates)) for candidates in both]
    notes = [answers.sentence(note) for note in found.notes]
    for number, mask in enumerate(found.masks):
        place = number if found.masks[1:] else None
        yield _mask_html(mask, known, titles=names, number=place, notes=notes)
    yield still("page/compare_joint.html", joint=found.joint, names=names)


def _contrast_html(mask: Contrast) -> Iterator[str]:
    known = [
        ListedTokens({row[name]: row[token] for row in map(vars, mask.candidates) if row[token]})
        for name, token in (
            ("reference_token_id", "reference_token"),
            ("candidate_token_id", "candidate_token"),
        )
    ]
    yield _mask_html(mask, known, titles=ROLES, number=None)


def _surprisal_html(found: SentenceSurprisal) -> Iterator[str]:
    known = listed(*(one for own in found.words for one in own.wanted))
    values = answers.surprisal_values(found.words, known, "nats")
    count = len(found.words)
    values |= {"vocabulary": known, "known": count, "total": count}
    yield still("page/surprise.html", **values)


def _layers_html(found: LogitLens) -> Iterator[str]:
    guesses = (guess for own in found.positions for guess in own.layers)
    known = listed(*itertools.chain(*(own.candidates for own in guesses)))
    yield still("page/layers_table.html", found=found, vocabulary=known)


def _words_html(found: SentenceComparison) -> Iterator[str]:
    values = answers.compared_values(found.words, found.alignment.alike, "difference", "nats")
    names, count = (
        [own.signature.name for own in (found.reference, found.candidate)],
        len(found.words),
    )
    yield still("page/apart.html", **values, models=names, known=count, total=count)


def _rows_html(rows: Rows) -> Iterator[str]:
    summary = summarize(rows)
    pair = summary.most_different
    values = {"tokens": (pair or summary.worst)[:_SHOWN_TOKENS], "names": ROLES[: 1 + bool(pair)]}
    yield still("notebook_rows.html", summary=summary, **values)


def _summary_html(summary: Summary) -> Iterator[str]:
    labels = ("the model",) if summary.comparison is None else ("", "")
    yield answers.summary_html(summary, labels, live=False)


class Display(NamedTuple):
    """How a kind of record is shown."""

    rows: Callable[[Any], Iterator[Row]]  # of its data frame
    html: Callable[[Any], Iterator[str]]  # parts, one below the other
    chart: Bars | Callable[[Any], Any]
    text: Callable[[Any], str] = lambda _: ""  # that stands above


_LOSS, _CHANCE = "loss (nats)", "probability"
_NLLS = ("reference_nll_nats", "candidate_nll_nats")
DISPLAYS: dict[type, Display] = {
    Filling: Display(
        filling_rows,
        _filling_html,
        Bars(("mask", "word"), ("probability",), _CHANCE, ".3~p"),
        lambda own: own.encoding.text,
    ),
    Comparison: Display(
        comparison_rows,
        _comparison_html,
        Bars(("mask", "word"), ("reference_probability", "candidate_probability"), _CHANCE, ".3~p"),
        lambda own: own.reference.encoding.text,
    ),
    Contrast: Display(
        lambda own: map(vars, own.candidates),
        _contrast_html,
        Bars(("word",), ("reference_probability", "candidate_probability"), _CHANCE, ".3~p"),
    ),
    SentenceSurprisal: Display(
        _surprisal_rows, _surprisal_html, Bars(("word",), ("nll_nats",), _LOSS, across=False)
    ),
    LogitLens: Display(
        _layer_rows,
        _layers_html,
        Bars(("at", "layer", "word"), ("probability",), _CHANCE, ".3~p"),
        lambda own: own.encoding.text,
    ),
    SentenceComparison: Display(
        lambda own: (word.to_dict() for word in own.words),
        _words_html,
        Bars(("word",), _NLLS, _LOSS, across=False),
    ),
    Rows: Display(_token_rows, _rows_html, lambda own: summary_figure(summarize(own))),
    Summary: Display(_summary_rows, _summary_html, summary_figure),
}


def display_of(record: Any) -> Display:
    """How a record of the core or of a feature is shown."""
    kind = type(record)
    if kind in DISPLAYS:
        return DISPLAYS[kind]
    target = f"{kind.__module__}:{kind.__qualname__}"
    display: Display = next(
        load(feature.displays[target]) for feature in features() if target in feature.displays
    )
    return display


def frame(record: Any) -> pd.DataFrame:
    """A data frame; whole numbers stay so where some are missing."""
    import pandas as pd

    rows = [*display_of(record).rows(record)]
    made = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        some = set(map(type, values)) == {int, type(None)}
        made[name] = pd.array(values, "Int64") if some else values
    return pd.DataFrame(made)


def html(record: Any) -> str:
    """What the page shows of it, for a light and a dark ground, with nothing to click."""
    display = display_of(record)
    return render("notebook.html", text=display.text(record), parts=[*display.html(record)])


def figure(record: Any) -> Any:
    """Its chart."""
    display = display_of(record)
    if isinstance(display.chart, Bars):
        return bars_figure([*display.rows(record)], display.chart)
    return display.chart(record)
