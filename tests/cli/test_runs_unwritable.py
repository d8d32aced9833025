"""Stores that may only be read, exports that fail, names that are not UTF-8."""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

RECORDED = Path(__file__).parents[1] / "recorded" / "runs"
RUN = "20260105-131500-noisy-cross-entropy"


@pytest.fixture
def stored(tmp_path):
    """A recorded run in the store of the test."""
    return Path(shutil.copytree(RECORDED / RUN, tmp_path / "runs" / RUN))


def test_a_run_that_may_not_be_removed(fillmask, stored, monkeypatch):
    def refuse(folder, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    # The tests may run as root, whom no permission stops.
    monkeypatch.setattr(shutil, "rmtree", refuse)
    result = fillmask("runs", "delete", "latest", "--yes")
    assert result.returncode == 1
    assert result.stderr == f"error: {stored} cannot be written: Permission denied\n"


@pytest.mark.parametrize("name", ["rows.jsonl", "lock"])
def test_a_store_that_may_not_be_written_is_not_resumed(fillmask, stored, monkeypatch, name):
    opened, os_open = Path.open, os.open

    def refuse(path, mode="r", *rest, **named):
        if path.name == name and "a" in mode:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, mode, *rest, **named)

    def refuse_lock(path, *rest, **named):
        if Path(str(path)).name == name:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return os_open(path, *rest, **named)

    given = json.loads((RECORDED / "20260102-101500-table-cross-entropy" / "run.json").read_text())
    values = json.loads((stored / "run.json").read_text())
    changed = {"state": "stopped", "result": None, "texts": given["texts"]}
    changed |= {"choices": {**given["choices"], "baseline": None}}
    (stored / "run.json").write_text(json.dumps(values | changed))
    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr("os.open", refuse_lock)
    result = fillmask("eval", "--resume", "latest")
    assert result.returncode == 1
    assert "Permission denied" in result.stderr
    assert name in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("ending", ["csv", "jsonl", "json", "parquet"])
def test_an_export_that_fails_leaves_what_was_there(fillmask, stored, tmp_path, ending):
    rows = stored / "rows.jsonl"
    rows.write_text(rows.read_text("utf-8") + '{"id": 999, "checksum": 1}\n', "utf-8")
    target = tmp_path / f"out.{ending}"
    target.write_text("before")
    result = fillmask("runs", "export", RUN, "-o", target)
    assert result.returncode == 1
    assert "text: field required" in result.stderr
    assert target.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [target.name]
