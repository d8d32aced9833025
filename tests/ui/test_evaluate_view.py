"""What the Evaluate tab shows: the right tokens, the right words, and text that is only text."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from evaluate_page import (
    TEXTS,
    evaluate_rows,
    finish,
    models,
    own_page_jobs,
    rows_of,
    upload,
    uploaded,
)
from page_tags import Tags
from table_model import SPECIAL, WORDS, TableModel, TableVocabulary

from fillmask_ui.errors import FillmaskError
from fillmask_ui.evaluation import EvaluationConfig, summarize
from fillmask_ui.evaluation.summary import UNCHANGED_ALARM
from fillmask_ui.intervals import Interval, Verdict
from fillmask_ui.models import ModelStore
from fillmask_ui.runs import prepare_info
from fillmask_ui.runs.tokens import MeasuredToken
from fillmask_ui.show.charts import CHARTS
from fillmask_ui.show.render import render
from fillmask_ui.ui.evaluate import result_view, tab, tokens, view
from fillmask_ui.ui.evaluate.evaluation_jobs import Listing, Selection
from fillmask_ui.ui.evaluate.job import JobStatus
from fillmask_ui.ui.evaluate.tokens import DIFFERENT, WORST, TokenFilter, find_tokens
from fillmask_ui.ui.session import Session

EVIL = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'


def evil_rows():
    vocabulary = TableVocabulary((*SPECIAL, "<b>", "<script>", *WORDS))
    model = TableModel(vocabulary=vocabulary)
    model.signature = replace(model.signature, name=EVIL)
    text = f"the <b> {EVIL} cat"
    rows = evaluate_rows(model, [text] * 3, EvaluationConfig("pseudo-perplexity"), model)
    return model, rows


def evil_token(model, row):
    config = EvaluationConfig("pseudo-perplexity")
    choices = {"model": {"reference": "evil"}}
    info = prepare_info(config, model, choices=choices)
    return MeasuredToken(info, "model", row, row.scores, 0)


def test_text_of_others_is_never_markup():
    model, rows = evil_rows()
    summary = summarize(rows)
    info = replace(
        prepare_info(EvaluationConfig("pseudo-perplexity"), model, baseline=model),
        name=EVIL,
        error=EVIL,
        notes=(EVIL,),
    )
    found = find_tokens(rows, TokenFilter(WORST))
    token = replace(found.tokens[0], text=EVIL + "cat" + EVIL, start=len(EVIL), end=len(EVIL) + 3)
    session = Session(ModelStore(loader=lambda *_, **__: model), "table")
    sources = [
        result_view.figures_html(summary, info),
        result_view.all_figures_html(summary, info),
        tokens.tokens_html(replace(found, tokens=(token,)), TokenFilter(), pair=True),
        result_view.worst_html(replace(found, tokens=(token,)), TokenFilter(), pair=True),
        tokens.side_by_side_html(session, [evil_token(model, rows[0])]),
        result_view.progress_html(JobStatus("failed", EVIL, info=info)),
        result_view.progress_html(JobStatus("waiting", EVIL)),
        result_view.progress_html(JobStatus("stopped", info=info)),
        render("page/evaluate/runs.html", listing=Listing([], {EVIL: EVIL}), chosen=""),
    ]
    for chart in view._charts(summary, ()).values():
        sources += [
            render("page/evaluate/chart_head.html", chart=replace(chart, title=EVIL, note=EVIL)),
            render("page/evaluate/chart_table.html", chart=chart),
        ]
    assert sum("&lt;script&gt;" in source for source in sources) >= 7
    for source in sources:
        tags = Tags(source)
        assert not tags.names & {"script", "img"}, source
        assert not {name for name in tags.attributes if name.startswith("on")}


def test_the_figures_are_those_of_the_summary(pair):
    config = EvaluationConfig()
    summary = summarize(pair, config=config)
    info = prepare_info(config, TableModel(1), baseline=TableModel(1, noise=0.3))
    source = result_view.figures_html(summary, info) + result_view.all_figures_html(summary, info)
    for figures in (summary.model, summary.baseline):
        assert f"{figures.mean_nll_nats:.4f}" in Tags(source).text
        values = re.findall(r'data-value="([^"]+)"', source)
        assert repr(figures.mean_nll_nats) in values
        assert repr(figures.top1_accuracy) in values
    assert info.signature in Tags(source).text
    assert UNCHANGED_ALARM in Tags(source).text
    masks = next(g for g in summary.model.by_kind if g.name == "mask")
    assert f"Mask tokens alone: {masks.mean_nll_nats:.4f}" in Tags(source).text


@pytest.mark.parametrize(
    ("verdict", "interval", "said"),
    [
        (Verdict("PASS"), Interval(-0.01, 0.02, "bootstrap-t"), "Pass"),
        (Verdict("REGRESSION"), Interval(0.2, 0.3, "bootstrap-t"), "Regression"),
        (Verdict("INCONCLUSIVE", 120), Interval(0.0, 0.3, "bootstrap-t"), "About 120 more texts"),
        (Verdict("INCONCLUSIVE"), None, "cannot say how many more"),
    ],
)
def test_a_verdict_is_said_in_words(pair, verdict, interval, said):
    summary = summarize(pair)
    comparison = replace(summary.comparison, verdict=verdict, interval=interval)
    info = prepare_info(EvaluationConfig(), TableModel(1), baseline=TableModel(1))
    source = result_view.figures_html(replace(summary, comparison=comparison), info)
    assert said in Tags(source).text


def test_a_model_near_chance_is_an_error_on_the_page():
    model = TableModel(scale=0.0)
    summary = summarize(rows_of(model=model), vocabulary_size=model.signature.vocabulary_size)
    info = prepare_info(EvaluationConfig(), model)
    source = result_view.figures_html(summary, info)
    assert 'role="alert"' in source
    assert "near chance" in source


@pytest.mark.parametrize(
    ("metric", "unit"),
    [("cross-entropy", " nats"), ("pseudo-perplexity", ""), ("bits-per-byte", " bits")],
)
def test_the_metric_stands_with_its_unit(metric, unit):
    config, model = EvaluationConfig(metric), TableModel(1)
    summary = summarize(rows_of(config=config), config=config)
    shown = " ".join(
        Tags(result_view.figures_html(summary, prepare_info(config, model))).text.split()
    )
    assert f"{config.metric.figure_label} {summary.model.metric:.4f}{unit} 95 %" in shown


def test_progress_says_how_much_and_how_long():
    running = JobStatus("running", seen=40, expected=100, fraction=0.4, seconds_left=75.0)
    assert "40 of 100 texts, about 2 min left" in result_view.progress_html(running)
    assert 'value="0.4000"' in result_view.progress_html(running)
    unknown = result_view.progress_html(JobStatus("running", seen=3))
    assert "3 texts" in unknown
    assert "Stopped before" in result_view.progress_html(JobStatus("stopped"))


@pytest.fixture
def done(tmp_path):
    """A evaluation_jobs with one run of two models."""
    page_jobs = own_page_jobs(tmp_path / "runs")
    updates = list(
        view.job_updates(page_jobs, lambda: page_jobs.begin(uploaded(tmp_path, baseline="noisy")))
    )
    return page_jobs, updates[-1]


def test_the_page_after_a_run_has_everything(done):
    _, page = done
    assert page.busy is False
    assert list(page.charts) == list(CHARTS)
    assert page.tokens.pair
    assert page.tokens.order == DIFFERENT
    assert page.selection.run in page.runs.names
    assert page.runs.chosen == page.selection.run


def test_a_stored_run_makes_the_same_page(done):
    page_jobs, page = done
    again = view.stored(page_jobs, page.selection)
    assert (again.figures, again.every) == (page.figures, page.every)
    assert again.tokens.html == page.tokens.html
    for name, chart in page.charts.items():
        assert again.charts[name].table == chart.table


def test_a_click_shows_what_both_models_say(done):
    page_jobs, page = done
    token = page.tokens.found[0]
    last = list(view.side_by_side(page_jobs, page.selection, token))[-1]
    assert Tags(last).text.count("Loss in the run") == 2
    assert f"{token.nll_nats:.4f}" in last
    assert f"{token.baseline_nll_nats:.4f}" in last


def test_a_token_opens_in_explore_where_it_stands_in_the_run(done):
    page_jobs, page = done
    token = page.tokens.found[0]
    place = {"run": page.selection.run, "example": str(token.id), "token": str(token.position)}
    models = {"model": "table", "compare": "noisy"}
    assert view.explore_state(page_jobs, page.selection, token) == {**place, **models}
    other = replace(page.selection, other="another")
    assert view.explore_state(page_jobs, other, token) == {**place, "run_b": "another"}
    twice = replace(page.selection, other=page.selection.run)
    assert view.explore_state(page_jobs, twice, token) == {
        **place,
        "run_b": page.selection.run,
        "model": "table",
        "compare": "table",
    }


def test_a_row_of_tokens_can_be_chosen_by_keyboard(done):
    _, page = done
    first = page.tokens.html.split("<tr")[2]
    opens, shows = re.findall(r"<button[^>]*>", first)
    assert 'data-key="open:0"' in opens
    assert "data-key" not in shows  # a click on it is one on its row
    assert 'data-key="show:0"' in first


def test_a_model_that_is_gone_is_said_in_place(done):
    page_jobs, page = done

    def gone(choice, **_):
        raise FillmaskError(f"{choice.reference} is gone")

    page_jobs.session.store = type(page_jobs.session.store)(loader=gone)
    last = list(view.side_by_side(page_jobs, page.selection, page.tokens.found[0]))[-1]
    assert "is gone" in last


def test_the_brush_chooses_tokens(done):
    page_jobs, page = done
    update = view.chosen_tokens(page_jobs, page.selection, WORST, 2.0, 3.0)
    assert update.tokens.found
    assert all(2.0 <= token.nll_nats < 3.0 for token in update.tokens.found)
    assert "from 2 to 3 nats" in update.tokens.html
    below = view.chosen_tokens(page_jobs, page.selection, WORST, -2.0, 3.0)
    assert "from 0 to 3 nats" in below.tokens.html
    assert view.chosen_tokens(page_jobs, page.selection, WORST, 1.0, -1.0).tokens.found == ()
    every = view.chosen_tokens(page_jobs, page.selection, DIFFERENT, None, None)
    assert every.tokens.html == page.tokens.html
    assert view.chosen_tokens(page_jobs, Selection(), WORST, None, None).tokens is None


def test_tokens_of_two_compared_runs_are_paired(tmp_path):
    page_jobs = own_page_jobs(tmp_path / "runs")
    names = []
    for model in ("table", "noisy"):
        job = page_jobs.begin(uploaded(tmp_path, model=model))
        names.append(finish(job)[-1].info.name)
    shown = Selection(*names)
    page = view.stored(page_jobs, shown)
    assert "scatter" in page.charts
    update = view.chosen_tokens(page_jobs, shown, DIFFERENT, None, None)
    expected = find_tokens(rows_of(TableModel(1, noise=0.3)), TokenFilter(DIFFERENT))
    assert [(t.id, t.position) for t in update.tokens.found] == [
        (t.id, t.position) for t in expected.tokens
    ]


def test_bad_input_changes_nothing_but_the_message(tmp_path):
    page_jobs = own_page_jobs(tmp_path / "runs")
    bad = uploaded(tmp_path, probability=2)
    *_, last = view.job_updates(page_jobs, lambda: page_jobs.begin(bad))
    assert "above 0" in last.notice
    assert last.busy is False
    assert (last.figures, last.charts, last.tokens, last.selection) == (None, None, None, None)
    empty = uploaded(tmp_path, upload=upload(tmp_path, [], "empty.txt"))
    *_, last = view.job_updates(page_jobs, lambda: page_jobs.begin(empty))
    assert "empty" in last.notice
    assert last.figures is None


def test_runs_that_do_not_compare_are_said_and_nothing_is_lost(tmp_path):
    page_jobs = own_page_jobs(tmp_path / "runs")
    names = [
        finish(page_jobs.begin(uploaded(tmp_path, seed=seed)))[-1].info.name for seed in (1, 2)
    ]
    page = view.stored(page_jobs, Selection(*names))
    assert "measured different things" in page.notice
    assert page.figures is None
    unknown = view.stored(page_jobs, Selection("nowhere"))
    assert "Unknown run" in unknown.notice


def test_a_stopped_run_is_shown_with_what_it_has_and_resumes(tmp_path):
    known = models()
    known["table"].free_calls = 6
    page_jobs = own_page_jobs(tmp_path / "runs", known=known)
    updates = view.job_updates(
        page_jobs, lambda: page_jobs.begin(uploaded(tmp_path, metric="pseudo-perplexity"))
    )
    next(updates)
    next(updates)
    assert known["table"].reached.wait(30)
    page_jobs.cancel()
    *_, last = updates
    assert "Stopped after" in last.notice
    known["table"].open.set()
    name = last.runs.names[0]
    *_, end = view.job_updates(page_jobs, lambda: page_jobs.resume(name))
    assert end.selection.run == name
    assert f"of {len(TEXTS)} texts" in end.figures
    *_, refused = view.job_updates(page_jobs, lambda: page_jobs.resume(name))
    assert "nothing is left" in refused.notice


def test_a_run_that_failed_later_says_why(tmp_path):
    """Its figures were shown, and kept, while it was only stopped."""
    page_jobs = own_page_jobs(tmp_path / "runs")
    name = finish(page_jobs.begin(uploaded(tmp_path)))[-1].info.name
    path = tmp_path / "runs" / name / "run.json"
    for state, error, said in (
        ("stopped", None, "was stopped"),
        ("failed", "the texts are not the same", "failed: the texts are not the same"),
    ):
        values = json.loads(path.read_text()) | {"state": state, "error": error}
        path.write_text(json.dumps(values))
        assert said in view.stored(page_jobs, Selection(name)).notice


def test_a_message_keeps_its_dots():
    shown = result_view.progress_html(JobStatus("failed", "../a.csv has no column 'x'; see ../b."))
    assert "../a.csv has no column &#39;x&#39;; see ../b.<" in shown


def test_charts_are_drawn_once_for_the_same_figures(done):
    page_jobs, page = done
    summaries = [page_jobs.result(page.selection).summary]
    summaries.append(replace(summaries[0]))
    info = page_jobs.store.open(page.selection.run).info
    running = JobStatus("running", info=info, expected=60)
    seen = [summaries[0]] * 3 + [summaries[1]] * 2
    told = [running, *(replace(running, seen=n, summary=s) for n, s in enumerate(seen))]
    drawn = []
    for update in view.followed(page_jobs, told):
        assert update.busy
        assert (update.figures is None) == (update.charts is None) == (update.selection is None)
        drawn.append(update.charts is not None)
        if update.charts is not None:
            assert update.selection == Selection()
    assert drawn == [False, True, False, False, True, False]


def test_deleting_says_so_and_an_unknown_name_too(done):
    page_jobs, page = done
    update = view.deleted(page_jobs, page.selection.run)
    assert "was deleted" in update.notice
    assert update.runs.names == ()
    assert "Unknown run" in view.deleted(page_jobs, page.selection.run).notice


class Event:
    """What a chart sends."""

    def __init__(self, **values):
        self.__dict__.update(values)


def test_what_the_histogram_sends_is_a_range():
    assert tab.chosen_range(Event(low=0.5, high=1)) == (0.5, 1.0)
    assert tab.chosen_range(Event(low=-0.4, high=1.239)) == (0.0, 1.24)
    assert tab.chosen_range(Event(low=None, high=None)) == (None, None)
    assert tab.chosen_range(Event(low=16, high=None)) == (16.0, None)
    assert tab.chosen_range(Event(low="<b>", high=[])) == (None, None)


def test_charts_can_be_sent_with_every_number(done):
    _, page = done
    for chart in page.charts.values():
        json.loads(chart.figure.to_json())
        shown = re.findall(
            r'data-value="([^"]+)"', render("page/evaluate/chart_table.html", chart=chart)
        )
        numbers = [v for row in chart.table.rows for v in row if isinstance(v, (int, float))]
        assert sorted(map(float, shown)) == sorted(map(float, numbers))
    assert math.isfinite(np.sum(page.charts["loss-histogram"].table.rows[0][2]))
