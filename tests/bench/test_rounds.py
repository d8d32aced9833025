"""Medians, ratios, tables, Markdown and the page of a benchmark."""

import numpy as np
import pytest

from fillmask_ui.bench.rounds import Report, Row, compared
from fillmask_ui.show.bench import bench_tables, markdown, write_bench_page
from fillmask_ui.show.charts.run_charts import bench_charts

MACHINE = {
    "cpu": "<Some CPU>",
    "cores": 2,
    "features": ["avx2"],
    "system": "Linux 6 x86_64",
    "python": "3.11.7",
    "versions": {"numpy": "2.0"},
    "gflops": 150.0,
}
SENTENCES = [f"one sentence of {tokens} tokens" for tokens in (8, 32)]


@pytest.fixture
def report():
    rng = np.random.default_rng(0)
    rows = [
        Row(work, subject, unit, peer, (place + rng.random(9)).tolist(), 3.25)
        for work, unit in (("cross-entropy", "tokens/s"), *((work, "ms") for work in SENTENCES))
        for place, (subject, peer) in enumerate([("one", False), ("two", False), ("loop", True)], 1)
    ]
    rows.append(Row("load time", "one", "s", False, [0.5]))
    rows.append(Row("load time", "never ran", "s"))
    return Report(MACHINE, compared(rows), ("a note",))


def test_medians_percentiles_and_ratios(report):
    """Reference: numpy's percentiles."""
    values = [5.0, 1.0, 9.0, 2.0]
    row = Row("w", "a", "ms", values=values)
    assert row.median == 3.5
    assert row.spread == np.subtract(*np.percentile(values, [75, 25]))
    assert (row.p95, row.p99) == tuple(np.percentile(values, [95, 99]))
    rows = {(row.work, row.subject): row for row in report.rows}
    for (work, subject), row in rows.items():
        for other, ratio in row.ratios.items():
            assert ratio * rows[work, other].ratios[subject] == pytest.approx(1)
    fast, slow = rows["cross-entropy", "loop"], rows["cross-entropy", "one"]
    assert fast.ratios["one"] == fast.median / slow.median > 1
    quick, late = rows[SENTENCES[0], "one"], rows[SENTENCES[0], "loop"]
    assert quick.ratios["loop"] == late.median / quick.median > 1
    told = report.to_dict()["rows"][-1]
    assert (told["subject"], told["spread"], told["loss"]) == ("one", None, None)


def test_tables_markdown_and_charts(report, tmp_path):
    """A table per kind of work against the peer, a chart per work."""
    tables = bench_tables(report)
    titles = ["cross-entropy", "one sentence, text in to records out", "load time"]
    assert [table.title for table in tables] == titles
    sentences = tables[1]
    assert sentences.headings[:3] == ("size", "subject", "median (ms)")
    assert sentences.right[:3] == (False, False, True)
    assert sentences.headings[-1] == "against loop"
    assert [row[0] for row in sentences.rows] == ["8 tokens"] * 3 + ["32 tokens"] * 3
    assert sentences.texts()[0][-1] == f"{report.rows[3].ratios['loop']:.2f}x"
    text = markdown(report)
    assert "### Cross-entropy" in text
    assert "| subject | median (tokens/s) | spread | loss (nats) | against loop |" in text
    assert text.startswith("<Some CPU>, 2 cores (avx2), Linux 6 x86_64, 150 GFLOP/s")
    assert text.endswith("a note")
    charts = bench_charts(report)
    assert [chart.title for chart in charts] == list(dict.fromkeys(r.work for r in report.rows))
    bars = charts[0].figure.data[0]
    assert list(bars.x) == [row.median for row in report.rows[:3]]
    assert [row[1] for row in charts[0].table.rows] == list(bars.x)
    write_bench_page(report, tmp_path / "bench.html")
    page = (tmp_path / "bench.html").read_text()
    assert "&lt;Some CPU&gt;" in page
    assert "a note" in page
    assert page.count('class="plotly-graph-div"') == len(charts)
