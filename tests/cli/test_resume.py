"""`eval --resume`: what was killed, stopped or changed."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial


def begun(store, *options, **more):
    """An evaluation in a process of its own, once it has stored a text."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fillmask_ui", "eval", *options],
        env={**os.environ, "FILLMASK_UI_RUNS": str(store)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size for path in store.glob("*/rows.jsonl")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


def test_a_killed_run_resumes_to_the_same_figures(fillmask, tmp_path, monkeypatch):
    """kill -9 in the middle of the real program over the real model, then --resume."""
    # Enough to outlast a stalled machine between the first row and the signal.
    options = ("--samples", "120", "--max-tokens", "48", "--batch-tokens", "64")
    whole = fillmask("eval", *options, "--json").json
    store = tmp_path / "killed"
    process = begun(store, *options)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (rows,) = store.glob("*/rows.jsonl")
    done = rows.read_bytes().count(b"\n")
    with rows.open("ab") as file:
        file.write(b'{"id": 7, "half')  # as if the kill had come in the middle of a line
    monkeypatch.setenv("FILLMASK_UI_RUNS", str(store))
    resumed = fillmask("eval", "--resume", rows.parent.name, "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert "dropped a half-written last line" in resumed.stderr
    assert done < 120
    found = resumed.json
    assert {**found, "run": ""} == {**whole, "run": ""}
    again = fillmask("eval", "--resume", rows.parent.name, "--json")
    assert "is done already" in again.stderr
    assert again.json == found


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path):
    # Minutes of work, so that it cannot be over before the signal arrives.
    options = ("--metric", "pseudo-perplexity", "--batch-tokens", "512")
    # A job in the background of a shell inherits that Ctrl-C is ignored.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = begun(tmp_path, *options, preexec_fn=heed)
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert time.monotonic() - asked < 10
    assert process.returncode == 130
    (run_folder,) = tmp_path.iterdir()
    assert f"fillmask-ui eval --resume {run_folder.name}" in said
    assert "Traceback" not in said
    assert json.loads((run_folder / "run.json").read_text())["state"] == "stopped"
