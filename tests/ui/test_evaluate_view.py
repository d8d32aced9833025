"""What the Evaluate tab shows: the right tokens, the right words, and text that is only text."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from evaluate_page import (
    TEXTS,
    VISITOR,
    evaluate_rows,
    finish,
    form,
    models,
    rows_of,
    upload,
    workbench,
)
from page_tags import Tags
from table_model import SPECIAL, WORDS, TableModel, TableVocabulary

from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation import EvaluationConfig, summarize
from fillmask_ui.evaluation.summary import UNCHANGED_ALARM
from fillmask_ui.intervals import Interval, Verdict
from fillmask_ui.runs import prepare_info
from fillmask_ui.ui import evaluate, evaluate_results, evaluate_tokens
from fillmask_ui.ui import evaluate_view as view
from fillmask_ui.ui.evaluate_job import News
from fillmask_ui.ui.evaluate_runs import Shown
from fillmask_ui.ui.evaluate_tokens import DIFFERENT, WORST, Choice, find

EVIL = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'


def evil_rows():
    vocabulary = TableVocabulary((*SPECIAL, "<b>", "<script>", *WORDS))
    model = TableModel(vocabulary=vocabulary)
    model.signature = replace(model.signature, name=EVIL)
    text = f"the <b> {EVIL} cat"
    rows = evaluate_rows(model, [text] * 3, EvaluationConfig("pseudo-perplexity"), model)
    return model, rows


def test_text_of_others_is_never_markup():
    model, rows = evil_rows()
    summary = summarize(rows)
    info = replace(
        prepare_info(EvaluationConfig("pseudo-perplexity"), model, baseline=model),
        name=EVIL,
        error=EVIL,
        notes=(EVIL,),
    )
    found = find(rows, Choice(WORST))
    token = replace(found.tokens[0], text=EVIL + "cat" + EVIL, start=len(EVIL), end=len(EVIL) + 3)
    views = [evaluate_tokens.View("A", model, 1.0)]
    sources = [
        evaluate_results.figures_html(summary, info),
        evaluate_tokens.tokens_html(replace(found, tokens=(token,)), Choice(), pair=True),
        evaluate_tokens.side_by_side_html(token, views, 2000),
        evaluate_results.progress_html(News("failed", EVIL, info=info)),
        evaluate_results.progress_html(News("waiting", EVIL)),
        evaluate_results.progress_html(News("stopped", info=info)),
        evaluate_results.runs_html([], [EVIL]),
    ]
    for chart in view._charts(summary, (), log=True).values():
        sources += [
            evaluate_results.chart_head_html(replace(chart, title=EVIL, note=EVIL)),
            evaluate_results.chart_table_html(chart),
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
    source = evaluate_results.figures_html(summary, info)
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
        (Verdict("INCONCLUSIVE"), None, "may not settle"),
    ],
)
def test_a_verdict_is_said_in_words(pair, verdict, interval, said):
    summary = summarize(pair)
    comparison = replace(summary.comparison, verdict=verdict, interval=interval)
    info = prepare_info(EvaluationConfig(), TableModel(1), baseline=TableModel(1))
    source = evaluate_results.figures_html(replace(summary, comparison=comparison), info)
    assert said in Tags(source).text


def test_a_model_near_chance_is_an_error_on_the_page():
    model = TableModel(scale=0.0)
    summary = summarize(rows_of(model=model), vocabulary_size=model.signature.vocabulary_size)
    info = prepare_info(EvaluationConfig(), model)
    source = evaluate_results.figures_html(summary, info)
    assert 'role="alert"' in source
    assert "near chance" in source


def test_progress_says_how_much_and_how_long():
    running = News("running", seen=40, expected=100, fraction=0.4, seconds_left=75.0)
    assert "40 of 100 texts, about 2 min left" in evaluate_results.progress_html(running)
    assert 'value="0.4000"' in evaluate_results.progress_html(running)
    unknown = evaluate_results.progress_html(News("running", seen=3))
    assert "3 texts" in unknown
    assert "Stopped before" in evaluate_results.progress_html(News("stopped"))


@pytest.fixture
def done(tmp_path):
    """A workbench with one run of two models."""
    bench = workbench(tmp_path / "runs")
    updates = list(view.evaluation(bench, VISITOR, form(tmp_path, baseline="noisy"), log=False))
    return bench, updates[-1]


def test_the_page_after_a_run_has_everything(done):
    _, page = done
    assert page.busy is False
    assert set(page.charts) == set(view.CHARTS)
    assert page.tokens.pair
    assert page.tokens.choice.order == DIFFERENT
    assert page.shown.run in page.runs.names
    assert page.runs.chosen == page.shown.run


def test_a_stored_run_makes_the_same_page(done):
    bench, page = done
    again = view.stored(bench, VISITOR, page.shown, log=False)
    assert again.figures == page.figures
    assert again.tokens.html == page.tokens.html
    for name, chart in page.charts.items():
        assert again.charts[name].table == chart.table


def test_a_click_shows_what_both_models_say(done):
    bench, page = done
    token = page.tokens.found[0]
    last = list(view.side_by_side(bench, VISITOR, page.shown, token))[-1]
    assert Tags(last.side).text.count("Loss in the evaluation") == 2
    assert f"{token.nll_nats:.4f}" in last.side
    assert f"{token.baseline_nll_nats:.4f}" in last.side


def test_a_token_opens_in_explore_under_the_model_of_the_run(done):
    bench, page = done
    token = page.tokens.found[0]
    target = view.in_explore(bench, VISITOR, page.shown, token)
    assert target.model == "table"
    assert "[MASK]" in target.text


def explored(bench, page, **options):
    """What Explore is told of a run whose model was asked for with options."""
    path = bench.store(VISITOR).root / page.shown.run / "run.json"
    values = json.loads(path.read_text())
    values["choices"]["model"] |= options
    path.write_text(json.dumps(values))
    return view.in_explore(bench, VISITOR, page.shown, page.tokens.found[0])


def test_a_model_that_explore_cannot_be_told_is_not_shown_as_another(done):
    bench, page = done
    assert explored(bench, page, runtime="auto", dtype=None, threads=2).model == "table"
    with pytest.raises(OptionError, match=r"onnx-file onnx/small\.onnx, .* click the row"):
        explored(bench, page, onnx_file="onnx/small.onnx")


def test_opening_explore_loads_one_model_alone(done):
    bench, page = done
    loads = []

    def load(reference, **_):
        loads.append(reference)
        return TableModel(1)

    bench.session.store = type(bench.session.store)(loader=load)
    view.in_explore(bench, VISITOR, page.shown, page.tokens.found[0])
    assert loads == ["table"]


def test_a_row_of_tokens_can_be_chosen_by_keyboard(done):
    _, page = done
    first = page.tokens.html.split("<tr")[2]
    opens, shows = re.findall(r"<button[^>]*>", first)
    assert 'data-key="open:0"' in opens
    assert "data-key" not in shows  # a click on it is one on its row
    assert 'data-key="show:0"' in first


def test_a_model_that_is_gone_is_said_in_place(done):
    bench, page = done

    def gone(reference, **_):
        raise view.FillmaskError(f"{reference} is gone")

    bench.session.store = type(bench.session.store)(loader=gone)
    last = list(view.side_by_side(bench, VISITOR, page.shown, page.tokens.found[0]))[-1]
    assert "is gone" in last.side


def test_the_brush_chooses_tokens(done):
    bench, page = done
    update = view.chosen_tokens(bench, VISITOR, page.shown, WORST, 2.0, 3.0)
    assert update.tokens.found
    assert all(2.0 <= token.nll_nats < 3.0 for token in update.tokens.found)
    assert "from 2 to 3 nats" in update.tokens.html
    below = view.chosen_tokens(bench, VISITOR, page.shown, WORST, -2.0, 3.0)
    assert "from 0 to 3 nats" in below.tokens.html
    assert view.chosen_tokens(bench, VISITOR, page.shown, WORST, 1.0, -1.0).tokens.found == ()
    every = view.chosen_tokens(bench, VISITOR, page.shown, DIFFERENT, None, None)
    assert every.tokens.html == page.tokens.html
    assert view.chosen_tokens(bench, VISITOR, Shown(), WORST, None, None).tokens is None


def test_tokens_of_two_compared_runs_are_paired(tmp_path):
    bench = workbench(tmp_path / "runs")
    names = []
    for model in ("table", "noisy"):
        job = bench.begin(VISITOR, form(tmp_path, model=model))
        names.append(finish(job)[-1].info.name)
    shown = Shown(*names)
    page = view.stored(bench, VISITOR, shown, log=False)
    assert "scatter" in page.charts
    update = view.chosen_tokens(bench, VISITOR, shown, DIFFERENT, None, None)
    expected = find(rows_of(TableModel(1, noise=0.3)), Choice(DIFFERENT))
    assert [(t.id, t.position) for t in update.tokens.found] == [
        (t.id, t.position) for t in expected.tokens
    ]


def test_bad_input_changes_nothing_but_the_message(tmp_path):
    bench = workbench(tmp_path / "runs")
    bad = form(tmp_path, mask_probability=2)
    *_, last = view.evaluation(bench, VISITOR, bad, log=False)
    assert "above 0" in last.notice
    assert last.busy is False
    assert (last.figures, last.charts, last.tokens, last.shown) == (None, None, None, None)
    empty = form(tmp_path, upload=upload(tmp_path, [], "empty.txt"))
    *_, last = view.evaluation(bench, VISITOR, empty, log=False)
    assert "empty" in last.notice
    assert last.figures is None


def test_runs_that_do_not_compare_are_said_and_nothing_is_lost(tmp_path):
    bench = workbench(tmp_path / "runs")
    names = [
        finish(bench.begin(VISITOR, form(tmp_path, seed=seed)))[-1].info.name for seed in (1, 2)
    ]
    page = view.stored(bench, VISITOR, Shown(*names), log=False)
    assert "measured different things" in page.notice
    assert page.figures is None
    unknown = view.stored(bench, VISITOR, Shown("nowhere"), log=False)
    assert "Unknown run" in unknown.notice


def test_a_stopped_run_is_shown_with_what_it_has_and_resumes(tmp_path):
    known = models()
    known["table"].free_calls = 6
    bench = workbench(tmp_path / "runs", known=known)
    updates = view.evaluation(bench, VISITOR, form(tmp_path, metric="pseudo-perplexity"), log=False)
    next(updates)
    next(updates)
    assert known["table"].reached.wait(30)
    bench.cancel(VISITOR)
    *_, last = updates
    assert "Stopped after" in last.notice
    known["table"].open.set()
    name = last.runs.names[0]
    *_, end = view.resumed(bench, VISITOR, name, log=False)
    assert end.shown.run == name
    assert f"of {len(TEXTS)} texts" in end.figures
    *_, refused = view.resumed(bench, VISITOR, name, log=False)
    assert "nothing is left" in refused.notice


def test_a_run_that_failed_later_says_why(tmp_path):
    """Its figures were shown, and kept, while it was only stopped."""
    bench = workbench(tmp_path / "runs")
    name = finish(bench.begin(VISITOR, form(tmp_path)))[-1].info.name
    path = tmp_path / "runs" / name / "run.json"
    for state, error, said in (
        ("stopped", None, "was stopped"),
        ("failed", "the texts are not the same", "failed: the texts are not the same"),
    ):
        values = json.loads(path.read_text()) | {"state": state, "error": error}
        path.write_text(json.dumps(values))
        assert said in view.stored(bench, VISITOR, Shown(name), log=False).notice


def test_a_message_keeps_its_dots():
    shown = evaluate_results.progress_html(News("failed", "../a.csv has no column 'x'; see ../b."))
    assert "../a.csv has no column &#39;x&#39;; see ../b.<" in shown


def test_charts_are_drawn_once_for_the_same_figures(done, monkeypatch):
    bench, page = done
    summaries = [bench.result(VISITOR, page.shown).summary]
    summaries.append(replace(summaries[0]))
    info = bench.store(VISITOR).open(page.shown.run).info
    running = News("running", info=info, expected=60)
    seen = [summaries[0]] * 3 + [summaries[1]] * 2
    told = [running, *(replace(running, seen=n, summary=s) for n, s in enumerate(seen))]
    monkeypatch.setattr(view, "watch", lambda _: iter(told))
    updates = view.watched(bench, VISITOR, None)
    drawn = []
    for update in updates:
        assert update.busy
        assert (update.figures is None) == (update.charts is None) == (update.shown is None)
        if update.charts is None:
            drawn.append("nothing")
            continue
        drawn.append(update.charts["loss-histogram"].figure.layout.yaxis.type or "linear")
        assert update.shown == Shown()
        # The switch, while it runs: what is drawn next follows it.
        assert view.recounted(bench, VISITOR, update.shown, log=True) is None
    assert drawn == ["nothing", "linear", "log", "nothing", "log", "nothing"]


def test_deleting_says_so_and_an_unknown_name_too(done):
    bench, page = done
    update = view.deleted(bench, VISITOR, page.shown.run)
    assert "was deleted" in update.notice
    assert update.runs.names == ()
    assert "Unknown run" in view.deleted(bench, VISITOR, page.shown.run).notice


def test_the_counts_can_be_on_a_logarithmic_axis(done):
    bench, page = done
    log = view.stored(bench, VISITOR, page.shown, log=True)
    assert log.charts["loss-histogram"].figure.layout.yaxis.type == "log"
    assert page.charts["loss-histogram"].figure.layout.yaxis.type is None
    for switch, axis in ((True, "log"), (False, None)):
        drawn = view.recounted(bench, VISITOR, page.shown, log=switch)
        assert drawn.figure.layout.yaxis.type == axis
        assert bench.has_log_axis(VISITOR) == switch
    assert view.recounted(bench, VISITOR, Shown("nowhere"), log=True) is None
    bench.forget(VISITOR)
    assert not bench.has_log_axis(VISITOR)


def test_the_switch_is_kept_until_the_end_of_a_run(tmp_path):
    bench = workbench(tmp_path / "runs")
    updates = view.evaluation(bench, VISITOR, form(tmp_path), log=False)
    next(updates)
    view.recounted(bench, VISITOR, Shown(), log=True)
    *_, last = updates
    assert last.charts["loss-histogram"].figure.layout.yaxis.type == "log"


class Event:
    """What a chart sends."""

    def __init__(self, **values):
        self.__dict__.update(values)


def test_what_the_histogram_sends_is_a_range():
    assert evaluate.chosen_range(Event(low=0.5, high=1)) == (0.5, 1.0)
    assert evaluate.chosen_range(Event(low=-0.4, high=1.239)) == (0.0, 1.24)
    assert evaluate.chosen_range(Event(low=None, high=None)) == (None, None)
    assert evaluate.chosen_range(Event(low=16, high=None)) == (16.0, None)
    assert evaluate.chosen_range(Event(low="<b>", high=[])) == (None, None)


def test_charts_can_be_sent_with_every_number(done):
    _, page = done
    for chart in page.charts.values():
        json.loads(chart.figure.to_json())
        shown = re.findall(r'data-value="([^"]+)"', evaluate_results.chart_table_html(chart))
        numbers = [v for row in chart.table.rows for v in row if isinstance(v, (int, float))]
        assert sorted(map(float, shown)) == sorted(map(float, numbers))
    assert math.isfinite(np.sum(page.charts["loss-histogram"].table.rows[0][2]))
