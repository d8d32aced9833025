"""Figures, verdicts, tables and lists of the Evaluate tab as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from fillmask_ui.evaluation import Comparison, ModelFigures, Summary
from fillmask_ui.evaluation.summary import UNCHANGED_ALARM
from fillmask_ui.intervals import Interval
from fillmask_ui.runs import Run, RunInfo
from fillmask_ui.show.charts import Chart, Names
from fillmask_ui.show.render import text_html
from fillmask_ui.ui.evaluate_job import News
from fillmask_ui.ui.widgets import (
    Cell,
    Column,
    Row,
    facts_html,
    notice_html,
    table_html,
)

METRIC_NAMES = {
    "cross-entropy": "Cross-entropy",
    "pseudo-perplexity": "Pseudo-perplexity",
    "uniform": "Mean loss, uniform share hidden",
    "suffix": "Mean loss, end hidden",
}
_VERDICTS = {
    "PASS": ("pass", "Pass"),
    "AT_RISK": ("risk", "At risk"),
    "REGRESSION": ("regression", "Regression"),
    "INCONCLUSIVE": ("inconclusive", "Inconclusive"),
}


def names_of(summary: Summary) -> Names:
    """What charts and tables call the models."""
    return ("A",) if summary.baseline is None else ("A", "B")


def number(value: float | None, digits: int = 4) -> str:
    """A number for reading; nothing for none.

    >>> number(2.345678), number(123456.7, 1), number(None), number(math.inf)
    ('2.3457', '123,456.7', '', 'infinite')
    """
    if value is None or math.isnan(value):
        return ""
    return f"{value:,.{digits}f}" if math.isfinite(value) else "infinite"


def between(interval: Interval | None, digits: int = 3) -> str:
    """An interval for reading."""
    if interval is None:
        return ""
    return f"{number(interval.low, digits)} to {number(interval.high, digits)}"


def signed_percent(value: float) -> str:
    """A relative change for reading.

    >>> signed_percent(0.0123), signed_percent(-0.5), signed_percent(0)
    ('+1.23 %', '−50.00 %', '0.00 %')
    """
    if math.isnan(value):
        return "unknown"
    sign = "+" if value > 0 else "−" if value < 0 else ""
    return f"{sign}{abs(value) * 100:.2f} %"


def figures_html(summary: Summary, info: RunInfo, *, final: bool = True) -> str:
    """Everything that was measured, in figures.

    Args:
        summary: so far, or at the end.
        info: of the run.
        final: whether the run is over; a signature and all figures belong to the end.
    """
    parts = [_headline_html(summary, info)]
    if summary.comparison is not None:
        parts.append(_verdict_html(summary, summary.comparison))
    parts += [
        notice_html("error", _sentence(text)) for text in summary.alarms if text != UNCHANGED_ALARM
    ]
    if final:
        parts.append(_details_html(summary, info))
    return "".join(parts)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _headline_html(summary: Summary, info: RunInfo) -> str:
    cards = [_card_html("A", info.model["name"], summary, summary.model)]
    if summary.baseline is not None and info.baseline is not None:
        cards.append(_card_html("B", info.baseline["name"], summary, summary.baseline))
    flattery = ""
    if UNCHANGED_ALARM in summary.alarms:
        masked = {g.name: g for g in summary.model.by_kind}.get("mask")
        alone = f" Mask tokens alone: {masked.mean_nll_nats:.4f} nats (A)." if masked else ""
        flattery = f'<p class="fm-note">{text_html(UNCHANGED_ALARM + alone)}</p>'
    return f'<div class="fm-cards">{"".join(cards)}</div>{flattery}'


def _card_html(letter: str, name: str, summary: Summary, figures: ModelFigures) -> str:
    metric = METRIC_NAMES[summary.config.metric] if summary.config else "Mean loss"
    pseudo = summary.config is not None and summary.config.metric == "pseudo-perplexity"
    interval = figures.metric_interval
    unit = "" if pseudo else " nats"
    spread = f"95 % interval {between(interval, 4)}{unit}" if interval else "no interval yet"
    skipped = sum(summary.skipped.values())
    basis = f"{counted(figures.tokens, 'token')} of {counted(summary.texts, 'text')}"
    return (
        f'<div class="fm-card"><span class="fm-card-name"><b>{letter}</b> {text_html(name)}</span>'
        f'<span class="fm-card-metric">{text_html(metric)}</span>'
        f'<span class="fm-card-value">{number(figures.metric)}<small>{unit}</small>'
        f'</span><span class="fm-card-note">{text_html(spread)}</span>'
        f'<span class="fm-card-note">{basis}{f", {skipped:,} skipped" if skipped else ""}</span>'
        "</div>"
    )


def _verdict_html(summary: Summary, comparison: Comparison) -> str:
    kind, label = _VERDICTS[comparison.verdict.label]
    change = f"A against B: {signed_percent(comparison.relative_change)}"
    if comparison.interval is not None:
        low, high = comparison.interval.low, comparison.interval.high
        change += f", 95 % interval {signed_percent(low)} to {signed_percent(high)}"
    if comparison.unit == "character":
        change += f"; {summary.compared_metric}, as the tokenizers differ"
    further = comparison.verdict.further_texts
    more = (
        f" About {further:,} more texts of this kind would settle it."
        if further is not None
        else " More texts may not settle it."
        if kind == "inconclusive"
        else ""
    )
    return (
        f'<div class="fm-verdict fm-verdict-{kind}" role="status"><b>{label}</b> '
        f"<span>{text_html(change)}.{more}</span></div>"
    )


def _details_html(summary: Summary, info: RunInfo) -> str:
    models = [m for m in (summary.model, summary.baseline) if m is not None]
    names = names_of(summary)
    columns = [Column("Figure"), *(Column(name, number=True) for name in names)]
    rows = [
        Row([Cell(what), *(Cell(text, value, kind="number") for text, value in cells)])
        for what, cells in _figure_rows(models)
    ]
    parts = [table_html("Figures", columns, rows)]
    facts = [*_pair_facts(summary), *_text_facts(summary)]
    if facts:
        parts.append(facts_html(facts, "About the texts and the pair"))
    parts.append(
        f'<p class="fm-note">Signature</p><code class="fm-signature">{text_html(info.signature)}'
        f'</code><p class="fm-note">Run {text_html(info.name)}</p>'
    )
    return "".join(parts)


def _figure_rows(models: Sequence[ModelFigures]) -> Iterable[tuple[str, list[tuple[str, float]]]]:
    for what, digits, values in (
        ("Mean loss (nats)", 4, [m.mean_nll_nats for m in models]),
        ("Mean loss (bits)", 4, [m.mean_nll_bits for m in models]),
        ("Perplexity", 3, [m.perplexity for m in models]),
        ("Loss per character (nats)", 4, [m.nll_per_character_nats for m in models]),
        ("Median loss (nats)", 2, [m.median_nll_nats for m in models]),
    ):
        yield what, [(number(value, digits), value) for value in values]
    for what, shares in (
        ("Top-1 accuracy", [m.top1_accuracy for m in models]),
        ("Top-5 accuracy", [m.top5_accuracy for m in models]),
        ("Calibration error", [m.calibration_error for m in models]),
    ):
        yield what, [(f"{share:.1%}", share) for share in shares]
    for what, digits, values in (
        ("Mean rank", 1, [m.mean_rank for m in models]),
        ("Mean entropy (nats)", 3, [m.mean_entropy_nats for m in models]),
        ("Tokens", 0, [float(m.tokens) for m in models]),
        ("Characters", 0, [float(m.characters) for m in models]),
    ):
        yield what, [(number(value, digits), value) for value in values]


def _pair_facts(summary: Summary) -> Iterable[tuple[str, str]]:
    pair = summary.comparison
    if pair is None:
        return
    spread = f" ({between(pair.difference_interval, 4)})" if pair.difference_interval else ""
    yield f"Difference per {pair.unit}", f"{pair.difference_nats:+.4f} nats{spread}"
    if pair.agreement is not None:
        yield "Same best guess", f"{pair.agreement:.1%}, {pair.flips:,} flipped"
        yield "Right only by A / only by B", f"{pair.won:,} / {pair.lost:,}"
    if pair.mean_kl_nats is not None and pair.mean_kl_reverse_nats is not None:
        yield "KL(A ‖ B) / KL(B ‖ A)", f"{pair.mean_kl_nats:.4f} / {pair.mean_kl_reverse_nats:.4f}"
    if pair.mean_abs_logit_difference is not None:
        yield (
            "Difference of logits, mean / largest",
            f"{pair.mean_abs_logit_difference:.4f} / {pair.max_abs_logit_difference:.4f}",
        )


def _text_facts(summary: Summary) -> Iterable[tuple[str, str]]:
    for reason, count in summary.skipped.items():
        yield f"Skipped: {reason}", counted(count, "text")
    if summary.model.truncated:
        yield "Cut at the end", counted(summary.model.truncated, "text")
    if summary.model.left_out:
        yield "Unknown or special, not scored", counted(summary.model.left_out, "token")


def counted(count: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "text"), counted(2000, "text")
    ('1 text', '2,000 texts')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def progress_html(news: News) -> str:
    """How far a job is, in words and as a bar."""
    if news.state == "waiting":
        return notice_html("busy", news.message, news.fraction)
    if news.state == "running":
        total = f" of {news.expected:,}" if news.expected else ""
        left = "" if news.seconds_left is None else f", {duration(news.seconds_left)} left"
        return notice_html("busy", f"{news.seen:,}{total} texts{left}", news.fraction or 0.0)
    notes = " ".join(_sentence(note) for note in (news.info.notes if news.info else ()))
    if news.state == "failed":
        kept = " What was measured is kept in the list of runs." if news.seen else ""
        return notice_html("error", f"{_capital(news.message).rstrip('.')}.{kept}")
    if news.state == "stopped":
        if news.info is None:
            return notice_html("hint", "Stopped before anything was measured.")
        total = f" of {news.expected:,}" if news.expected else ""
        return notice_html(
            "hint",
            f"Stopped after {news.seen:,}{total} texts. They are kept: resume the run below to "
            f"measure the rest. {notes}",
        )
    return notice_html("hint", notes) if notes else notice_html("none")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def duration(seconds: float) -> str:
    """A time left for reading.

    >>> duration(3.2), duration(75), duration(7300)
    ('about 4 s', 'about 2 min', 'about 2 h 2 min')
    """
    if seconds < 60:
        return f"about {math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60)
    return f"about {minutes} min" if minutes < 60 else f"about {minutes // 60} h {minutes % 60} min"


def chart_head_html(chart: Chart) -> str:
    """A chart's title and how to read it."""
    return f'<h3 class="fm-chart-title">{text_html(chart.title)}</h3>' + (
        f'<p class="fm-note">{text_html(chart.note)}</p>' if chart.note else ""
    )


