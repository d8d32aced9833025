"""`runs` and `report`, and `push` to trackers and a hub, read back by their own clients."""

import errno
import json
import shutil
import sys

import pytest
from recorded.program import ran
from stored_runs import record_at
from table_model import TableModel

from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.features.bridges import push
from fillmask_ui.features.classroom.class_run import (
    ClassRound,
    ClassRun,
    ClassStore,
    RoundLosses,
    WordShare,
)
from fillmask_ui.runs import RunStore, prepare_info, start

RUN = "20260102-101500-table-cross-entropy"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A store of one run, with a baseline."""
    root = tmp_path_factory.mktemp("recorded")
    record_at(root / RUN, baseline=TableModel(1, noise=0.3))
    return RunStore(root)


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


# Per tracker: variables, and a program that prints settings, figures and rows of the one run.
TRACKED = {
    "trackio": (
        {"TRACKIO_DIR": "{}"},
        """
import json, trackio
from trackio.sqlite_storage import SQLiteStorage
(run,) = trackio.Api().runs("words")
(logged,) = SQLiteStorage.get_logs("words", run.name, run_id=run.id)
rows = logged.pop("rows")["_value"]
print(json.dumps([run.name, run.config, logged, rows]))
""",
    ),
    "mlflow": (
        {"MLFLOW_TRACKING_URI": "{}", "MLFLOW_ALLOW_FILE_STORE": "true"},
        """
