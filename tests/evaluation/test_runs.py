"""Stored runs: names, states, kill, resume, lock, full disk; comparisons, exports, tokens."""

import csv
import json
import math
import os
import random
import shutil
import signal
import subprocess
from dataclasses import asdict, replace
from functools import partial
from itertools import islice

import numpy as np
import pyarrow.parquet
import pytest
import recorded_run
from evaluated import assert_alike
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_runs import CONFIG, TEXTS, record, spawn
from table_model import TOKENS, TableModel, letter_vocabulary, sample_texts

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluatedText, EvaluationConfig, evaluate, summarize
from fillmask_ui.records import SkippedText
from fillmask_ui.runs import RunStore, compare_runs, export, prepare_info, resume, start
from fillmask_ui.runs.info import STOPPED, write_info
from fillmask_ui.runs.rows_file import checksum, dump_row, read_row
from fillmask_ui.runs.tokens import TokenPlace, measured_tokens
from fillmask_ui.texts import TextChoice, open_texts


def test_two_runs_compare_as_one_with_a_baseline(store):
    first, second = record(store), record(store, TableModel(1, noise=0.3))
    expected = record(store, baseline=TableModel(1, noise=0.3)).summary()
    compared = compare_runs(second, first)
    assert compared.comparison.relative_change == expected.comparison.relative_change
    assert compared.comparison.interval == expected.comparison.interval
    assert compared.comparison.agreement == expected.comparison.agreement
    assert compared.reference.mean_nll_nats == expected.reference.mean_nll_nats
    assert compared.comparison.mean_kl_nats is None
    assert compared.most_different == expected.most_different


def test_runs_that_do_not_compare(store):
    first = record(store)
    second = record(store, config=replace(CONFIG, seed=1))
    with pytest.raises(DataError, match=r"measured different things.*seed:42.*seed:1"):
        compare_runs(first, second)
    with pytest.raises(DataError, match="text 0 differs"):
        compare_runs(record(store, texts=["walk the dog", *TEXTS[1:]]), first)
    with pytest.raises(DataError, match="different tokenizers"):
        compare_runs(record(store, TableModel(2, vocabulary=letter_vocabulary())), first)


def test_runs_are_compared_by_their_folders_and_what_is_none_is_named(store, tmp_path):
    runs = record(store), record(store, TableModel(1, noise=0.3))
    by_text = compare_runs(*(str(run.folder) for run in runs))
    assert by_text.to_dict() == compare_runs(*runs).to_dict()
    with pytest.raises(DataError, match=r"a is no run: .*; give the folder of a stored run"):
        compare_runs(str(tmp_path / "a"), str(tmp_path / "b"))
    with pytest.raises(DataError, match="dict is neither a run nor a folder of one: open one"):
        compare_runs(runs[0], {})


def test_runs_of_two_tokenizers_compare_by_character(store):
    other = TableModel(2, vocabulary=letter_vocabulary())
    config = EvaluationConfig("pseudo-perplexity")
    first, second = record(store, config=config), record(store, other, config=config)
    summary = compare_runs(second, first)
    assert summary.comparison.unit == "character"
    own, base = first.summary().model, second.summary().model
    assert summary.model.nll_per_character_nats == own.nll_per_character_nats
    # By hand: e^ of the loss of each whole text, both over the baseline's number of tokens.
    nll = own.mean_nll_nats * own.tokens, base.mean_nll_nats * base.tokens
    perplexity = [math.exp(total / base.tokens) for total in nll]
    assert summary.comparison.relative_change == pytest.approx(perplexity[0] / perplexity[1] - 1)


