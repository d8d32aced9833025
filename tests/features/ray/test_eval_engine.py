"""`eval --engine ray` with an engine of the test in place of Ray."""

import json
import re

import pytest
from block_engine import BlockEngine

from fillmask_ui.cli import eval as command
from fillmask_ui.cli import terminal
from fillmask_ui.errors import how_to_install
from fillmask_ui.runs.engines import EngineChoice

FAST = ("--metric", "suffix", "--samples", "20", "--max-tokens", "24", "--batch-tokens", "64")
TWO = ("--engine", "ray", "--workers", "2")
RAY = {"name": "ray", "version": "2.60.0", "workers": 2, "threads_per_worker": 1}


@pytest.fixture
def engine(monkeypatch):
    made = BlockEngine()
    monkeypatch.setattr(command, "open_engine", made)
    return made


def test_lines_in_a_pipe_say_how_fast_and_how_long(fillmask, engine, monkeypatch):
    monkeypatch.setattr(terminal, "_QUIET_SECONDS", 0.0)
    options = ("--threads-per-worker", "3", "--address", "10.0.0.1:6379")
    output = fillmask("eval", *FAST, *TWO, *options).stderr
    assert engine.opened == [EngineChoice("ray", "10.0.0.1:6379", 2, 3)]
    assert output.startswith("starting Ray...\n")
    assert re.search(
        r"\d of 20 texts, [\d,.]+ tokens/s, 2 workers, mean NLL \d\.\d{4} nats, about \d+ s left\n",
        output,
    )
    alone = fillmask("eval", *FAST).stderr
    assert re.search(r"tokens/s, mean NLL", alone)
    assert "worker" not in alone


def test_ctrl_c_closes_the_engine_and_says_how_to_go_on(fillmask, engine, tmp_path):
    def interrupt():
        if any(path.stat().st_size for path in tmp_path.glob("runs/*/rows.jsonl")):
            raise KeyboardInterrupt

    engine.on_block = interrupt
    stopped = fillmask("eval", *FAST, *TWO)
    (folder,) = (tmp_path / "runs").iterdir()
    assert stopped.returncode == 130
    assert f"texts are kept: fillmask-ui eval --resume {folder.name}" in stopped.stderr
    assert engine.open == 0
    assert json.loads((folder / "run.json").read_text())["state"] == "stopped"


def test_without_ray_the_extra_is_named(fillmask, monkeypatch, tmp_path):
    monkeypatch.setattr("fillmask_ui.runs.engines.find_spec", lambda _: None)
    refused = fillmask("eval", *FAST, *TWO)
    assert refused.returncode == 2
    assert how_to_install("ray") in refused.stderr
    assert not (tmp_path / "runs").exists()


def test_runs_say_where_they_were_measured(fillmask, tmp_path):
    name = fillmask("eval", *FAST, "--json").json["run"]
    path = tmp_path / "runs" / name / "run.json"
    assert "measured by: local\n" in fillmask("runs", "show", name).stdout
    assert "Engines" not in fillmask("runs", "list").stdout
    values = json.loads(path.read_text())
    path.write_text(json.dumps({**values, "engines": [{"name": "local"}, RAY]}))
    words = "local; Ray 2.60.0, 2 workers of 1 thread"
    assert f"measured by: {words}\n" in fillmask("runs", "show", name).stdout
    for asked in (("show", name), ("list",)):
        assert fillmask("runs", *asked, "--json").json["engines"] == [{"name": "local"}, RAY]
    assert "local, Ray" in fillmask("runs", "list").stdout
    page = tmp_path / "report.html"
    assert fillmask("report", name, "-o", page).returncode == 0
    assert words in page.read_text()
