"""`fillmask-ui sweep` as its user calls it, over the embedded models."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import pytest

SWEEP = """
baseline = "embedded"
seeds = [42, 1]
[[models]]
model = "embedded"
[[models]]
model = "embedded:int8"
label = "int8"
[[data]]
dataset = "embedded"
samples = {samples}
[[metrics]]
metric = "cross-entropy"
max-tokens = 32
batch-tokens = 128
[[metrics]]
metric = "pseudo-perplexity"
max-tokens = 16
batch-tokens = 128
"""
OWN = ("--samples", "12", "--batch-tokens", "128")
CROSS = (*OWN, "--max-tokens", "32")
PSEUDO = (*OWN, "--max-tokens", "16", "--metric", "pseudo-perplexity")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SWEEP.format(samples=12))
    return path


def test_the_figures_are_those_of_eval_to_the_last_digit(fillmask, file, tmp_path):
    targets = tmp_path / "t.csv", tmp_path / "t.html"
    result = fillmask("sweep", file, "--json", "--csv", targets[0], "--html", targets[1])
    assert result.returncode == 0, result.stderr
    cells = result.json["cells"]
    assert [cell["seed"] for cell in cells] == [42, 1, None] * 2
    options = (CROSS, (*CROSS, "--seed", "1"), PSEUDO)
    for cell, own in zip(cells, options * 2, strict=True):
        model = "embedded:int8" if cell["model"] == "int8" else "embedded"
        beside = ("--baseline", "embedded") if cell["model"] == "int8" else ()
        alone = fillmask("eval", "--model", model, *beside, *own, "--json").json
        key = "pseudo_perplexity" if cell["seed"] is None else "cross_entropy"
        assert cell["figure"] == key
        assert cell["value"] == alone[key]
        assert cell["interval_95"] == alone["interval_95"]
        assert (cell["texts"], cell["tokens"]) == (alone["texts"], alone["tokens"])
        assert cell["relative_change"] == alone.get("relative_change")
        interval = alone.get("relative_change_interval_95")
        assert cell["relative_change_interval_95"] == interval
        assert cell["verdict"] == alone.get("verdict")
    with targets[0].open() as lines:
        rows = [*csv.DictReader(lines)]
    assert [float(row["value (in unit)"]) for row in rows] == [cell["value"] for cell in cells]
    assert all(f"{cell['value']:,.4f}" in targets[1].read_text() for cell in cells)
    shown = fillmask("sweep", file)
    assert "6 of 6 cells were done before" in shown.stderr
    for cell in cells:
        assert f"{cell['value']:.4f}" in shown.stdout
    assert "mean of 2 seeds" in shown.stdout
    assert f"{cells[-1]['relative_change']:+.2%}" in shown.stdout
    # Columns that do not fit stand below each other.
    more = "".join(
        f'[[data]]\ndataset = "embedded"\nlabel = "the longer texts {n}"\nsamples = {n}\n'
        for n in range(3, 9)
    )
    (tmp_path / "wide.toml").write_text(file.read_text() + more)
    wide = fillmask("sweep", tmp_path / "wide.toml", "--table-only").stdout
    assert "cross-entropy (nats), the longer texts 3" in wide
    assert "pseudo-perplexity, the longer texts 8" in wide
    listed = fillmask("runs", "list", "--json").stdout.splitlines()
    assert {cell["run"] for cell in cells} <= {json.loads(line)["run"] for line in listed}


def start(file, store, **streams):
    return subprocess.Popen(
        [sys.executable, "-m", "fillmask_ui", "sweep", str(file)],
        env={**os.environ, "FILLMASK_UI_RUNS": str(store)},
        stdout=subprocess.DEVNULL,
        **streams,
        # A job in the background of a shell inherits that Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for_rows(store, runs):
    deadline = time.monotonic() + 60
    while sum(path.stat().st_size > 0 for path in store.glob("*/rows.jsonl")) < runs:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def without_runs(result):
    return [{**cell, "run": None} for cell in result.json["cells"]]


def test_killed_in_the_middle_it_goes_on_to_the_same_table(fillmask, file, tmp_path, monkeypatch):
    """kill -9 in two runs one after another, then to the end."""
    cross_entropy_alone = SWEEP.rsplit("[[metrics]]", 1)[0]
    file.write_text(cross_entropy_alone.format(samples=60))
    store = tmp_path / "killed"
    for runs in (1, 3):
        process = start(file, store, stderr=subprocess.DEVNULL)
        wait_for_rows(store, runs)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len([*store.iterdir()]) < 4
    whole = fillmask("sweep", file, "--json")
    monkeypatch.setenv("FILLMASK_UI_RUNS", str(store))
    resumed = fillmask("sweep", file, "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert without_runs(resumed) == without_runs(whole)
    assert resumed.json["over_seeds"] == whole.json["over_seeds"]
    assert len([*store.iterdir()]) == 4  # no run twice


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(fillmask, file, tmp_path):
    file.write_text(SWEEP.format(samples=300).replace("max-tokens = 16", ""))  # minutes of work
    store = tmp_path / "runs"
    process = start(file, store, stderr=subprocess.PIPE, text=True)
    wait_for_rows(store, 1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"stopped; what was measured is kept, go on with: fillmask-ui sweep {file}" in said
    assert "Traceback" not in said
    shown = fillmask("sweep", file, "--table-only", "--json")
    assert shown.returncode == 0
    assert "stopped" in [cell["state"] for cell in shown.json["cells"]]
    assert "missing" in [cell["state"] for cell in shown.json["cells"]]
    assert not fillmask("sweep", file, "--table-only").stderr


def test_a_failing_cell_stands_in_the_table_and_in_the_exit_code(fillmask, file, tmp_path):
    folder = tmp_path / "no model"
    folder.mkdir()
    bad = f'[[models]]\nmodel = "{folder}"\n[[data]]\ndataset = "{tmp_path / "bad.csv"}"\n'
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    file.write_text(file.read_text().replace("[42, 1]", "[42]") + bad)
    result = fillmask("sweep", file)
    assert result.returncode == 1
    assert "error: 8 of 12 cells failed" in result.stderr
    assert result.stderr.count("failed: as above") == 3 + 3  # of each reason once in full
    assert "Traceback" not in result.stderr
    assert result.stdout.count("failed") == 8
    assert "Note 1: " in result.stdout
    assert "column" in result.stdout
    states = [cell["state"] for cell in fillmask("sweep", file, "--json").json["cells"]]
    assert states == ["done", "done", "failed", "failed"] * 2 + ["failed"] * 4


def test_the_verdict_decides_the_exit_code(fillmask, file, damaged):
    for name, code in (("regression", 0), ("inconclusive", 3)):
        result = fillmask("sweep", file, "--fail-on", name, "--json")
        verdicts = {cell["verdict"] for cell in result.json["cells"]}
        assert "REGRESSION" not in verdicts
        expected = code if verdicts & {"INCONCLUSIVE", "AT_RISK"} else 0
        assert result.returncode == expected
    file.write_text(file.read_text().replace("embedded:int8", str(damaged)))
    result = fillmask("sweep", file, "--fail-on", "regression", "--json")
    assert "REGRESSION" in {cell["verdict"] for cell in result.json["cells"]}
    assert result.returncode == 3
    assert ": REGRESSION (--fail-on regression)" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 1, "No such file"),
        (("--fail-on", "fail"), 2, "unknown verdict to fail on"),
        (("--fail-on", "regression", "--table-only"), 2, "leave out --table-only"),
        (("--fail-on", "regression"), 2, "needs a baseline in the sweep file"),
        (("--csv", "no/where.csv"), 2, "no folder 'no'"),
        (("--html", "no/where.html"), 2, "no folder 'no'"),
        (("--engine", "spark"), 2, "unknown engine 'spark'"),
        (("--workers", "2"), 2, "add --engine ray"),
    ],
)
def test_bad_input_is_said_before_any_work(fillmask, file, tmp_path, arguments, code, message):
    if "baseline" in message:
        file.write_text(file.read_text().replace('baseline = "embedded"', ""))
    result = fillmask("sweep", file if arguments else "none.toml", *arguments)
    assert result.returncode == code
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()
