"""Charts of an evaluation: the numbers of the rows, in colours that can be seen."""

import json

import numpy as np
import pytest
from evaluate_page import rows_of
from table_model import sample_texts

from fillmask_ui.evaluation import EvaluationConfig, summarize
from fillmask_ui.show import charts as plots
from fillmask_ui.show.charts.chart import CANDIDATE, LOSS, MUTED, REFERENCE
from fillmask_ui.ui.evaluate.result_view import TokenFilter, find_tokens


def losses(rows, which="scores"):
    return np.concatenate([getattr(row, which).nll_nats for row in rows])


def chart(rows, name, **options):
    return next(c for c in plots.charts(summarize(rows), **options) if c.name == name)


def test_each_chart_has_a_table_and_words_and_can_be_sent(pair):
    found = plots.charts(summarize(pair), names=("<b>A</b>", "B"))
    assert {"scatter", "differences"} <= {c.name for c in found}
    for c in found:
        assert c.table.rows
        assert {len(row) for row in c.table.rows} == {len(c.table.headings)}
        assert c.figure.layout.meta["description"]
        assert "<b>A" not in json.dumps([t.name for t in c.figure.data])
        json.loads(c.figure.to_json())


@pytest.mark.parametrize("which", [0, 1])
def test_the_histogram_counts_every_token_as_numpy_does(pair, which):
    found = chart(pair, "loss-histogram", names=("A", "B"))
    own = losses(pair, ("baseline", "scores")[which])
    edges = np.array([row[0] for row in found.table.rows] + [found.table.rows[-1][1]])
    edges[[0, -1]] = -np.inf, np.inf
    # A loss on an edge of the fine bins may fall on either side by rounding: none does here.
    expected, _ = np.histogram(own, edges)
    assert [row[2 + 2 * which] for row in found.table.rows] == expected.tolist()
    assert list(found.figure.data[which].y) == expected.tolist()
    assert found.table.rows[-1][3 + 2 * which] == 1.0


def test_a_click_on_a_bar_finds_what_the_bar_counts():
    """Also at both ends, beyond which a few tokens lie."""
    many = sample_texts(120, seed=3)
    rows = rows_of(config=EvaluationConfig("pseudo-perplexity"), texts=many)
    for row in rows:
        row.scores.nll_nats[:] += 3
    rows[0].scores.nll_nats[0], rows[1].scores.nll_nats[0] = 0.33, 33.3
    bars = chart(rows, "loss-histogram").figure.data[0]
    assert float(bars.hovertext[0].split(" to ")[0]) > 0.33
    assert float(bars.hovertext[-1].split(" to ")[1]) < 33.3
    for data, count in zip(bars.customdata, bars.y, strict=True):
        low, high = data.split(":")
        wanted = TokenFilter(low=float(low), high=float(high or "inf"))
        assert find_tokens(rows, wanted).count == count


def test_the_distribution_function_is_that_of_the_sorted_losses(pair):
    found = chart(pair, "loss-distribution", names=("A", "B"))
    own = np.sort(losses(pair, "baseline"))
    line = found.figure.data[0]
    for x, y in zip(line.x[1:], line.y[1:], strict=True):
        assert y == pytest.approx((own < x).mean(), abs=1.01 / len(own))
    assert line.y[-1] == pytest.approx(1)
    for share, loss, _ in found.table.rows:
        expected = np.quantile(own, share, method="inverted_cdf")
        assert loss == pytest.approx(expected, abs=0.021)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_can_be_seen_on_both_backgrounds(theme):
    """WCAG 2.2, criterion 1.4.11: graphics need a contrast of 3 to 1."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    background = luminance({"light": "#fafaf9", "dark": "#171513"}[theme])
    for colour in (REFERENCE, CANDIDATE, LOSS, MUTED):
        high, low = sorted((luminance(colour), background), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 3