import json, mlflow
client = mlflow.MlflowClient()
(run,) = client.search_runs([client.get_experiment_by_name("words").experiment_id])
table = json.load(open(client.download_artifacts(run.info.run_id, "rows.json")))
rows = [dict(zip(table["columns"], row)) for row in table["data"]]
print(json.dumps([run.info.run_name, run.data.params, run.data.metrics, rows]))
""",
    ),
}


def _run(folder, root, variables, *arguments):
    own = {name: value.format(folder / "tracked") for name, value in variables.items()}
    home = {"FILLMASK_UI_RUNS": str(root), "HOME": str(folder), "DO_NOT_TRACK": "1"}
    done = ran(sys.executable, *arguments, cwd=folder, **home | own)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("tracker", TRACKED)
def test_a_tracker_holds_figures_intervals_signature_and_rows(tracker, recorded, tmp_path):
    pytest.importorskip(tracker)
    variables, reading = TRACKED[tracker]
    command = ("-m", "fillmask_ui", "runs", "push", RUN[:8], "--to", tracker, "--project", "words")
    said = _run(tmp_path, recorded.root, variables, *command)
    name, settings, figures, rows = json.loads(
        _run(tmp_path, recorded.root, variables, "-c", reading)
    )
    run = recorded.open(RUN)
    summary, wanted = run.summary(), push.contents(run)
    assert said.endswith(f"project words: {len(wanted.figures)} figures, {summary.texts} rows\n")
    assert name == RUN
    assert settings["signature"] == run.info.signature
    assert (
        settings["model"].startswith("table-1-0@numpy")
        and settings["verdict"] == summary.comparison.verdict.label
    )
    assert {key: figures[key] for key in wanted.figures} == wanted.figures
    assert figures["mean_nll_nats"] == summary.model.mean_nll_nats
    low, high = (figures[f"relative_change_interval_95/{side}"] for side in ("low", "high"))
    assert [low, high] == summary.to_dict()["relative_change_interval_95"]
    row = next(own for own in run.rows() if own.id == rows[0]["text_id"])
    assert (len(rows), rows[0]["text"]) == (summary.texts, row.text)
    # mlflow keeps ten decimals of a table.
    assert rows[0]["mean_nll_nats"] == pytest.approx(row.scores.nll_nats.mean(), abs=1e-9)
    second = row.baseline.nll_nats.mean()
    assert rows[0]["baseline_mean_nll_nats"] == pytest.approx(second, abs=1e-9)


def test_wandb_keeps_a_run_offline(recorded, tmp_path):
    pytest.importorskip("wandb")
    variables = {"WANDB_MODE": "offline", "WANDB_DIR": "{}"}
    (tmp_path / "tracked").mkdir()
    _run(
        tmp_path,
        recorded.root,
        variables,
        "-m",
        "fillmask_ui",
        "runs",
        "push",
        RUN,
        "--to",
        "wandb",
    )
    (folder,) = (tmp_path / "tracked" / "wandb").glob("offline-run-*")
    (table,) = folder.rglob("rows*.table.json")
    wanted = push.contents(recorded.open(RUN))
    assert json.loads(table.read_text()) == {"columns": wanted.columns, "data": wanted.rows}
    assert b"mean_nll_interval_95/low" in next(folder.glob("*.wandb")).read_bytes()


def test_slips_are_one_line_and_the_run_stays(fillmask, tmp_path, monkeypatch):
    record_at(tmp_path / "runs" / RUN)
    empty = prepare_info(EvaluationConfig(), TableModel(1))
    start(RunStore(tmp_path / "runs"), empty).close()

    def refused(*_):
        raise ConnectionError("no route to host\nand more")

    monkeypatch.setitem(push.TRACKERS, "json", push.Tracker(refused, "set ADDRESS", {}))
    for arguments, code, told in (
        ((RUN, "--to", "neptune"), 2, "unknown tracker 'neptune'; known: json, mlflow, trackio,"),
        ((RUN, "--to", "json", "--project", " "), 2, "the project has no name"),
        (("none", "--to", "json"), 1, "unknown run 'none'"),
        (("latest", "--to", "json"), 1, "has measured no text yet"),
        ((RUN, "--to", "json"), 1, "stays as it is (no route to host): set ADDRESS"),
    ):
        done = fillmask("runs", "push", *arguments)
        assert (done.returncode, done.stderr.count("\n")) == (code, 1), done.stderr
        assert told in done.stderr
    monkeypatch.setattr(push, "find_spec", lambda _: None)
    done = fillmask("runs", "push", RUN, "--to", "trackio")
    assert done.stderr == "error: trackio is not installed: pip install 'fillmask-ui[trackio]'\n"
    assert fillmask("runs", "show", RUN).returncode == 0


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


def test_a_folder_reaches_the_hub_whole(loopback_hub, tiny_models, tmp_path):
    out = tmp_path / "out"
    command = ["quantize", tiny_models.folder("bert"), "-o", out, "--no-measure", "--private"]
    command = ["-m", "fillmask_ui", *command, "--push-to-hub", "tiny"]
    done = loopback_hub.run(tmp_path / "hub", *command, HF_TOKEN=loopback_hub.token)
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith(f"pushed to {loopback_hub.endpoint}/me/tiny\n")
    repository = loopback_hub.find("model", "me/tiny")
    assert repository.private
    there = repository.files[repository.revisions["main"]]
    here = {path.relative_to(out).as_posix(): path for path in out.rglob("*") if path.is_file()}
    assert {name: path.read_bytes() for name, path in here.items()} == there
    assert loopback_hub.uploaded.keys() and "onnx/model_int8.onnx" in there


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
    done = loopback_hub.run(tmp_path / "hub", "-c", _ATTEMPTS, given=given)
    lines = done.stdout.splitlines()
    assert len(lines) == len(attempts), done.stderr
    for line, (repository, _), told in zip(lines, attempts, attempts.values(), strict=True):
        assert line.startswith(f"{folder} is complete and stays, but {repository} on the hub")
        assert told in line and line.endswith(f"then: hf upload {repository} '{folder}'")
        assert loopback_hub.find("model", repository) is None
    assert folder.is_dir()


@pytest.mark.parametrize("command", ["quantize", "package"])
def test_a_slip_in_the_name_is_told_before_any_work(fillmask, tmp_path, command):
    for arguments, told in (
        (("--push-to-hub", "a/b/c"), "'a/b/c' cannot name a repository of the hub: "),
        (("--push-to-hub", ""), "'' cannot name a repository of the hub: "),
        (("--private",), "--private belongs to --push-to-hub"),
    ):
        done = fillmask(command, "nowhere", "-o", tmp_path / "out", *arguments)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert told in done.stderr
