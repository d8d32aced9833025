"""Stored runs: names, states, files that are damaged; comparisons, exports, tokens."""

import csv
import json
import math
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_runs import CONFIG, TEXTS, record
from table_model import TableModel, letter_vocabulary

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.runs import RunStore, compare, export, prepare_info, resume, start
from fillmask_ui.runs.rows_file import dump_row, read_row
from fillmask_ui.runs.store import STOPPED
from fillmask_ui.runs.tokens import TokenPlace, measured_tokens


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


def test_runs_that_do_not_compare(store):
    first = record(store)
    second = record(store, config=replace(CONFIG, seed=1))
    with pytest.raises(DataError, match=r"measured different things.*seed:42.*seed:1"):
        compare(first, second)
    with pytest.raises(DataError, match="text 0 differs"):
        compare(first, record(store, texts=["walk the dog", *TEXTS[1:]]))
    with pytest.raises(DataError, match="different tokenizers"):
        compare(first, record(store, TableModel(2, vocabulary=letter_vocabulary())))


def test_runs_of_two_tokenizers_compare_by_character(store):
    other = TableModel(2, vocabulary=letter_vocabulary())
    config = EvaluationConfig("pseudo-perplexity")
    first, second = record(store, config=config), record(store, other, config=config)
    summary = compare(first, second)
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
    for ours, theirs in zip(records, table, strict=True):
        assert list(ours) == list(theirs)
        for name in ("nll_nats", "baseline_nll_nats"):
            assert float(ours[name]) == theirs[name]
        assert (ours["token"], ours["kind"]) == (theirs["token"], theirs["kind"])
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
        run, other = record(store, config=PSEUDO), record(store, letters, config=PSEUDO)
        name = other.info.name
        theirs = rows_of(other)
    else:
        run, name = record(store, config=PSEUDO, baseline=letters), ""
        theirs = {index: row.other for index, row in rows_of(run).items()}
    for row in [*rows_of(run).values()][:2]:
        for position in row.cols.tolist():
            place = TokenPlace(run.info.name, row.id, position, name)
            first, second = measured_tokens(store, place)
            start, end = first.row.spans[first.entry]
            low, high = second.row.spans[second.entry]
            assert low == start < high <= end
            assert second.scores.nll_nats.tolist() == theirs[row.id].scores.nll_nats.tolist()
        # From the second model's tokens back: every one of them can be asked for.
        for entry, position in enumerate(theirs[row.id].cols.tolist()):
            place = TokenPlace(run.info.name, row.id, position, name, side=1)
            first, second = measured_tokens(store, place)
            low, high = second.row.spans[second.entry]
            start, end = first.row.spans[first.entry]
            assert second.entry == entry
            assert start <= low < end


STORED = (Path(__file__).parents[1] / "recorded" / "runs").glob("*/rows.jsonl")
ROWS = [json.loads(line) for path in sorted(STORED) for line in path.read_bytes().splitlines()]
MEASURED = [row for row in ROWS if "nll_nats" in row]


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
