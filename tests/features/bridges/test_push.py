"""`runs push` to trackers, read back by their own clients."""

import json
import sys

import pytest
from recorded.program import ran
from stored_runs import record_at
from table_model import TableModel

from fillmask_ui.errors import how_to_install
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.features.bridges import push
from fillmask_ui.runs import RunStore, prepare_info, start

RUN = "20260102-101500-table-cross-entropy"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A store of one run, with a baseline."""
    root = tmp_path_factory.mktemp("recorded")
    record_at(root / RUN, baseline=TableModel(1, noise=0.3))
    return RunStore(root)


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
    environment = {name: value.format(folder / "tracked") for name, value in variables.items()}
    home = {"FILLMASK_UI_RUNS": str(root), "HOME": str(folder), "DO_NOT_TRACK": "1"}
    done = ran(sys.executable, *arguments, cwd=folder, **home | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("tracker", TRACKED)
def test_a_tracker_holds_figures_intervals_signature_and_rows(tracker, recorded, tmp_path):
    pytest.importorskip(tracker)
    variables, reading = TRACKED[tracker]
    command = ("-m", "fillmask_ui", "runs", "push", RUN[:8], "--to", tracker, "--project", "words")
    output = _run(tmp_path, recorded.root, variables, *command)
    name, settings, figures, rows = json.loads(
        _run(tmp_path, recorded.root, variables, "-c", reading)
    )
    run = recorded.open(RUN)
    summary, expected = run.summary(), push.contents(run)
    assert output.endswith(
        f"project words: {len(expected.figures)} figures, {summary.texts} rows\n"
    )
    assert name == RUN
    assert settings["signature"] == run.info.signature
    assert (
        settings["model"].startswith("table-1-0@numpy")
        and settings["verdict"] == summary.comparison.verdict.label
    )
    assert {key: figures[key] for key in expected.figures} == expected.figures
    assert figures["mean_nll_nats"] == summary.model.mean_nll_nats
    low, high = (figures[f"relative_change_interval_95/{side}"] for side in ("low", "high"))
    assert [low, high] == summary.to_dict()["relative_change_interval_95"]
    row = next(stored for stored in run.rows() if stored.id == rows[0]["text_id"])
    assert (len(rows), rows[0]["text"]) == (summary.texts, row.text)
    # mlflow keeps ten decimals of a table.
    assert rows[0]["mean_nll_nats"] == pytest.approx(row.scores.nll_nats.mean(), abs=1e-9)
    second = row.reference.nll_nats.mean()
    assert rows[0]["reference_mean_nll_nats"] == pytest.approx(second, abs=1e-9)


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
    expected = push.contents(recorded.open(RUN))
    assert json.loads(table.read_text()) == {"columns": expected.columns, "data": expected.rows}
    assert b"mean_nll_interval_95/low" in next(folder.glob("*.wandb")).read_bytes()


def test_slips_are_one_line_and_the_run_stays(fillmask, tmp_path, monkeypatch):
    record_at(tmp_path / "runs" / RUN)
    empty = prepare_info(EvaluationConfig(), TableModel(1))
    start(RunStore(tmp_path / "runs"), empty).close()

    def refused(*_):
        raise ConnectionError("no route to host\nand more")

    monkeypatch.setitem(push.TRACKERS, "json", push.Tracker(refused, "set ADDRESS", {}))
    for arguments, code, message in (
        ((RUN, "--to", "neptune"), 2, "unknown tracker 'neptune'; known: json, mlflow, trackio,"),
        ((RUN, "--to", "json", "--project", " "), 2, "the project has no name"),
        (("none", "--to", "json"), 1, "unknown run 'none'"),
        (("latest", "--to", "json"), 1, "has measured no text yet"),
        ((RUN, "--to", "json"), 1, "stays as it is (no route to host): set ADDRESS"),
    ):
        done = fillmask("runs", "push", *arguments)
        assert (done.returncode, done.stderr.count("\n")) == (code, 1), done.stderr
        assert message in done.stderr
    monkeypatch.setattr(push, "find_spec", lambda _: None)
    done = fillmask("runs", "push", RUN, "--to", "trackio")
    assert done.stderr == f"error: trackio is not installed: {how_to_install('trackio')}\n"
    assert fillmask("runs", "show", RUN).returncode == 0
