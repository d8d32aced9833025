"""Records as notebooks show them: a data frame, HTML in the page's templates, a chart of each.

A row of `DISPLAYS` for each kind of record of the core; features bring rows for theirs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
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


def filling_rows(filling: Filling) -> Iterator[Row]:
    """The candidates of each mask, then the words asked about that are none."""
    for number, mask in enumerate(filling.masks, start=1):
        position = {"mask": number, "position": mask.position}
        totals = itertools.accumulate(candidate.probability for candidate in mask.candidates)
        for candidate, total in zip(mask.candidates, totals, strict=True):
            sums = {"nll_bits": candidate.nll_bits, "cumulative_probability": total}
            yield position | vars(candidate) | sums | {"asked": False}
        listed_ids = {candidate.token_id for candidate in mask.candidates}
        for word in mask.scored:
            if not listed_ids.issuperset(word.ids):
                names = ("rank", "word", "probability", "nll_nats", "nll_bits")
                yield position | {name: getattr(word, name) for name in names} | {"asked": True}


def comparison_rows(comparison: Comparison) -> Iterator[Row]:
    """The words of each mask."""
    models = {
        "reference_model": comparison.reference.signature.name,
        "candidate_model": comparison.candidate.signature.name,
    }
    for number, mask in enumerate(comparison.masks, start=1):
        positions = {
            "reference_position": mask.reference_position,
            "candidate_position": mask.candidate_position,
        }
        for word in mask.candidates:
            yield {"mask": number, **positions, **vars(word), **models}


def _surprisal_rows(surprisal: SentenceSurprisal) -> Iterator[Row]:
    for word in surprisal.words:
        best = word.expected[0]
        yield {
            "word": word.word.text,
            "start": word.word.start,
            "end": word.word.end,
            "nll_nats": word.nll_nats,
            "probability": word.probability,
            "rank": word.rank,
            "unknown": word.unknown,
            "tokens": len(word.parts),
            "expected": best.word,
            "expected_probability": best.probability,
        }


def _layer_rows(lens: LogitLens) -> Iterator[Row]:
    for token in lens.positions:
        for guess in token.layers:
            position = {"position": token.position, "at": token.token, "layer": guess.layer}
            true = {"true_probability": guess.true.probability} if guess.true else {}
            for candidate in guess.candidates:
                yield {**position, **vars(candidate), **true}


def _token_rows(rows: Rows) -> Iterator[Row]:
    for row in rows:
        if isinstance(row, EvaluatedText):
            yield from (vars(row.example(entry)) for entry in range(len(row.cols)))


def _summary_rows(summary: Summary) -> Iterator[Row]:
    records = [*zip(roles_of(summary), models_of(summary), strict=True)]
    for role, record in (*records, ("comparison", summary.comparison)):
        if record is None:
            continue
        figures = figures_of(type(record))
        for figure in figures if role == "comparison" else (summary.metric_figure, *figures):
            value, span = figure.value(record), figure.interval_of(record)
            if isinstance(value, int | float):
                yield {
                    "of": role,
                    "figure": figure.key,
                    "unit": figure.unit,
                    "value": value,
                    "low": span and span.low,
                    "high": span and span.high,
                }


def listed_tokens(candidates: Iterable[Any]) -> ListedTokens:
    """The vocabulary of the tokens of some candidates."""
    return ListedTokens({candidate.token_id: candidate.token for candidate in candidates})


def _filling_html(filling: Filling) -> Iterator[str]:
    for number, mask in enumerate(filling.masks):
        vocabulary = listed_tokens(mask.candidates)
        yield still(
            "page/bars.html",
            filling=filling,
            selected=number,
            mask=mask,
            bars=bars_of(mask, number, vocabulary, filling.signature.vocabulary_size),
            zoom=1,
            left_out=max(0, len(mask.candidates) - MAX_BARS),
            hidden=None,
        )
    yield still("page/joint.html", filling=filling, most=MAX_JOINT_MASKS)


def _comparison_html(comparison: Comparison) -> Iterator[str]:
    fillings = (comparison.reference, comparison.candidate)
    names = tuple(filling.signature.name for filling in fillings)
    vocabularies = [
        listed_tokens(candidate for mask in filling.masks for candidate in mask.candidates)
        for filling in fillings
    ]
    notes = [answers.sentence(note) for note in comparison.notes]
    for index, mask in enumerate(comparison.masks):
        number = index if comparison.masks[1:] else None
        yield _mask_html(mask, vocabularies, titles=names, number=number, notes=notes)
    yield still("page/compare_joint.html", joint=comparison.joint, names=names)


def _contrast_html(mask: Contrast) -> Iterator[str]:
    words = mask.candidates
    vocabularies = [
        ListedTokens({w.reference_token_id: w.reference_token for w in words if w.reference_token}),
        ListedTokens({w.candidate_token_id: w.candidate_token for w in words if w.candidate_token}),
    ]
    yield _mask_html(mask, vocabularies, titles=ROLES, number=None)


def _surprisal_html(surprisal: SentenceSurprisal) -> Iterator[str]:
    words = surprisal.words
    vocabulary = listed_tokens(candidate for word in words for candidate in word.expected)
    values = answers.surprisal_values(words, vocabulary, "nats")
    counts = {"known": len(words), "total": len(words)}
    yield still("page/surprise.html", vocabulary=vocabulary, **values, **counts)


def _layers_html(lens: LogitLens) -> Iterator[str]:
    guesses = (guess for token in lens.positions for guess in token.layers)
    vocabulary = listed_tokens(candidate for guess in guesses for candidate in guess.candidates)
    yield still("page/layers_table.html", lens=lens, vocabulary=vocabulary)


def _words_html(comparison: SentenceComparison) -> Iterator[str]:
    words, alike = comparison.words, comparison.alignment.alike
    values = answers.compared_values(words, alike, "difference", "nats")
    names = [model.signature.name for model in (comparison.reference, comparison.candidate)]
    counts = {"known": len(words), "total": len(words)}
    yield still("page/apart.html", **values, models=names, **counts)


def _rows_html(rows: Rows) -> Iterator[str]:
    summary = summarize(rows)
    tokens = summary.most_different or summary.worst
    names = ROLES if summary.most_different else ROLES[:1]
    yield still("notebook_rows.html", summary=summary, tokens=tokens[:_SHOWN_TOKENS], names=names)


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
        lambda record: record.encoding.text,
    ),
    Comparison: Display(
        comparison_rows,
        _comparison_html,
        Bars(("mask", "word"), ("reference_probability", "candidate_probability"), _CHANCE, ".3~p"),
        lambda comparison: comparison.reference.encoding.text,
    ),
    Contrast: Display(
        lambda contrast: map(vars, contrast.candidates),
        _contrast_html,
        Bars(("word",), ("reference_probability", "candidate_probability"), _CHANCE, ".3~p"),
    ),
    SentenceSurprisal: Display(
        _surprisal_rows, _surprisal_html, Bars(("word",), ("nll_nats",), _LOSS, horizontal=False)
    ),
    LogitLens: Display(
        _layer_rows,
        _layers_html,
        Bars(("at", "layer", "word"), ("probability",), _CHANCE, ".3~p"),
        lambda record: record.encoding.text,
    ),
    SentenceComparison: Display(
        lambda comparison: (word.to_dict() for word in comparison.words),
        _words_html,
        Bars(("word",), _NLLS, _LOSS, horizontal=False),
    ),
    Rows: Display(_token_rows, _rows_html, lambda rows: summary_figure(summarize(rows))),
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
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        some_missing = {type(value) for value in values} == {int, type(None)}
        columns[name] = pd.array(values, "Int64") if some_missing else values
    return pd.DataFrame(columns)


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
