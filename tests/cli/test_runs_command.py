"""`runs` and `report`, and `push` to trackers and a hub, read back by their own clients."""

import errno
import json
import shutil

import pytest
from rich.console import Console
from stored_runs import record, record_at
from table_model import TableModel

import fillmask_ui.cli.runs as runs_command
from fillmask_ui.cli import terminal
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.runs import RunStore, prepare_info, start

RUN = "20260102-101500-table-cross-entropy"


def test_deleting_one_run_under_two_names(fillmask, tmp_path):
    store = RunStore(tmp_path / "runs")
    for _ in range(2):
        start(store, prepare_info(EvaluationConfig(), TableModel(1))).close()
    first, last = store.names()
    result = fillmask("runs", "delete", "latest", last, "latest", "--yes")
    assert result.stdout == f"deleted {last}\n"
    assert store.names() == [first]


def test_a_run_that_may_not_be_removed(fillmask, tmp_path, monkeypatch):
    stored = record_at(tmp_path / "runs" / RUN).folder

    def refuse(folder, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    # The tests may run as root, whom no permission stops.
    monkeypatch.setattr(shutil, "rmtree", refuse)
    result = fillmask("runs", "delete", "latest", "--yes")
    assert result.returncode == 1
    assert result.stderr == f"error: {stored} cannot be written: Permission denied\n"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_export_that_fails_leaves_what_was_there(fillmask, tmp_path, ending):
    rows = record_at(tmp_path / "runs" / RUN).rows_path
    rows.write_text(rows.read_text("utf-8") + '{"id": 999, "checksum": 1}\n', "utf-8")
    target = tmp_path / f"out.{ending}"
    target.write_text("before")
    result = fillmask("runs", "export", RUN, "-o", target)
    assert result.returncode == 1
    assert "text: field required" in result.stderr
    assert target.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [target.name]


def test_the_list_and_runs_beside_each_other_fit_in_80_columns(fillmask, tmp_path, monkeypatch):
    store = RunStore(tmp_path / "runs")
    names = [record(store, TableModel(1, noise=noise)).info.name for noise in (0.0, 0.1, 0.3)]
    record(store, TableModel(1, noise=0.2), baseline=TableModel(1))
    long_name = "the one whose activations were smoothed before"
    result = fillmask("runs", "rename", names[2], long_name)
    assert result.stdout == f"run {names[2]} is called {long_name}\n"
    monkeypatch.setattr(terminal, "wide_console", lambda: Console(width=80))
    monkeypatch.setattr(runs_command, "wide_console", lambda: Console(width=80))
    listed = fillmask("runs", "list").stdout.splitlines()
    table = [line for line in listed if line.startswith("│")]
    # A line each: nothing is folded.
    assert len(table) == len(store.names())
    assert max(map(len, listed[:-1])) <= 80
    assert f"│ {long_name[:31]}… │" in listed[-3] + listed[-4] + listed[-5]
    assert listed[-1].startswith("Not shown in this width: ") and "texts" in listed[-1]
    # What stands for a run names it.
    for line in table:
        stands = line.split("│")[1].strip()
        if "…" not in stands:
            assert fillmask("runs", "show", stands, "--json").returncode == 0
    beside = fillmask("runs", "compare", names[0], names[1], long_name)
    assert beside.returncode == 0
    assert max(map(len, beside.stdout.splitlines())) <= 80
    values = json.loads(fillmask("runs", "compare", *names, "--json").stdout)
    assert [run["run"] for run in values["runs"]] == names
    by_change = fillmask("runs", "list", "--json", "--sort", "change").stdout.splitlines()
    assert json.loads(by_change[0])["relative_change"] is not None
    wrong = fillmask("runs", "list", "--sort", "size")
    assert (wrong.returncode, "unknown order 'size'" in wrong.stderr) == (2, True)


_ATTEMPTS = """
import json, os, sys
from pathlib import Path
from fillmask_ui.errors import NetworkError
from fillmask_ui.publishing.hub_push import HubTarget
folder, attempts = json.load(sys.stdin)
for repository, os.environ["HF_TOKEN"] in attempts:
    try:
        print(HubTarget(repository).push(Path(folder)))
    except NetworkError as error:
        print(error)
"""


def test_a_hub_that_refuses_leaves_the_folder_and_names_it(loopback_hub, tmp_path):
    folder = tmp_path / "made it"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    attempts = {
        ("me/tiny", ""): "(there is no token): log in with a token that may write",
        ("me/tiny", "hf_other"): "Unauthorized",
        ("others/tiny", loopback_hub.token): "take a token that may write there",
    }
    given = json.dumps([str(folder), [*attempts]])
    done = loopback_hub.run(tmp_path / "hub", "-c", _ATTEMPTS, stdin=given)
    lines = done.stdout.splitlines()
    assert len(lines) == len(attempts), done.stderr
    for line, (repository, _), told in zip(lines, attempts, attempts.values(), strict=True):
        assert line.startswith(f"{folder} is complete and stays, but {repository} on the hub")
        assert told in line and line.endswith(f"then: hf upload {repository} '{folder}'")
        assert loopback_hub.find("model", repository) is None
    assert folder.is_dir()
