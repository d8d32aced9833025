"""The reader of today gives what that of earlier versions gave, for all kinds of stored runs."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import old_reader
import pytest
from stored_runs import TEXTS, record
from table_model import TableModel, letter_vocabulary

from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.records import SkippedText
from fillmask_ui.runs import Run
from fillmask_ui.runs.rows_file import dump_row, read_row

RECORDED = sorted((Path(__file__).parent.parent / "recorded" / "runs").iterdir())
MODEL, NOISY = TableModel(1), TableModel(1, noise=0.3)
LETTERS = TableModel(1, vocabulary=letter_vocabulary())


def same(one, other):
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
        assert one.shape == other.shape
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            same(getattr(one, field.name), getattr(other, field.name))
    else:
        assert one == other


def check(folder):
    run = Run(folder)
    assert run.info == old_reader.read_info(folder)
    lines = [line for line in (folder / "rows.jsonl").read_bytes().splitlines(keepends=True)]
    lines = [line for line in lines if line.endswith(b"\n")]
    assert len(lines) == len(list(run.lines)) > 10
    for content, line in zip(lines, run.lines, strict=True):
        row, checksum = old_reader.read_line(content)
        same(line.row, row)
        assert line.checksum == checksum
        again = json.loads(dump_row(line.row, line.checksum))
        assert again == {k: v for k, v in json.loads(content).items() if k not in ("plan", "crc")}


@pytest.mark.parametrize("folder", RECORDED, ids=lambda path: path.name)
def test_runs_of_earlier_versions(folder):
    check(folder)


@pytest.mark.parametrize(
    ("config", "baseline"),
    [
        (EvaluationConfig(), None),
        (EvaluationConfig(), NOISY),
        (EvaluationConfig("pseudo-perplexity"), LETTERS),
        (EvaluationConfig("unmasking"), None),
        (EvaluationConfig("unmasking"), NOISY),
        (EvaluationConfig("suffix"), None),
    ],
)
def test_runs_of_today(store, config, baseline):
    check(record(store, MODEL, TEXTS, config, baseline).folder)


def test_infinite_losses_and_seals(store):
    folder = record(store).folder
    row = next(line for line in Run(folder).lines if not isinstance(line.row, SkippedText))
    values = json.loads(row.content) | {"plan": 3, "crc": 7}
    values["nll_nats"] = [math.inf] * len(values["nll_nats"])
    content = json.dumps(values).encode()
    assert b"Infinity" in content
    same(read_row(content, "").row, old_reader.read_line(content)[0])