def chart_table_html(chart: Chart) -> str:
    """A chart's numbers, folded away."""
    numeric = [
        any(isinstance(row[index], (int, float)) for row in chart.table.rows)
        for index in range(len(chart.table.columns))
    ]
    columns = [
        Column(name, number=own) for name, own in zip(chart.table.columns, numeric, strict=True)
    ]
    rows = [
        Row([_cell(value, own) for value, own in zip(row, numeric, strict=True)])
        for row in chart.table.rows
    ]
    return (
        f'<details class="fm-chart-table"><summary>Table</summary>'
        f"{table_html(chart.title, columns, rows)}</details>"
    )


def _cell(value: Any, numeric: bool) -> Cell:
    if not numeric:
        return Cell(str(value))
    if value is None:
        return Cell("", kind="number")
    shown = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    return Cell(shown, value, kind="number")


def runs_html(runs: Sequence[Run], unreadable: Sequence[str] = (), chosen: str = "") -> str:
    """The stored runs, newest first; a click on a row shows it.

    Args:
        runs: as they are listed.
        unreadable: why others are missing.
        chosen: name of the run that is shown.
    """
    missing = "".join(notice_html("hint", f"Not listed: {why}") for why in unreadable)
    if not runs:
        return f'<p class="fm-note">No run is stored yet.</p>{missing}'
    columns = [
        Column("Run"),
        Column("Metric", narrow=False),
        Column("A"),
        Column("B", narrow=False),
        Column("Texts", number=True),
        Column("Value", number=True),
        Column("Verdict", narrow=False),
        Column("State"),
    ]
    rows = [_run_row(run, marked=run.info.name == chosen) for run in runs]
    return table_html("Stored runs", columns, rows, "Click a run to show it.") + missing


def _run_row(run: Run, *, marked: bool) -> Row:
    info, result = run.info, run.info.result or {}
    name = "pseudo_perplexity" if info.config.metric == "pseudo-perplexity" else "cross_entropy"
    value = result.get(name)
    texts = result.get("texts", run.row_count if not result else 0)
    when = f"{info.created[:10]} {info.created[11:19]}"
    return Row(
        [
            Cell(when, kind="action", title=f"show run {info.name}"),
            Cell(info.config.metric),
            Cell(str(info.model["name"])),
            Cell(str(info.baseline["name"]) if info.baseline else ""),
            Cell(f"{texts:,}", texts, kind="number"),
            Cell(number(value), value, kind="number"),
            Cell(_VERDICTS[result["verdict"]][1] if "verdict" in result else ""),
            Cell(run.state, title=info.error or ""),
        ],
        key=info.name,
        marked=marked,
    )
