"""`runs` and `report`: list, show, compare, export, delete."""

import errno
import json
import shutil
from pathlib import Path

import pytest
from table_model import TableModel

from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.runs import RunStore, prepare_info, start
from fillmask_ui.runs.class_run import ClassRound, ClassRun, ClassStore, RoundLosses, WordShare

RECORDED = Path(__file__).parents[1] / "recorded" / "runs"
RUN = "20260105-131500-noisy-cross-entropy"


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


def test_a_class_among_the_runs(fillmask, tmp_path):
    words, rest = (
        (WordShare("tea", 0.5, 0.25), WordShare("=1+1", 0.25, 0.1)),
        WordShare("", 0.25, 0),
    )
    rounds = (ClassRound("a [MASK]", "", "tea", 3, words, rest, RoundLosses(0.75, 1.0, 1.5)),)
    store = ClassStore(tmp_path / "runs")
    name = store.save(ClassRun({"name": "table"}, "ABCD", "", rounds)).name
    (entry,) = map(json.loads, fillmask("runs", "list", "--json").stdout.splitlines())
    assert (entry["metric"], entry["rows"], entry["value"]) == ("class", 1, 0.75)
    assert name in fillmask("runs", "list").stdout
    exported = fillmask("runs", "export", name[:10]).stdout
    assert exported.splitlines()[2] == "1,a [MASK],tea,3,'=1+1,0,0.25,0.1,0.75,1.0,1.5"
    assert fillmask("runs", "export", name, "-o", tmp_path / "class.csv").returncode == 0
    assert (tmp_path / "class.csv").read_text() == exported
    (tmp_path / "runs" / name / "class.json").write_text("{")
    assert "class.json" in fillmask("runs", "list").stderr
    assert fillmask("runs", "delete", name, "--yes").stdout == f"deleted {name}\n"
    assert store.names() == []


def test_a_class_of_a_file_without_a_hidden_word(fillmask, tmp_path):
    path = tmp_path / "sentences.txt"
    path.write_text("A sentence.\n")
    result = fillmask("class", path)
    assert result.returncode == 2
    assert "line 1: no word is hidden" in result.stderr
