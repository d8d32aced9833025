"""The store of runs: names, states, and files that are not as they should be."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_runs import CONFIG, TEXTS, record
from table_model import TableModel

from fillmask_ui.errors import DataError
from fillmask_ui.runs import RunStore, prepare_info, resume, start
from fillmask_ui.runs.rows_file import dump_row, read_row
from fillmask_ui.runs.store import STOPPED

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
