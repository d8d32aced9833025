"""What is made of stored runs: comparisons, exports, tokens."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pyarrow.parquet
import pytest
from stored_runs import CONFIG, TEXTS, record
from table_model import TableModel, letter_vocabulary

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.runs import compare, export


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
