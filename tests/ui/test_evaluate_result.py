"""What the Evaluate tab shows of a result: figures, sentences, tokens, charts; text is text."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from evaluate_page import rows_of
from explore_page import session_of
from html_tags import Tags
from table_model import SPECIAL, WORDS, TableModel, TableVocabulary, sample_texts

from fillmask_ui.evaluation import EvaluationConfig, summarize
from fillmask_ui.intervals import Interval, Verdict
from fillmask_ui.masking import KINDS
from fillmask_ui.runs import prepare_info
from fillmask_ui.runs.listed import ListedRun
from fillmask_ui.runs.tokens import MeasuredToken
from fillmask_ui.show import charts as plots
from fillmask_ui.show.charts import charts
from fillmask_ui.show.charts.chart import CANDIDATE, LOSS, MUTED, REFERENCE
from fillmask_ui.show.render import render
from fillmask_ui.show.run_tables import interval
from fillmask_ui.show.sentences import (
    change_text,
    headline_text,
    measured_text,
    outlook_text,
    story_text,
)
from fillmask_ui.show.words import ListedTokens, named
from fillmask_ui.ui import components
from fillmask_ui.ui.evaluate import result_view
from fillmask_ui.ui.evaluate.result_view import (
    DIFFERENT,
    FLIPPED,
    WORST,
    TokenFilter,
    find_tokens,
    tokens_html,
)
from fillmask_ui.ui.job import Waiting

PASS, UNSURE = Verdict("PASS"), Verdict("INCONCLUSIVE")
EVIL = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'


def evil_rows():
    vocabulary = TableVocabulary((*SPECIAL, "<b>", "<script>", *WORDS))
    model = TableModel(vocabulary=vocabulary)
    model.signature = replace(model.signature, name=EVIL)
    text = f"the <b> {EVIL} cat"
    rows = rows_of(model, EvaluationConfig("pseudo-perplexity"), model, [text] * 3)
    return model, rows


def evil_token(model, row):
    choices = {"model": {"reference": "evil"}}
    info = prepare_info(EvaluationConfig("pseudo-perplexity"), model, choices=choices)
    return MeasuredToken(info, "model", row, row.scores, 0)


def run_list_html(runs, unreadable):
    values = {"chosen": "", "linked": True, "interval": interval, "most": 6}
    return render("evaluate/runs.html", runs=runs, unreadable=unreadable, **values)


def test_text_of_others_is_never_markup():
    model, rows = evil_rows()
    summary = summarize(rows)
    info = prepare_info(EvaluationConfig("pseudo-perplexity"), model, baseline=model)
    info = replace(info, name=EVIL, error=EVIL, notes=(EVIL,))
    matches = find_tokens(rows, TokenFilter(WORST))
    token = replace(matches.tokens[0], text=EVIL + "cat" + EVIL, start=len(EVIL), end=len(EVIL) + 3)
    session = session_of(evil=model)
    listed = ListedRun(EVIL, EVIL, EVIL, "stopped", EVIL, EVIL, EVIL, EVIL, 3, verdict=EVIL)
    grouped = summarize(replace(row, id=place, group=EVIL) for row in rows for place in range(6))
    sources = [
        result_view.figures_html(summary, info),
        result_view.all_figures_html(summary, info),
        *tokens_html(replace(matches, tokens=(token,)), TokenFilter(), pair=True).values(),
        result_view.side_by_side_html(session, [evil_token(model, rows[0])]),
        result_view.ending_html(Waiting(EVIL, state="failed"), None),
        components.job_changes(Waiting(EVIL))["notice"],
        run_list_html([listed], {EVIL: EVIL}),
        result_view.slices_html(grouped, replace(info, texts={"group_column": EVIL})),
    ]
    for chart in charts(summary):
        sources += [
            render("ui/chart_head.html", chart=replace(chart, title=EVIL, note=EVIL)),
            render("ui/chart_table.html", chart=chart),
        ]
    assert sum("&lt;script&gt;" in source for source in sources) >= 7
    for source in sources:
        tags = Tags(source)
        assert not tags.names & {"script", "img"}, source
        assert not {name for name in tags.attributes if name.startswith("on")}


def test_one_model_in_a_sentence():
    """Two texts; the geometric mean of 1/4 and 1/9 is 1/6, by hand."""
    summary = summarize(rows_of())
    model = replace(summary.model, tokens=2, mean_nll_nats=-math.log(1 / 4 * 1 / 9) / 2)
    assert story_text(replace(summary, texts=2, model=model), "A") == (
        "On 2 texts, A gave the 2 hidden words and word parts 16.7% on average (the geometric "
        "mean): a loss of 1.79 nats, as uncertain as 6.0 equally likely words."
    )


@pytest.mark.parametrize(
    ("change", "bounds", "verdict", "headline"),
    [
        (0.002, (-0.003, 0.0071), PASS, "PASS: at most 0.71% worse (limit 5%)"),
        (-0.02, (-0.03, -0.01), PASS, "PASS: at least 1.00% better"),
        (0.0, (-1e-7, 1e-7), PASS, "PASS: at most 0.01% worse (limit 5%)"),
        (0.0, (0.0, 0.0), replace(PASS, equal=True), "PASS: the difference is exactly 0"),
        (0.07, (0.06, 0.08), Verdict("AT_RISK"), "AT_RISK: 6.00% to 8.00% worse (limits 5% and "),
        (0.4, (0.3, 0.5), Verdict("REGRESSION"), "REGRESSION: at least 30.00% worse (limit 10%)"),
        (
            math.inf,
            None,
            Verdict("REGRESSION"),
            "REGRESSION: the candidate gave a hidden word zero ",
        ),
        (0.03, (-0.01, 0.07), UNSURE, "INCONCLUSIVE: 1.00% better to 7.00% worse crosses the 5% "),
        (0.05, (0.01, 0.2), UNSURE, "INCONCLUSIVE: 1.00% to 20.00% worse crosses the 5% and 10% "),
        (math.nan, None, UNSURE, "INCONCLUSIVE: a mean loss is infinite"),
        (0.5, (0.4, 0.6), Verdict("NEAR_CHANCE"), "NEAR_CHANCE: the candidate is hardly better "),
    ],
)
def test_the_headline_is_the_verdict_and_the_bound_that_it_rests_on(
    pair, change, bounds, verdict, headline
):
    summary = summarize(pair)
    span = bounds and Interval(*bounds, "t")
    comparison = replace(summary.comparison, relative_change=change, interval=span, verdict=verdict)
    summary = replace(summary, comparison=comparison)
    assert headline_text(summary).startswith(headline)
    assert ("no difference is seen" in change_text(summary)) == (
        bounds is not None and bounds[0] < 0 < bounds[1]
    )
    html = result_view.figures_html(summary, prepare_info(EvaluationConfig(), TableModel()))
    bound = headline.partition(": ")[2]
    assert f"<h2>{bound[0].upper()}{bound[1:]}" in html


def test_too_few_texts_are_told_with_how_many_are_needed(pair):
    few, long = summarize(pair[:6]), summarize(pair)
    needed = Verdict("INCONCLUSIVE", needed_texts=150)
    long = replace(
        long,
        texts=60,
        model=replace(long.model, effective_texts=12.0),
        comparison=replace(long.comparison, texts=60, verdict=needed),
    )
    least = math.ceil(30 * 6 / few.model.effective_texts)
    assert headline_text(few) == f"INCONCLUSIVE: 6 texts cannot settle it, {least} are needed"
    needed = "60 texts of unequal length count as 12; about 150 are needed"
    assert headline_text(long) == f"INCONCLUSIVE: {needed}"
    assert few.to_dict()["comparison"]["needed_texts"] == least
    assert outlook_text(few) == outlook_text(long) == ""


def test_what_was_measured_stands_behind_the_headline(pair):
    summary = summarize(pair)
    sizes = {"size_bytes": 20_300_000, "name": "a"}
    info = replace(prepare_info(EvaluationConfig(), TableModel()), model=sizes)
    tokens = f"{summary.texts} texts, {summary.model.tokens:,} tokens"
    assert measured_text(summary) == tokens
    half = replace(info, baseline=sizes | {"size_bytes": 40_600_000}, call_seconds=(2.5, 2.0))
    assert measured_text(summary, half) == (
        f"{tokens}, 20.3 MB (0.50× the reference), 1.25× the speed"
    )
    assert measured_text(summary, replace(info, baseline=sizes)).endswith(
        "the reference is the candidate itself"
    )


def test_endings_have_one_name_and_show_their_token():
    token = find_tokens(rows_of(), TokenFilter()).tokens[0]
    ending = replace(token, text="freezes", start=5, end=7, token="##es", top_token="##ing")
    matches = replace(find_tokens(rows_of(), TokenFilter()), tokens=(ending,))
    table, worst = tokens_html(matches, TokenFilter(), pair=False).values()
    assert ">…es</button>" in table
    assert ">…ing " in table
    assert ">“…ing”" in worst
    for source in (table, worst):
        assert "##" not in re.sub(r'title="[^"]*"', "", source)
    listed = ListedTokens({1: "Ġthe", 2: "ing", 3: "The"})
    assert [named(listed, 1), named(listed, 2), named(listed, 3, first=True)] == [
        "the",
        "…ing",
        "The",
    ]


def flat(rows):
    """(loss A, loss B, best guess A, best guess B, text, position) of every token."""
    for row in rows:
        losses, best = (row.scores.nll_nats, row.reference.nll_nats), row.scores.top_ids
        places = ([row.id] * len(row.cols), row.cols)
        yield from zip(*losses, best, row.reference.top_ids, *places, strict=True)


@pytest.mark.parametrize("saw", ["", *KINDS])
def test_tokens_are_chosen_by_what_the_model_saw(pair, saw):
    matches = find_tokens(pair, TokenFilter(saw=saw, low=1.0))
    expected = [
        (row.scores.nll_nats[entry], KINDS[kind])
        for row in pair
        for entry, kind in enumerate(row.kinds)
        if row.scores.nll_nats[entry] >= 1.0 and saw in ("", KINDS[kind])
    ]
    assert 0 < matches.count == len(expected)
    listed = [(token.nll_nats, token.kind) for token in matches.tokens]
    assert listed == sorted(expected, key=lambda token: -token[0])[: result_view.SHOWN]
    html = tokens_html(matches, TokenFilter(saw=saw), pair=True)["tokens"]
    assert (", left unchanged" in html) == (saw == "unchanged")


def test_the_largest_differences_and_the_flips(pair):
    different = find_tokens(pair, TokenFilter(DIFFERENT)).tokens
    expected = sorted((abs(t[0] - t[1]) for t in flat(pair)), reverse=True)
    assert [abs(t.difference_nats) for t in different] == expected[: len(different)]
    flipped = find_tokens(pair, TokenFilter(FLIPPED))
    assert flipped.count == sum(t[2] != t[3] for t in flat(pair))
    assert all(t.top_token != t.reference_top_token for t in flipped.tokens)


def losses(rows, which="scores"):
    return np.concatenate([getattr(row, which).nll_nats for row in rows])


def chart(rows, name, **options):
    return next(c for c in plots.charts(summarize(rows), **options) if c.name == name)


def test_each_chart_has_a_table_and_words_and_can_be_sent(pair):
    drawn = plots.charts(summarize(pair), names=("<b>A</b>", "B"))
    assert {"scatter", "differences"} <= {c.name for c in drawn}
    for c in drawn:
        assert c.table.rows
        assert {len(row) for row in c.table.rows} == {len(c.table.headings)}
        assert c.figure.layout.meta["description"]
        assert "<b>A" not in json.dumps([t.name for t in c.figure.data])
        json.loads(c.figure.to_json())


@pytest.mark.parametrize("which", [0, 1])
def test_the_histogram_counts_every_token_as_numpy_does(pair, which):
    histogram = chart(pair, "loss-histogram", names=("A", "B"))
    nll_nats = losses(pair, ("reference", "scores")[which])
    edges = np.array([row[0] for row in histogram.table.rows] + [histogram.table.rows[-1][1]])
    edges[[0, -1]] = -np.inf, np.inf
    # A loss on an edge of the fine bins may fall on either side by rounding: none does here.
    expected, _ = np.histogram(nll_nats, edges)
    assert [row[2 + 2 * which] for row in histogram.table.rows] == expected.tolist()
    assert list(histogram.figure.data[which].y) == expected.tolist()
    assert histogram.table.rows[-1][3 + 2 * which] == 1.0


def test_a_click_on_a_bar_finds_what_the_bar_counts():
    """Also at both ends, beyond which a few tokens lie."""
    texts = sample_texts(120, seed=3)
    rows = rows_of(config=EvaluationConfig("pseudo-perplexity"), texts=texts)
    for row in rows:
        row.scores.nll_nats[:] += 3
    rows[0].scores.nll_nats[0], rows[1].scores.nll_nats[0] = 0.33, 33.3
    bars = chart(rows, "loss-histogram").figure.data[0]
    assert float(bars.hovertext[0].split(" to ")[0]) > 0.33
    assert float(bars.hovertext[-1].split(" to ")[1]) < 33.3
    for data, count in zip(bars.customdata, bars.y, strict=True):
        low, high = data.split(":")
        token_filter = TokenFilter(low=float(low), high=float(high or "inf"))
        assert find_tokens(rows, token_filter).count == count


def test_equal_as_printed_is_no_difference():
    """Two models whose logits differ in the seventh digit."""
    rows = rows_of(TableModel(1, noise=1e-6))
    assert max(abs(change) for change in losses(rows) - losses(rows, "reference")) > 0
    summary = summarize(rows)
    drawn = {chart.name: chart for chart in plots.charts(summary)}
    assert "differences" not in drawn
    assert drawn["scatter"].figure.layout.meta["description"].count("; 0% lie above") == 1
    assert {row[-1] for row in drawn["scatter"].table.rows} == {0.0}
    table, worst = tokens_html(
        find_tokens(rows, TokenFilter(DIFFERENT)), TokenFilter(DIFFERENT), pair=True
    ).values()
    assert "No loss changes: the models are equal to two decimals." in worst
    info = prepare_info(EvaluationConfig(), TableModel(1), baseline=TableModel(1))
    figures = result_view.figures_html(summary, info)
    for source in (table, worst, figures):
        assert not re.search(r">[-+−]0\.0+<", source)
    # The axis of the interval does not grow with the noise: its line is shorter than a percent.
    (low, high) = map(float, re.search(r"--at: ([\d.]+)%; --to: ([\d.]+)%", figures).groups())
    assert high - low < 1


def test_a_model_alone_has_a_rank_and_no_change():
    _, worst = tokens_html(
        find_tokens(rows_of(), TokenFilter()), TokenFilter(), pair=False
    ).values()
    assert "→" not in worst


def test_the_distribution_function_is_that_of_the_sorted_losses(pair):
    distribution = chart(pair, "loss-distribution", names=("A", "B"))
    sorted_losses = np.sort(losses(pair, "reference"))
    line = distribution.figure.data[0]
    for x, y in zip(line.x[1:], line.y[1:], strict=True):
        assert y == pytest.approx((sorted_losses < x).mean(), abs=1.01 / len(sorted_losses))
    assert line.y[-1] == pytest.approx(1)
    for share, loss, _ in distribution.table.rows:
        expected = np.quantile(sorted_losses, share, method="inverted_cdf")
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
