"""`runs` and `report`: list, show, compare, export, delete."""

import errno
import shutil
from pathlib import Path

import pytest
from table_model import TableModel

from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.runs import RunStore, prepare_info, start

RECORDED = Path(__file__).parents[1] / "recorded" / "runs"
RUN = "20260105-131500-noisy-cross-entropy"


def test_no_runs_yet(fillmask):
    assert "make one with fillmask-ui eval" in fillmask("runs", "list").stdout


def test_deleting_one_run_under_two_names(fillmask, tmp_path):
    store = RunStore(tmp_path / "runs")
    for _ in range(2):
        start(store, prepare_info(EvaluationConfig(), TableModel(1))).close()
    first, last = store.names()
    result = fillmask("runs", "delete", "latest", last, "latest", "--yes")
    assert result.stdout == f"deleted {last}\n"
    assert store.names() == [first]


def test_a_run_that_may_not_be_removed(fillmask, tmp_path, monkeypatch):
    stored = shutil.copytree(RECORDED / RUN, tmp_path / "runs" / RUN)

    def refuse(folder, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    # The tests may run as root, whom no permission stops.
    monkeypatch.setattr(shutil, "rmtree", refuse)
    result = fillmask("runs", "delete", "latest", "--yes")
    assert result.returncode == 1
    assert result.stderr == f"error: {stored} cannot be written: Permission denied\n"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_export_that_fails_leaves_what_was_there(fillmask, tmp_path, ending):
    rows = shutil.copytree(RECORDED / RUN, tmp_path / "runs" / RUN) / "rows.jsonl"
    rows.write_text(rows.read_text("utf-8") + '{"id": 999, "checksum": 1}\n', "utf-8")
    target = tmp_path / f"out.{ending}"
    target.write_text("before")
    result = fillmask("runs", "export", RUN, "-o", target)
    assert result.returncode == 1
    assert "text: field required" in result.stderr
    assert target.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [target.name]