def test_exports_hold_every_token_and_text(store, tmp_path):
    run = record(store, baseline=TableModel(1, noise=0.3))
    summary = run.summary()
    assert export(run, tmp_path / "run.csv") == summary.model.tokens
    with (tmp_path / "run.csv").open(newline="") as file:
        records = list(csv.DictReader(file))
    assert export(run, tmp_path / "run.parquet") == summary.model.tokens
    table = pyarrow.parquet.read_table(tmp_path / "run.parquet").to_pylist()
    assert len(records) == len(table) == summary.model.tokens
    for ours, expected in zip(records, table, strict=True):
        assert list(ours) == list(expected)
        for name in ("nll_nats", "reference_nll_nats"):
            assert float(ours[name]) == expected[name]
        assert (ours["token"], ours["kind"]) == (expected["token"], expected["kind"])
    mean = np.mean([entry["nll_nats"] for entry in table])
    assert mean == pytest.approx(summary.model.mean_nll_nats)
    assert export(run, tmp_path / "run.jsonl") == len(TEXTS)
    assert (tmp_path / "run.jsonl").read_bytes() == (run.folder / "rows.jsonl").read_bytes()
    assert export(run, tmp_path / "run.json") == len(TEXTS)
    values = json.loads((tmp_path / "run.json").read_text())
    assert len(values["rows"]) == len(TEXTS)
    assert values["summary"] == summary.to_dict()
    assert values["run"]["name"] == run.info.name


PSEUDO = EvaluationConfig("pseudo-perplexity")


def rows_of(run):
    return {row.id: row for row in run.rows() if hasattr(row, "scores")}


@pytest.mark.parametrize("stored_apart", [False, True])
def test_models_with_other_tokenizers_meet_the_same_characters(store, stored_apart):
    letters = TableModel(2, vocabulary=letter_vocabulary())
    if stored_apart:
        run, letters_run = record(store, config=PSEUDO), record(store, letters, config=PSEUDO)
        name = letters_run.info.name
        expected = rows_of(letters_run)
    else:
        run, name = record(store, config=PSEUDO, baseline=letters), ""
        expected = {index: row.reference_text for index, row in rows_of(run).items()}
    for row in [*rows_of(run).values()][:2]:
        for position in row.cols.tolist():
            token_place = TokenPlace(run.info.name, row.id, position, name)
            first, second = measured_tokens(store, token_place)
            start, end = first.row.spans[first.entry]
            low, high = second.row.spans[second.entry]
            assert low == start < high <= end
            assert second.scores.nll_nats.tolist() == expected[row.id].scores.nll_nats.tolist()
        # From the second model's tokens back: every one of them can be asked for.
        for entry, position in enumerate(expected[row.id].cols.tolist()):
            token_place = TokenPlace(run.info.name, row.id, position, name, side=1)
            first, second = measured_tokens(store, token_place)
            low, high = second.row.spans[second.entry]
            start, end = first.row.spans[first.entry]
            assert second.entry == entry
            assert start <= low < end


MEASURED = [
    json.loads(dump_row(row, checksum(row.text)))
    for model, candidate in ((TableModel(1), None), (TableModel(1, noise=0.3), TableModel(1)))
    for row in evaluate(model, TEXTS, CONFIG, candidate=candidate)
    if isinstance(row, EvaluatedText)
]


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


def test_runs_are_found_by_the_beginning_of_their_name_and_copied(store):
    run = record(store)
    assert store.open("2026").info.name == run.info.name
    copy = run.folder.with_name(run.info.name + "-zcopy")
    shutil.copytree(run.folder, copy)
    with pytest.raises(DataError, match="several runs begin with '2026'"):
        store.open("2026")
    with pytest.raises(DataError, match="unknown run 'nope'; known: 2026"):
        store.open("nope")
    with pytest.raises(DataError, match="known: none"):
        RunStore(store.root / "none").open("latest")
    assert store.open("latest").info.name == copy.name
    assert store.delete("latest") == copy.name
    assert store.names() == [run.info.name]
    assert not copy.exists()


def test_a_text_file_whose_name_is_not_utf8(store):
    """The run is read, although JSON cannot hold the name."""
    name = os.fsdecode(b"caf\xe9.txt")
    info = prepare_info(CONFIG, TableModel(1), texts={"where": name, "signature": f"texts:{name}"})
    with start(store, info) as recorder:
        list(recorder.measure(TableModel(1), TEXTS))
    assert store.open(recorder.name).info.texts["where"] == "caf?.txt"


