"""Figures as tables and sentences: every figure of the catalogue, for all who show them."""

from dataclasses import replace

import pytest
from table_model import TableModel, letter_vocabulary, sample_texts

from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.evaluation.summary import COMPARISON_FIGURES, GROUP_FIGURES, MODEL_FIGURES
from fillmask_ui.intervals import Interval, Verdict
from fillmask_ui.show import figures
from fillmask_ui.show.sentences import (
    change_text,
    comparison_lines,
    conclusion_text,
    outlook_text,
)

PSEUDO = EvaluationConfig("pseudo-perplexity")
TEXTS = ["", *sample_texts(40, seed=3)]


@pytest.fixture(scope="module")
def pair():
    rows = evaluate(TableModel(1), TEXTS, PSEUDO, baseline=TableModel(1, noise=0.4))
    return summarize(rows, config=PSEUDO)


def test_every_figure_has_a_row_and_the_metric_comes_first(pair):
    table = figures.figures_table(pair)
    span = "95 % interval"
    assert table.headings == ("figure", "reference", span, "candidate", span)
    labels = [row[0] for row in table.rows]
    assert labels[0] == "Pseudo-perplexity"
    named = figures.figures_table(pair, metric_label=pair.metric_name)
    assert named.rows[0][0] == "pseudo_perplexity"
    assert labels[1:-2] == [figure.label for figure in MODEL_FIGURES]
    assert labels[-2:] == ["texts", "skipped: empty or blank"]
    own, baseline = pair.model, pair.baseline
    assert table.rows[0][1:] == (
        *(baseline.metric, baseline.metric_interval, own.metric, own.metric_interval),
    )
    assert table.rows[-2][1:] == (40, None, None, None)
    assert table.rows[-1][1:] == (1, None, None, None)
    interval, row = own.interval, labels.index("mean NLL (nats)")
    mean = (f"{own.mean_nll_nats:.4f}", f"{interval.low:.4f} to {interval.high:.4f}")
    assert tuple(table.texts()[row][3:5]) == mean
    assert table.rows[row][3] == own.mean_nll_nats
    assert table.right == (False, True, True, True, True)


def test_one_model_has_two_columns_and_no_comparison():
    alone = summarize(evaluate(TableModel(1), TEXTS))
    assert figures.figures_table(alone).headings == ("figure", "model", "95 % interval")
    assert figures.comparison_table(alone).rows == ()
    assert change_text(alone) == outlook_text(alone) == conclusion_text(alone) == ""
    assert list(comparison_lines(alone)) == []


def test_a_comparison_has_what_is_known_of_it(pair):
    table = figures.comparison_table(pair)
    labels = [row[0] for row in table.rows]
    known = [f.label for f in COMPARISON_FIGURES if f.value(pair.comparison) is not None]
    assert labels == known
    row = table.rows[labels.index("difference of the mean NLL (nats)")]
    assert row[1:] == (pair.comparison.difference_nats, pair.comparison.difference_interval)
    stored = replace(pair, comparison=replace(pair.comparison, mean_kl_nats=None))
    assert "KL(candidate || reference) (nats)" not in str(figures.comparison_table(stored))


def test_groups_that_one_model_lacks_stand_in_their_order():
    other = TableModel(2, vocabulary=letter_vocabulary())
    summary = summarize(evaluate(TableModel(1), TEXTS, PSEUDO, baseline=other), config=PSEUDO)
    table = figures.groups_table(figures.models_of(summary), "by_position", ("A", "B"))
    starts = [int(row[0].split("-")[0].rstrip("+")) for row in table.rows]
    assert starts == sorted(starts)
    half = len(GROUP_FIGURES) + 1
    empty = (0, *[None] * (half - 1))
    assert any(empty in (row[1 : 1 + half], row[1 + half :]) for row in table.rows)


def test_the_verdict_in_words(pair):
    def lines(verdict, interval):
        comparison = replace(
            pair.comparison, relative_change=0.1, interval=interval, verdict=verdict
        )
        return list(comparison_lines(replace(pair, comparison=comparison)))

    said = lines(Verdict("INCONCLUSIVE", 1200), Interval(-0.01, 0.3, "bootstrap-t"))
    assert said[1] == (
        "Verdict: INCONCLUSIVE (pseudo perplexity changes by +10.00%, "
        "95 % interval -1.00% to +30.00%)"
    )
    assert said[2] == "About 1,200 more texts of this kind settle it four times in five."
    said = lines(Verdict("INCONCLUSIVE"), None)
    assert said[1].endswith("+10.00%)")
    assert said[2] == "This many texts cannot say how many more would settle it."
    assert len(lines(Verdict("PASS"), None)) == 2
