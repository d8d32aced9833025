"""Stored runs that can be told apart: names, the list and its order, several beside each other."""

from dataclasses import replace

import pytest
from stored_runs import CONFIG, record
from table_model import TableModel

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.runs import compare_runs, prepare_info, start
from fillmask_ui.runs.info import write_info
from fillmask_ui.runs.listed import SORTS, listed_run, runs_beside, sorted_runs, texts_label
from fillmask_ui.show.charts.run_charts import runs_chart
from fillmask_ui.texts import TextSource

pytestmark = pytest.mark.quick
NOISE = (0.0, 0.2, 0.6)


@pytest.fixture
def runs(store):
    return [record(store, TableModel(1, noise=noise)) for noise in NOISE]


def test_a_run_is_found_by_the_name_that_it_is_given(store, runs):
    first, second, _ = (run.info.name for run in runs)
    before = store.open(first).rows_path.read_bytes()
    assert store.rename(first, "  int8,\n smoothed ").title == "int8, smoothed"
    assert store.open("int8, smoothed").info.name == first
    assert store.open("int8, smoothed").rows_path.read_bytes() == before
    assert store.open(first).summary().to_dict() == runs[0].summary().to_dict()
    with pytest.raises(OptionError, match=f"run {first} is called 'int8, smoothed': give another"):
        store.rename(second, "int8, smoothed")
    with pytest.raises(OptionError, match="is called"):
        store.rename(second, first)
    with pytest.raises(OptionError, match="at most 60 characters; this one had 61"):
        store.rename(second, "x" * 61)
    assert store.rename(first, " ").title == ""
    with pytest.raises(DataError, match="unknown run 'int8, smoothed'"):
        store.open("int8, smoothed")


def test_a_run_that_is_being_written_keeps_its_name(store):
    recorder = start(store, prepare_info(CONFIG, TableModel(1)))
    with recorder, pytest.raises(DataError, match="is being written by another process"):
        store.rename(recorder.name, "new")
    assert store.rename(recorder.name, "new").state == "stopped"


def test_the_list_says_what_a_run_is(store, runs):
    pair = record(store, TableModel(1, noise=0.2), baseline=TableModel(1))
    source = TextSource("file", "/secret/news.csv", group_column="topic")
    write_info(pair.folder, replace(pair.info, texts=vars(source)))
    listed = listed_run(store.open(pair.info.name))
    expected = pair.summary()
    assert listed.source == "news.csv by topic"
    assert (listed.reference, listed.candidate) == ("table-1-0", "table-1-0.2")
    assert listed.value == expected.model.metric
    assert listed.relative_change == expected.comparison.relative_change
    assert listed.relative_change_interval_95[1] == expected.comparison.interval.high
    assert listed_run(runs[0]).reference is None
    assert texts_label({"kind": "embedded"}) == "embedded"


def test_runs_are_sorted_and_those_without_a_number_come_last(store, runs):
    pairs = [
        record(store, TableModel(1, noise=noise), baseline=TableModel(1)) for noise in (0.6, 0.2)
    ]
    store.rename(pairs[0].info.name, "A first one")
    listed = [listed_run(store.open(name)) for name in store.names()]
    changes = [run.relative_change for run in sorted_runs(listed, "change")]
    assert changes[:2] == sorted(changes[:2]) and changes[2:] == [None] * 3
    values = [run.value for run in sorted_runs(listed, "value")]
    assert values == sorted(values)
    assert sorted_runs(listed, "name")[-1].name == "A first one"  # behind 2026...
    assert sorted_runs(reversed(listed))[0].run == min(store.names())
    for order in SORTS:
        assert {run.run for run in sorted_runs(listed, order)} == {*store.names()}
    with pytest.raises(OptionError, match="unknown order 'size'"):
        sorted_runs(listed, "size")


def test_runs_beside_each_other_are_paired_with_the_first(runs):
    beside = runs_beside(runs)
    for run, stored in zip(beside, runs, strict=True):
        values = run.to_dict()
        assert values["value"] == stored.summary().model.metric
        interval = stored.summary().model.metric_interval
        assert values["interval_95"] == [interval.low, interval.high]
        if stored is runs[0]:
            assert values["relative_change"] is values["verdict"] is None
            continue
        pair = compare_runs(runs[0], stored).comparison
        assert values["relative_change"] == pair.relative_change
        assert values["relative_change_interval_95"] == [pair.interval.low, pair.interval.high]
        assert values["verdict"] == pair.verdict.label
    chart = runs_chart(beside)
    points = [trace for trace in chart.figure.data if trace.mode == "markers"]
    assert [trace.x[0] for trace in points] == [run.summary.model.metric for run in beside]
    assert [trace.y[0] for trace in points] == [2, 1, 0]
    spans = [run.summary.model.metric_interval for run in beside]
    ends = [trace.x[0] + trace.error_x.array[0] for trace in points]
    assert ends == pytest.approx([span.high for span in spans])


def test_runs_that_cannot_stand_beside_each_other(store, runs):
    for few in (runs[:1], [*runs, *runs, runs[0]]):
        with pytest.raises(OptionError, match=f"2 to 6 runs are compared; there were {len(few)}"):
            runs_beside(few)
    with pytest.raises(OptionError, match="a run was named twice"):
        runs_beside([runs[0], runs[1], runs[0]])
    other = record(store, config=replace(CONFIG, seed=1))
    with pytest.raises(DataError, match="measured different things"):
        runs_beside([*runs, other])
