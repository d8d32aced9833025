"""`runs` and `report`: list, show, compare, export, delete."""

import errno
import json
import shutil
from pathlib import Path

import pytest
from evaluated import FAST
from table_model import TableModel

from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.runs import RunStore, prepare_info, start

RECORDED = Path(__file__).parents[1] / "recorded" / "runs"
RUN = "20260105-131500-noisy-cross-entropy"


def test_list_show_compare_export_report_delete(fillmask, tmp_path):
    first = fillmask("eval", *FAST, "--json").json
    second = fillmask("eval", *FAST, "--json", "--model", "embedded:int8").json
    listed = fillmask("runs", "list", "--json").stdout.splitlines()
    assert [json.loads(line)["run"] for line in listed] == [first["run"], second["run"]]
    assert json.loads(listed[0])["value"] == first["cross_entropy"]
    shown = fillmask("runs", "list").stdout
    assert "cross-entropy" in shown
    assert "done" in shown

    latest = fillmask("runs", "show", "latest", "--json").json
    assert latest["cross_entropy"] == second["cross_entropy"]
    assert "top-1 accuracy" in fillmask("runs", "show", first["run"]).stdout

    compared = fillmask("runs", "compare", second["run"], first["run"], "--json").json
    assert compared["relative_change"] == pytest.approx(
        second["cross_entropy"] / first["cross_entropy"] - 1
    )
    assert "Verdict: " in fillmask("runs", "compare", second["run"], first["run"]).stdout

    exported = fillmask("runs", "export", first["run"]).stdout.splitlines()
    assert len(exported) == first["tokens"] + 1
    target = tmp_path / "rows.parquet"
    said = fillmask("runs", "export", first["run"], "-o", target).stdout
    assert f"{first['tokens']} records" in said
    assert target.stat().st_size > 0
    lines = fillmask("runs", "export", first["run"], "--format", "jsonl").stdout.splitlines()
    assert len(lines) == 8

    page = tmp_path / "report.html"
    assert fillmask("report", first["run"], "-o", page).returncode == 0
    assert first["run"] in page.read_text()

    refused = fillmask("runs", "delete", first["run"], stdin="")
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert fillmask("runs", "delete", first["run"], "--yes").returncode == 0
    assert len(fillmask("runs", "list", "--json").stdout.splitlines()) == 1


def test_a_run_of_another_version_does_not_hide_the_others(fillmask, tmp_path):
    kept = fillmask("eval", *FAST, "--json").json["run"]
    other = tmp_path / "runs" / "19990101-older"
    shutil.copytree(tmp_path / "runs" / kept, other)
    values = json.loads((other / "run.json").read_text())
    (other / "run.json").write_text(json.dumps({**values, "format": 0}))
    result = fillmask("runs", "list", "--json")
    assert [json.loads(line)["run"] for line in result.stdout.splitlines()] == [kept]
    assert "has format 0" in result.stderr
    assert fillmask("runs", "show", "1999").returncode == 1


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
