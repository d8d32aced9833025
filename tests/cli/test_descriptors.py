"""Full disks and readers that go away, which only a process of its own can have."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full and a Bourne shell")
PREDICT = "predict 'The cat [MASK].'"


def shell(command, tmp_path, **environment):
    """A shell's command, in which `$F` is the program."""
    return subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        env={
            **os.environ,
            "F": f"{sys.executable} -m fillmask_ui",
            "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path]),
            "FILLMASK_UI_RUNS": str(tmp_path / "runs"),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@linux
@pytest.mark.parametrize(
    "command, said",
    [
        ("$F --version > /dev/full", "No space left"),
        (f"$F {PREDICT} > /dev/full", "No space left"),
        ("ulimit -f 1; $F eval --samples 3 --json", "File too large"),
    ],
)
def test_a_full_disk_is_said_in_one_line(command, said, tmp_path):
    result = shell(command, tmp_path)
    assert result.returncode == 1
    assert said in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


@linux
def test_a_reader_that_goes_ends_what_only_prints(tmp_path):
    result = shell(f"{{ $F {PREDICT} --top-k all --json; echo $? >&2; }} | head -c 1", tmp_path)
    assert result.stderr == "0\n"


def test_a_fault_of_the_program_asks_for_a_report_and_shows_its_traceback(fillmask, monkeypatch):
    from fillmask_ui.cli import main

    monkeypatch.setattr(main, "_call", lambda: 1 // 0)
    result = fillmask("models")
    assert result.returncode == 70
    (line,) = result.stderr.splitlines()
    assert "please report it" in line
    assert "ZeroDivisionError" in line
    assert "Traceback" in fillmask("models", "--traceback").stderr
    monkeypatch.setenv("FILLMASK_UI_DEBUG", "1")
    assert "Traceback" in fillmask("models").stderr
