"""A run as one self-contained HTML page: figures, charts with their tables, worst tokens.

It holds the chart library and asks for nothing from outside, so it opens offline and in ten years.
Everything that comes from texts, tokens or models is escaped.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import Summary, TokenExample
from fillmask_ui.intervals import Interval
from fillmask_ui.runs import Run, RunInfo
from fillmask_ui.show.charts import Chart, charts
from fillmask_ui.show.charts.page import chart_library, figure_html

SHOWN_TOKENS = 40
_AROUND = 60  # characters of the sentence on each side of a token

_STYLE = """
:root { color-scheme: light dark; --line: rgba(128,128,128,.3); --soft: rgba(128,128,128,.12); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 0 auto; padding: 1.5rem;
  background: Canvas; color: CanvasText; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .4rem; }
p.note { opacity: .8; margin: .2rem 0 .6rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { text-align: right; padding: .25rem .7rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
td.text { min-width: 22rem; }
td:first-child:not(.text) { white-space: nowrap; }
thead th { border-bottom-width: 2px; }
.scroll { overflow-x: auto; }
.alarm { border-left: 4px solid #d97706; background: var(--soft); padding: .5rem .8rem;
  margin: .8rem 0; }
.verdict { font-size: 1.15rem; font-weight: 600; }
mark { background: #d9770655; color: inherit; padding: 0 .1em; border-radius: .2em; }
code { overflow-wrap: anywhere; font-size: .85rem; }
details { margin: .3rem 0 1rem; } summary { cursor: pointer; }
.js-plotly-plot text { fill: CanvasText !important; }
"""


def write_report(run: Run, target: Path) -> None:
    """Write the page of a run.

    Args:
        run: any run with measured texts, also one that is not done.
        target: the file.

    Raises:
        DataError: if no text was measured, or the file cannot be written.
    """
    page = report_html(run.summary(), run.info, run.state)
    try:
        target.write_text(page, "utf-8")
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror}") from error


def report_html(summary: Summary, info: RunInfo, state: str) -> str:
    """The page as text.

    Args:
        summary: figures of the run.
        info: its choices.
        state: `done`, or why it holds only a part of the texts.
    """
    names = (info.model["name"], info.baseline["name"] if info.baseline else "baseline")
    title = f"{names[0]}: {info.config.metric}"
    parts = [
        f"<h1>{_text(title)}</h1>",
        f'<p class="note">{_text(info.created)} · run {_text(info.name)}</p>',
        *_state(state, summary),
        *_verdict(summary, names),
        *(f'<p class="alarm">{_text(alarm)}</p>' for alarm in (*info.notes, *summary.alarms)),
        "<h2>Figures</h2>",
        _table(*_figures(summary, names)),
    ]
    for index, chart in enumerate(charts(summary, names=names)):
        parts += _chart(chart, f"chart-{index}")
    shown = (("Tokens with the largest loss", summary.worst),)
    if summary.most_different:
        shown = (("Tokens that differ most", summary.most_different), *shown)
    for heading, examples in shown:
        parts += [f"<h2>{heading}</h2>", _examples(examples[:SHOWN_TOKENS], names)]
    parts += ["<h2>Every choice</h2>", _choices(info)]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(title)}</title><style>{_STYLE}</style>"
        f"<script>{chart_library()}</script></head><body>{''.join(parts)}</body></html>\n"
    )


def _state(state: str, summary: Summary) -> Iterable[str]:
    if state != "done":
        yield (
            f'<p class="alarm">The run is {_text(state)}: these are the figures of the '
            f"{summary.texts:,} texts measured so far.</p>"
        )


def _verdict(summary: Summary, names: Sequence[str]) -> Iterable[str]:
    comparison = summary.comparison
    if comparison is None:
        return
    change = f"{comparison.relative_change:+.2%}"
    span = _span(comparison.interval, lambda value: f"{value:+.2%}")
    yield (
        f'<p class="verdict">{comparison.verdict.label}: {summary.compared_metric} '
        f"changes by {change}{f' (95 % interval {span})' if span else ''} against "
        f"{_text(names[1])}.</p>"
    )
    if comparison.verdict.further_texts:
        yield f"<p>About {comparison.verdict.further_texts:,} further texts would settle it.</p>"


def _figures(summary: Summary, names: Sequence[str]) -> tuple[list[str], list[list[Any]]]:
    models = [summary.model] + ([summary.baseline] if summary.baseline else [])
    columns = ["figure"]
    for name in names[: len(models)]:
        columns += [name, "95 % interval"]
    lines: list[tuple[str, list[Any]]] = [
        (
            summary.scheme.figure_key.replace("_", "-"),
            [(m.metric, m.metric_interval) for m in models],
        ),
        ("mean NLL (nats)", [(m.mean_nll_nats, m.interval) for m in models]),
        ("mean NLL (bits)", [(m.mean_nll_bits, None) for m in models]),
        ("median NLL (nats)", [(m.median_nll_nats, None) for m in models]),
        ("perplexity", [(m.perplexity, m.perplexity_interval) for m in models]),
        (
            "NLL per character (nats)",
            [(m.nll_per_character_nats, m.per_character_interval) for m in models],
        ),
        ("top-1 accuracy", [(m.top1_accuracy, None) for m in models]),
        ("top-5 accuracy", [(m.top5_accuracy, None) for m in models]),
        ("mean rank", [(m.mean_rank, None) for m in models]),
        ("mean entropy (nats)", [(m.mean_entropy_nats, None) for m in models]),
        ("calibration error", [(m.calibration_error, None) for m in models]),
        ("tokens", [(m.tokens, None) for m in models]),
        ("texts cut at the end", [(m.truncated, None) for m in models]),
    ]
    rows = [
        [name, *(cell for value, interval in cells for cell in (value, _span(interval)))]
        for name, cells in lines
    ]
    blank = [""] * (2 * len(models) - 1)
    rows.append(["texts", summary.texts, *blank])
    rows += [[f"skipped: {reason}", count, *blank] for reason, count in summary.skipped.items()]
    rows += [[name, value, *blank] for name, value in _differences(summary)]
    return columns, rows


def _differences(summary: Summary) -> Iterable[tuple[str, Any]]:
    comparison = summary.comparison
    if comparison is None:
        return
    yield f"difference by {comparison.unit} (nats)", comparison.difference_nats
    named = {
        "same best guess": comparison.agreement,
        "best guess flipped": comparison.flips,
        "right only in the baseline": comparison.lost,
        "right only in the model": comparison.won,
        "mean KL divergence (nats)": comparison.mean_kl_nats,
        "mean reverse KL (nats)": comparison.mean_kl_reverse_nats,
        "mean |logit difference|": comparison.mean_abs_logit_difference,
        "largest |logit difference|": comparison.max_abs_logit_difference,
    }
    yield from ((name, value) for name, value in named.items() if value is not None)


def _chart(chart: Chart, identity: str) -> Iterable[str]:
    yield f"<h2>{_text(chart.title)}</h2>"
    if chart.note:
        yield f'<p class="note">{_text(chart.note)}</p>'
    yield f'<div role="img" aria-label="{_text(_described(chart))}">'
    yield f"{figure_html(chart.figure, identity)}</div>"
    table = _table(chart.table.columns, chart.table.rows)
    yield f"<details><summary>As a table</summary>{table}</details>"


def _described(chart: Chart) -> str:
    return (chart.figure.layout.meta or {}).get("description", chart.title)


def _examples(examples: Sequence[TokenExample], names: Sequence[str]) -> str:
    paired = bool(examples) and examples[0].baseline_nll_nats is not None
    if paired:
        columns = ["token", "the model saw"]
        columns += [f"{what}, {name}" for what in ("NLL (nats)", "best guess") for name in names]
    else:
        columns = ["token", "the model saw", "NLL (nats)", "rank", "best guess", "probability"]
    head = "".join(f"<th>{_text(column)}</th>" for column in ("text", *columns))
    body = []
    for entry in examples:
        cells: list[Any] = [entry.token, entry.kind, entry.nll_nats]
        if paired:
            cells += [entry.baseline_nll_nats, entry.top_token, entry.baseline_top_token]
        else:
            cells += [entry.rank, entry.top_token, entry.top_probability]
        row = "".join(f"<td>{_cell(cell)}</td>" for cell in cells)
        body.append(f'<tr><td class="text">{_sentence(entry)}</td>{row}</tr>')
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _sentence(entry: TokenExample) -> str:
    """The token marked in what stands around it."""
    left, right = entry.text[: entry.start], entry.text[entry.end :]
    before = left if len(left) <= _AROUND else "…" + left[-_AROUND:]
    after = right if len(right) <= _AROUND else right[:_AROUND] + "…"
    token = entry.text[entry.start : entry.end]
    return f"{_text(before)}<mark>{_text(token)}</mark>{_text(after)}"


def _choices(info: RunInfo) -> str:
    rows = [
        ["signature", info.signature],
        *(["model " + key.replace("_", " "), value] for key, value in info.model.items()),
    ]
    if info.baseline:
        rows += [["baseline " + key.replace("_", " "), v] for key, v in info.baseline.items()]
    rows += [["texts " + key, value] for key, value in info.texts.items()]
    rows += [["config " + key.replace("_", " "), v] for key, v in info.config.to_dict().items()]
    body = "".join(
        f'<tr><td>{_text(name)}</td><td class="text"><code>{_text(value)}</code></td></tr>'
        for name, value in rows
        if value not in (None, "", (), [], {})
    )
    return f'<div class="scroll"><table><tbody>{body}</tbody></table></div>'


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join(f"<th>{_text(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(value: Any) -> str:
    """A value for reading: whole numbers in full, others to five significant digits or more."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _text(value)
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return str(value)
    return f"{value:.4f}" if 0.001 <= abs(value) < 1e6 or value == 0 else f"{value:.4g}"


def _span(interval: Interval | None, render=lambda value: f"{value:,.4f}") -> str:
    return "" if interval is None else f"{render(interval.low)} to {render(interval.high)}"


def _text(value: Any) -> str:
    return html.escape(str(value))
