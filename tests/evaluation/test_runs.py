"""The store of runs: kill, resume, lock, full disk, compare, export."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
import recorded_run
from table_model import TableModel, letter_vocabulary, sample_texts

from fillmask_ui.errors import DataError, NetworkError, OptionError
from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.masking import MaskRecipe
from fillmask_ui.records import SkippedText
from fillmask_ui.runs import (
    Run,
    RunStore,
    compare,
    default_root,
    export,
    prepare_info,
    resume,
    start,
    tokens_between,
)
from fillmask_ui.runs.store import STOPPED

TEXTS = [*sample_texts(40, seed=8), ""]
CONFIG = EvaluationConfig(recipe=MaskRecipe(0.4))


def record(store, model=None, texts=TEXTS, config=CONFIG, baseline=None):
    """A run, recorded to its end."""
    model = model or TableModel(1)
    with start(store, prepare_info(config, model, baseline=baseline)) as recorder:
        rows = list(recorder.measure(model, texts, baseline=baseline))
    assert len(rows) == len(texts)
    return store.open(recorder.name)


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs", lambda: datetime(2026, 5, 17, 9, 30, tzinfo=timezone.utc))


@contextmanager
def spawn(*arguments):
    """A recording process, killed at the latest when the block ends."""
    script = Path(recorded_run.__file__)
    paths = [str(script.parent), str(script.parent.parent)]
    with subprocess.Popen(
        [sys.executable, str(script), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def uninterrupted():
    model, baseline = recorded_run.models()
    return list(evaluate(model, recorded_run.TEXTS, recorded_run.CONFIG, baseline=baseline))


# Resume


def test_a_run_killed_at_any_moment_ends_with_the_same_numbers(tmp_path, uninterrupted):
    rng = random.Random(5)
    name, kills, dropped = "", 0, 0
    finished = False
    while not finished:
        with spawn(tmp_path, 0.012, name) as process:
            said = process.stdout.readline().split()
            name, dropped = said[0], dropped + int(said[1])
            try:
                process.wait(timeout=rng.uniform(0.05, 0.5) if kills < 4 else 100)
                finished = True
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
        if not finished:
            assert RunStore(tmp_path).open(name).state == STOPPED
    assert kills == 4
    run = RunStore(tmp_path).open(name)
    assert run.state == "done"
    stored = [json.dumps(row.to_dict()) for row in run.rows() if not isinstance(row, SkippedText)]
    assert stored == [
        json.dumps(row.to_dict()) for row in uninterrupted if not isinstance(row, SkippedText)
    ]
    model, _ = recorded_run.models()
    expected = summarize(
        uninterrupted,
        config=recorded_run.CONFIG.resolved(model.max_tokens),
        vocabulary_size=model.signature.vocabulary_size,
    ).to_dict()
    assert json.dumps(run.info.result) == json.dumps(expected)
    assert json.dumps(run.summary().to_dict()) == json.dumps(expected)


def test_a_half_written_last_line_is_dropped_and_said(store):
    run = record(store)
    expected = run.summary().to_dict()
    path = run.folder / "rows.jsonl"
    whole = path.read_bytes()
    for cut in (1, 7, 400):
        path.write_bytes(whole[:-cut])
        length = len(path.read_bytes().rsplit(b"\n", 1)[-1])
        assert length > 0
        # Readers leave it out.
        complete = path.read_bytes().count(b"\n")
        assert len(list(run.rows())) == complete
        with resume(store, run.info.name) as recorder:
            assert recorder.dropped_bytes == length
            assert recorder.running.seen == complete
            list(recorder.measure(TableModel(1), TEXTS))
        assert path.read_bytes() == whole
        assert store.open(run.info.name).summary().to_dict() == expected


def test_closing_the_generator_stops_and_keeps_what_is_done(store):
    model = TableModel(1)
    with start(store, prepare_info(CONFIG, model)) as recorder:
        rows = recorder.measure(model, TEXTS)
        kept = [next(rows) for _ in range(9)]
        rows.close()
    run = store.open(recorder.name)
    assert run.state == STOPPED
    assert [row.id for row in run.rows()] == [row.id for row in kept]
    assert run.summary().texts == sum(not isinstance(row, SkippedText) for row in kept)
    with resume(store, recorder.name) as again:
        rest = list(again.measure(model, TEXTS))
    assert len(kept) + len(rest) == len(TEXTS)
    assert store.open(recorder.name).state == "done"


def test_a_lost_network_keeps_the_rows_so_far(store):
    def texts():
        yield from ["the cat sat on the mat"] * 700
        raise NetworkError("the data set's server is gone; try again later")

    model = TableModel(1)
    with (
        start(store, prepare_info(CONFIG, model)) as recorder,
        pytest.raises(NetworkError, match="server is gone"),
    ):
        list(recorder.measure(model, texts()))
    run = store.open(recorder.name)
    assert run.state == "failed"
    assert "server is gone" in run.info.error
    assert run.row_count == 512
    with resume(store, recorder.name) as again:
        list(again.measure(model, ["the cat sat on the mat"] * 700))
    assert store.open(recorder.name).row_count == 700


def test_a_full_disk_ends_with_a_message_and_the_rows_so_far(tmp_path, uninterrupted):
    with spawn(tmp_path, 0, "", 50_000) as process:
        output, _ = process.communicate(timeout=60)
    name = output.split()[0]
    assert process.returncode == 3
    assert f"make room and resume with --resume {name}" in output
    run = RunStore(tmp_path).open(name)
    kept = list(run.rows())
    assert 5 < len(kept) < len(uninterrupted)
    assert f"the rows so far, {len(kept)}, are kept" in output
    with spawn(tmp_path, 0, name) as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert int(output.split()[1]) > 0  # the line that met the end of the disk
    run = RunStore(tmp_path).open(name)
    assert [row.id for row in run.rows()] == [row.id for row in uninterrupted]


def test_texts_that_changed_are_noticed(store):
    model = TableModel(1)
    with start(store, prepare_info(CONFIG, model)) as recorder:
        rows = recorder.measure(model, TEXTS)
        first = next(rows).id
        rows.close()
    changed = [*TEXTS]
    changed[first] = "another text"
    with (
        resume(store, recorder.name) as again,
        pytest.raises(DataError, match=f"text {first} is not the one"),
    ):
        list(again.measure(model, changed))
    with (
        resume(store, recorder.name) as again,
        pytest.raises(DataError, match="only 0 are still there"),
    ):
        list(again.measure(model, TEXTS[:first]))


def test_a_model_that_changed_is_noticed(store):
    run = record(store)
    with resume(store, run.info.name) as again, pytest.raises(DataError, match="sha256 was"):
        list(again.measure(TableModel(2), TEXTS))
    with resume(store, run.info.name) as again, pytest.raises(DataError, match="has no baseline"):
        list(again.measure(TableModel(1), TEXTS, baseline=TableModel(1)))
    newer = TableModel(1)
    newer.signature = replace(newer.signature, versions={"numpy": "99"})
    with resume(store, run.info.name) as again, pytest.raises(DataError, match="versions was"):
        list(again.measure(newer, TEXTS))


# One writer


def test_two_processes_never_write_one_run(tmp_path):
    store = RunStore(tmp_path)
    with spawn(tmp_path, 0.05) as process:
        name = process.stdout.readline().split()[0]
        assert store.open(name).state == "running"
        with pytest.raises(DataError, match=f"written by another process .process {process.pid}"):
            resume(store, name)
        with pytest.raises(DataError, match="is being written"):
            store.delete(name)
    # The lock of a killed process is gone with it.
    with resume(store, name) as recorder:
        assert recorder.name == name


def test_two_writers_in_one_process(store):
    run = record(store)
    with resume(store, run.info.name), pytest.raises(DataError, match="another process"):
        resume(store, run.info.name)
    resume(store, run.info.name).close()


# What is there


def test_names_states_and_figures(store):
    first, second = record(store), record(store)
    assert first.info.name == "20260517-093000-table-1-0-cross-entropy"
    assert store.names() == [first.info.name, second.info.name]
    assert second.info.name.endswith("-2")
    assert store.open("latest").info.name == second.info.name
    assert first.info.created == "2026-05-17T09:30:00+00:00"
    assert first.info.result["mean_nll_nats"] == first.summary().model.mean_nll_nats
    assert first.info.config.max_tokens == 64
    assert first.info.versions["numpy"] == np.__version__
    assert "metric:cross-entropy|p:0.4" in first.info.signature
    assert "sha256" in first.info.model


def test_open_by_the_beginning_of_the_name(store):
    run = record(store)
    assert store.open("2026").info.name == run.info.name
    record(store)
    with pytest.raises(DataError, match="several runs begin with '2026'"):
        store.open("2026")
    with pytest.raises(DataError, match="unknown run 'nope'; known: 2026"):
        store.open("nope")


def test_no_runs(tmp_path):
    store = RunStore(tmp_path / "none")
    assert store.names() == []
    with pytest.raises(DataError, match="known: none"):
        store.open("latest")


def test_delete(store):
    run = record(store)
    assert store.delete(run.info.name) == run.info.name
    assert store.names() == []
    assert not run.folder.exists()


@pytest.mark.parametrize("change", [{"format": 2}, {"protocol": 99}])
def test_a_run_of_another_version(store, change):
    run = record(store)
    path = run.folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DataError, match="this version of fillmask-ui"):
        store.open(run.info.name)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1, "protocol": 1}'])
def test_a_broken_run_file(store, content):
    run = record(store)
    (run.folder / "run.json").write_text(content)
    with pytest.raises(DataError, match="run"):
        Run(run.folder)


def test_a_broken_line_in_the_middle(store):
    run = record(store)
    path = run.folder / "rows.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[3] = lines[3][:-5]
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(DataError, match=r"line 4 of .* is broken"):
        run.summary()
    with pytest.raises(DataError, match=r"line 4 of .* is broken"):
        resume(store, run.info.name)
    # The failed attempt left no lock behind.
    assert not list(run.folder.glob("*.new"))
    store.delete(run.info.name)


@pytest.mark.parametrize("line", ['{"id": 3}', '{"id": 3, "nll_nats": "x"}', "[]", "7"])
def test_a_line_that_is_no_row(store, line):
    run = record(store)
    path = run.folder / "rows.jsonl"
    path.write_text(path.read_text() + line + "\n")
    number = len(TEXTS) + 1
    with pytest.raises(DataError, match=f"line {number} of"):
        run.summary()
    with pytest.raises(DataError, match=f"line {number} of"):
        resume(store, run.info.name)


def test_a_generator_dropped_late_does_not_touch_a_closed_run(store):
    model = TableModel(1)
    with start(store, prepare_info(CONFIG, model)) as recorder:
        rows = recorder.measure(model, TEXTS)
        next(rows)
    assert store.open(recorder.name).info.state == STOPPED
    with resume(store, recorder.name) as again:
        list(again.measure(model, TEXTS))
    rows.close()
    assert store.open(recorder.name).info.state == "done"


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    store = RunStore(tmp_path / "file" / "runs")
    with pytest.raises(DataError, match="FILLMASK_UI_RUNS"):
        start(store, prepare_info(CONFIG, TableModel(1)))


@pytest.mark.parametrize(
    ("environment", "platform", "expected"),
    [
        ({"FILLMASK_UI_RUNS": "/data/runs"}, "linux", "/data/runs"),
        ({"XDG_DATA_HOME": "/x"}, "linux", "/x/fillmask-ui/runs"),
        ({}, "darwin", "/home/ada/Library/Application Support/fillmask-ui/runs"),
        ({"LOCALAPPDATA": "/local"}, "win32", "/local/fillmask-ui/runs"),
    ],
)
def test_default_root(environment, platform, expected):
    assert default_root(environment, platform, Path("/home/ada")).as_posix() == expected


# Compare


def test_two_runs_compare_as_one_with_a_baseline(store):
    first, second = record(store), record(store, TableModel(1, noise=0.3))
    expected = record(store, baseline=TableModel(1, noise=0.3)).summary()
    found = compare(first, second)
    assert found.comparison.relative_change == expected.comparison.relative_change
    assert found.comparison.interval == expected.comparison.interval
    assert found.comparison.agreement == expected.comparison.agreement
    assert found.baseline.mean_nll_nats == expected.baseline.mean_nll_nats
    assert found.comparison.mean_kl_nats is None
    assert found.most_different == expected.most_different


def test_a_run_beside_itself_differs_by_nothing(store):
    run = record(store)
    comparison = compare(run.folder, run.folder).comparison
    assert comparison.relative_change == 0
    assert comparison.verdict.label == "PASS"


def test_runs_of_different_choices_do_not_compare(store):
    first = record(store)
    second = record(store, config=replace(CONFIG, seed=1))
    with pytest.raises(DataError, match=r"measured different things.*seed:42.*seed:1"):
        compare(first, second)


def test_runs_over_other_texts_do_not_compare(store):
    first = record(store)
    second = record(store, texts=["walk the dog", *TEXTS[1:]])
    with pytest.raises(DataError, match="text 0 differs"):
        compare(first, second)


def test_texts_in_one_run_only_are_counted(store):
    first, second = record(store), record(store, texts=TEXTS[:30])
    summary = compare(first, second)
    assert summary.skipped["measured in one run only"] == 11
    assert compare(second, first).texts == summary.texts


def test_runs_of_two_tokenizers_compare_by_character(store):
    other = TableModel(2, vocabulary=letter_vocabulary())
    first, second = record(store), record(store, other)
    with pytest.raises(DataError, match="different tokenizers"):
        compare(first, second)
    config = EvaluationConfig("pseudo-perplexity")
    first, second = record(store, config=config), record(store, other, config=config)
    summary = compare(first, second)
    assert summary.comparison.unit == "character"
    own, base = first.summary().model, second.summary().model
    assert summary.model.nll_per_character_nats == own.nll_per_character_nats
    assert summary.comparison.relative_change == pytest.approx(
        own.nll_per_character_nats / base.nll_per_character_nats - 1
    )


# Export


def test_exports_hold_every_token(store, tmp_path):
    run = record(store, baseline=TableModel(1, noise=0.3))
    summary = run.summary()
    assert export(run, tmp_path / "run.csv") == summary.model.tokens
    with (tmp_path / "run.csv").open(newline="") as file:
        records = list(csv.DictReader(file))
    assert export(run, tmp_path / "run.parquet") == summary.model.tokens
    table = pyarrow.parquet.read_table(tmp_path / "run.parquet").to_pylist()
    assert len(records) == len(table) == summary.model.tokens
    for ours, theirs in zip(records, table, strict=True):
        assert list(ours) == list(theirs)
        assert float(ours["nll_nats"]) == theirs["nll_nats"]
        assert float(ours["baseline_nll_nats"]) == theirs["baseline_nll_nats"]
        assert (ours["token"], ours["kind"]) == (theirs["token"], theirs["kind"])
    mean = np.mean([entry["nll_nats"] for entry in table])
    assert mean == pytest.approx(summary.model.mean_nll_nats)


def test_exports_hold_every_text(store, tmp_path):
    run = record(store)
    assert export(run, tmp_path / "run.jsonl") == len(TEXTS)
    assert (tmp_path / "run.jsonl").read_text().splitlines() == [
        json.dumps(line, ensure_ascii=False) for line in run.lines()
    ]
    assert export(run, tmp_path / "run.json") == len(TEXTS)
    values = json.loads((tmp_path / "run.json").read_text())
    assert len(values["rows"]) == len(TEXTS)
    assert values["summary"] == run.summary().to_dict()
    assert values["run"]["name"] == run.info.name


def test_an_unknown_export_format(store, tmp_path):
    with pytest.raises(OptionError, match="unknown export format 'xlsx'; known: csv"):
        export(record(store), tmp_path / "run.xlsx")


def test_an_export_that_cannot_be_written(store, tmp_path):
    with pytest.raises(DataError, match="cannot be written"):
        export(record(store), tmp_path / "missing" / "run.csv")


def test_tokens_in_a_range(store):
    run = record(store, baseline=TableModel(1, noise=0.3))
    rows = [row for row in run.rows() if not isinstance(row, SkippedText)]
    nll = np.concatenate([row.scores.nll_nats for row in rows])
    found = tokens_between(run, 2.0, 5.0, limit=10)
    expected = np.sort(nll[(nll >= 2) & (nll < 5)])[::-1]
    assert found.total == len(expected) > 10
    assert [example.nll_nats for example in found.examples] == expected[:10].tolist()
    gaps = np.concatenate([row.scores.nll_nats - row.baseline.nll_nats for row in rows])
    found = tokens_between(run, -1.0, -0.2, by="difference", limit=1000)
    assert found.total == len(found.examples) == ((gaps >= -1) & (gaps < -0.2)).sum()
    assert all(-1 <= example.difference_nats < -0.2 for example in found.examples)
    assert tokens_between(run, 900, 1000).examples == ()


def test_tokens_by_what_a_run_does_not_have(store):
    run = record(store)
    with pytest.raises(OptionError, match="no baseline"):
        tokens_between(run, 0, 1, by="difference")
    with pytest.raises(OptionError, match="unknown value"):
        tokens_between(run, 0, 1, by="rank")
    with pytest.raises(OptionError, match="it was 0"):
        tokens_between(run, 0, 1, limit=0)


def test_memory_of_many_texts(tmp_path):
    """Peak memory of 7,000 texts is within 15 % of that of 1,000, in processes of their own."""

    def peak(count):
        with spawn(tmp_path, 0, "", 10**9, count) as process:
            output, _ = process.communicate(timeout=100)
        return int(output.split()[-1])

    assert peak(7000) < 1.15 * peak(1000)