@settings(max_examples=40)
@given(st.data())
def test_a_row_is_read_back_equal(data):
    """Every digit of a float, every character of a text, infinite losses too."""
    row = dict(data.draw(st.sampled_from(MEASURED)))
    hidden = len(row["nll_nats"])
    loss = st.floats(min_value=0, allow_nan=False)
    row["nll_nats"] = data.draw(st.lists(loss, min_size=hidden, max_size=hidden))
    row["text"] = data.draw(st.text(st.characters(exclude_categories=["Cs"])))
    first = read_row(json.dumps(row).encode(), "a row")
    again = read_row(dump_row(first.row, first.checksum), "a row")
    assert again.row.to_dict() == first.row.to_dict()
    assert again.checksum == row["checksum"]
    assert again.row.scores.nll_nats.tolist() == row["nll_nats"]
    assert again.row.text == row["text"]


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


def uninterrupted(metric="pseudo-perplexity"):
    model, baseline = recorded_run.models()
    config = recorded_run.config_of(metric)
    return list(evaluate(baseline, recorded_run.TEXTS, config, candidate=model))


def test_a_run_killed_at_any_moment_ends_with_the_same_numbers(
    tmp_path, monkeypatch, metric="pseudo-perplexity"
):
    monkeypatch.setenv("RECORDED_METRIC", metric)
    whole = uninterrupted(metric)
    rng = random.Random(5)
    name, kills, finished = "", 0, False
    while not finished:
        with spawn(tmp_path, 0.012, name) as process:
            message = process.stdout.readline().split()
            name = message[0]
            try:
                process.wait(timeout=rng.uniform(0.05, 0.5) if kills < 2 else 100)
                finished = True
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
        if not finished:
            assert RunStore(tmp_path).open(name).state == STOPPED
    assert kills == 2
    run = RunStore(tmp_path).open(name)
    assert run.state == "done"
    stored = [json.dumps(row.to_dict()) for row in run.rows() if not isinstance(row, SkippedText)]
    assert stored == [
        json.dumps(row.to_dict()) for row in whole if not isinstance(row, SkippedText)
    ]
    config, size = recorded_run.config_of(metric).resolved(64), len(TOKENS)
    expected = summarize(whole, config=config, vocabulary_size=size).to_dict()
    assert json.dumps(run.info.result) == json.dumps(expected)
    assert json.dumps(run.summary().to_dict()) == json.dumps(expected)


def test_a_half_written_last_line_is_dropped_and_said(store):
    run = record(store)
    expected = run.summary().to_dict()
    path = run.folder / "rows.jsonl"
    whole = path.read_bytes()
    for cut in (1, 7, 400):
        path.write_bytes(whole[:-cut])
        write_info(run.folder, replace(run.info, state=STOPPED, result=None))
        length = len(path.read_bytes().rsplit(b"\n", 1)[-1])
        assert length > 0
        # Readers leave it out.
        complete = path.read_bytes().count(b"\n")
        assert len(list(store.open(run.info.name).rows())) == complete
        with resume(store, run.info.name) as recorder:
            assert recorder.dropped_bytes == length
            assert recorder.running.seen == complete
            list(recorder.measure(TableModel(1), TEXTS))
        assert path.read_bytes() == whole
        assert store.open(run.info.name).summary().to_dict() == expected


def test_a_finished_run_whose_rows_are_gone_says_so_and_measures_them_again(store):
    run = record(store)
    expected, path = run.summary().to_dict(), run.folder / "rows.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    for left in (lines[:3] + lines[4:], []):
        path.write_bytes(b"".join(left))
        broken = store.open(run.info.name)
        message = rf"measured 41 texts and has the rows of {len(left)}: .* --resume {run.info.name}"
        for read in (
            broken.summary,
            partial(compare_runs, run, broken),
            partial(compare_runs, broken, run),
        ):
            with pytest.raises(DataError, match=message):
                read()
        with resume(store, run.info.name) as recorder:
            list(recorder.measure(TableModel(1), TEXTS))
        assert sorted(path.read_bytes().splitlines(keepends=True)) == sorted(lines)
        assert_alike(store.open(run.info.name).summary().to_dict(), expected)


