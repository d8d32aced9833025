"""What only a process of its own can have: descriptors, a terminal, an environment, signals.

With the runs that a signal cuts off and `--resume` goes on with.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
from evaluated import FAST
from recorded.program import ran

PROGRAM = [sys.executable, "-m", "fillmask_ui"]
MODEL = ("predict", "-m", "org/model", "A [MASK].")
# A job in the background of a shell inherits that Ctrl-C is ignored.
HEED = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)


def started(command, tmp_path, **environment):
    """A command line, or a shell's script in which `$F` is the program, run to its end."""
    words = ["bash", "-c", command] if isinstance(command, str) else [*PROGRAM, *command]
    variables = {"F": " ".join(PROGRAM), "FILLMASK_UI_RUNS": str(tmp_path / "runs")}
    return ran(*words, **variables | environment)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("$F --version > /dev/full", "No space left"),
        ("$F predict 'The cat [MASK].' > /dev/full", "No space left"),
        ("ulimit -f 1; $F eval --samples 3 --json", "File too large"),
    ],
)
def test_a_full_disk_is_told_in_one_line(command, said, tmp_path):
    result = started(command, tmp_path)
    assert result.returncode == 1
    assert said in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    # One text with all words is more than a pipe holds.
    script = "set -o pipefail; $F predict 'The cat [MASK].' --top-k all --json | head -c 100"
    result = started(script, tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith('{"text"')


def test_a_lone_surrogate_from_the_shell(tmp_path):
    result = started(r"$F predict $'broken \xff [MASK]'", tmp_path)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert "surrogate" in result.stderr


def test_a_terminal_gets_a_bar_with_the_time_left(tmp_path):
    size = {"TERM": "xterm-256color", "COLUMNS": "120"}
    main, terminal = os.openpty()
    process = subprocess.Popen(
        [*PROGRAM, "eval", *FAST, "--batch-tokens", "64"],
        env={**os.environ, "FILLMASK_UI_RUNS": str(tmp_path), **size},
        stdout=subprocess.DEVNULL,
        stderr=terminal,
        stdin=subprocess.DEVNULL,
    )
    os.close(terminal)
    output = b""
    # Linux ends a terminal whose last writer is gone with an error.
    with os.fdopen(main, "rb", buffering=0) as terminal, contextlib.suppress(OSError):
        while part := terminal.read(4096):
            output += part
    assert process.wait(300) == 0, output.decode()
    text = output.decode()
    assert "8/8" in text
    assert re.search(r"\d:\d\d:\d\d", text)
    assert "mean NLL" in text


@pytest.mark.parametrize(
    ("variables", "arguments", "words"),
    [
        ({"HF_TOKEN": "hf_é"}, MODEL, "codec can't encode"),
        ({"HF_HUB_CACHE": "{}/file"}, ("models",), "cannot be read"),
        ({"HF_HOME": "{}/file"}, MODEL, "Not a directory"),
        ({"HF_HUB_CACHE": "{}", "HF_HUB_OFFLINE": "1"}, MODEL, "not complete in the local cache"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_what_the_hubs_client_reads_at_its_import(
    variables, arguments, words, tmp_path, tiny_models
):
    (tmp_path / "file").touch()
    damaged = tmp_path / "models--org--model"
    (damaged / "refs").mkdir(parents=True)
    (damaged / "refs" / "main").write_bytes(b"\xff\0\n\x80")  # no commit
    shutil.copytree(tiny_models.folder("bert"), damaged / "snapshots" / "abc")
    values = {name: value.format(tmp_path) for name, value in variables.items()}
    closed = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "home")}
    done = started(arguments, tmp_path, **(closed | values))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


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
    deadline = time.monotonic() + 300
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
    values = resumed.json
    assert {**values, "run": ""} == {**whole, "run": ""}
    again = fillmask("eval", "--resume", rows.parent.name, "--json")
    assert "is done already" in again.stderr
    assert again.json == values


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path):
    # Minutes of work, so that it cannot be over before the signal arrives.
    options = ("--metric", "pseudo-perplexity", "--batch-tokens", "512")
    process = begun(tmp_path, *options, preexec_fn=HEED)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert time.monotonic() - start < 10
    assert process.returncode == 130
    (run_folder,) = tmp_path.iterdir()
    assert f"fillmask-ui eval --resume {run_folder.name}" in errors
    assert "Traceback" not in errors
    assert json.loads((run_folder / "run.json").read_text())["state"] == "stopped"