def test_a_full_disk_ends_with_a_message_and_the_rows_so_far(tmp_path):
    whole = uninterrupted()
    with spawn(tmp_path, 0, "", 50_000) as process:
        output, _ = process.communicate(timeout=300)
    name = output.split()[0]
    assert process.returncode == 3
    assert f"make room and resume with --resume {name}" in output
    run = RunStore(tmp_path).open(name)
    stored = list(run.rows())
    assert 5 < len(stored) < len(whole)
    assert f"the {len(stored)} rows so far are kept" in output
    with spawn(tmp_path, 0, name) as process:
        output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    assert int(output.split()[1]) > 0  # the line that met the end of the disk
    run = RunStore(tmp_path).open(name)
    assert [row.id for row in run.rows()] == [row.id for row in whole]


def test_texts_and_models_that_changed_are_noticed(store):
    model = TableModel(1)
    with start(store, prepare_info(CONFIG, model)) as recorder:
        rows = recorder.measure(model, TEXTS)
        first = next(rows).id
        rows.close()
    changed = [*TEXTS[:first], "another text", *TEXTS[first + 1 :]]
    newer = TableModel(1)
    newer.signature = replace(newer.signature, versions={"numpy": "99"})
    for models, texts, message in (
        ([model], changed, f"text {first} is not the one"),
        ([model], TEXTS[:first], "only 0 are still there"),
        ([TableModel(2)], TEXTS, "sha256 was"),
        ([model, model], TEXTS, "has no baseline"),
        ([newer], TEXTS, "versions was"),
    ):
        with resume(store, recorder.name) as again, pytest.raises(DataError, match=message):
            list(again.measure(models[0], texts, baseline=models[1] if models[1:] else None))


def test_a_file_of_another_length_is_another_order(store, tmp_path):
    """One line more shuffles all others: nothing of it may come into the run."""
    model, source = TableModel(1), TextChoice(str(tmp_path / "a.txt"), samples=250).source()
    lines = "".join(text + "\n" for text in sample_texts(500, seed=6))
    (tmp_path / "a.txt").write_text(lines)

    def measure(recorder, most=None):
        with recorder, open_texts(source) as texts:
            rows = recorder.measure(model, texts)
            list(islice(rows, most))
            rows.close()
        return store.open(recorder.name)

    info = prepare_info(EvaluationConfig(), model, texts=asdict(source))
    whole = measure(start(store, info))
    run = measure(start(store, info), most=60)
    path = run.folder / "rows.jsonl"
    stored = path.read_bytes()
    assert stored.count(b"\n") == 60
    (tmp_path / "a.txt").write_text(lines + "the cat sat\n")
    with pytest.raises(DataError, match=r"had 500 rows when run .* began and have 501 now"):
        measure(resume(store, run.info.name))
    assert path.read_bytes() == stored
    assert store.open(run.info.name).state == STOPPED
    (tmp_path / "a.txt").write_text(lines)
    done = measure(resume(store, run.info.name))
    assert done.state == "done"
    assert done.info.result == whole.info.result


def test_two_processes_never_write_one_run(tmp_path):
    store = RunStore(tmp_path)
    with spawn(tmp_path, 0.05) as process:
        name = process.stdout.readline().split()[0]
        assert store.open(name).state == "running"
        with pytest.raises(DataError, match="written by another process"):
            resume(store, name)
        with pytest.raises(DataError, match="is being written"):
            store.delete(name)
    # The lock of a killed process is gone with it.
    with resume(store, name) as recorder:
        assert recorder.name == name


@pytest.mark.slow
def test_memory_of_many_texts(tmp_path):
    """Peak memory of 7,000 texts is within 15% of that of 1,000, in processes of their own."""

    def peak(count):
        with spawn(tmp_path, 0, "", 10**9, count) as process:
            output, _ = process.communicate(timeout=300)
        return int(output.split()[-1])

    assert peak(7000) < 1.15 * peak(1000)
