"""Closed streams, full devices and limits, which only a process of its own can have."""

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
@pytest.mark.parametrize("command", ["--version", "models --help", "runs list", PREDICT])
@pytest.mark.parametrize("where, why", [("> /dev/full", "No space left"), (">&-", "closed")])
def test_output_that_cannot_be_written_is_said_in_one_line(command, where, why, tmp_path):
    result = shell(f"$F {command} {where}", tmp_path)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: standard output cannot be written: ")
    assert why in line


@linux
@pytest.mark.parametrize(
    "command, code",
    [
        ("$F --version <&- 2>&-", 0),
        ("$F --version <&- >&- 2>&-", 1),
        ("$F predict nothing 2>&-", 2),
        ("$F predict nothing 2> /dev/full", 2),
    ],
)
def test_the_exit_code_is_right_where_nobody_can_be_told(command, code, tmp_path):
    result = shell(command, tmp_path)
    assert (result.returncode, result.stderr) == (code, "")


@linux
@pytest.mark.parametrize(
    "command, said",
    [
        ("$F predict --file - <&-", "standard input cannot be read"),
        ("$F eval --dataset - <&-", "standard input cannot be read"),
        (f"ulimit -v 250000; $F {PREDICT}", "not enough memory"),
        ("ulimit -f 0; $F --version > version.txt", "File too large"),
        ("ulimit -f 1; $F eval --samples 3 --json", "File too large"),
    ],
)
def test_what_the_process_may_not_have_is_said_in_one_line(command, said, tmp_path):
    result = shell(command, tmp_path)
    assert result.returncode == 1
    assert said in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


@linux
def test_a_reader_that_goes_ends_what_only_prints(tmp_path):
    result = shell(f"{{ $F {PREDICT} --top-k all --json; echo $? >&2; }} | head -c 1", tmp_path)
    assert result.stderr == "0\n"


@linux
def test_a_user_without_a_home_is_told_which_folder_to_name(fillmask, monkeypatch):
    import pwd

    monkeypatch.delenv("HOME")
    monkeypatch.delenv("FILLMASK_UI_RUNS")
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: {}[uid])
    result = fillmask("runs", "list")
    assert result.returncode == 1
    assert "no home folder" in result.stderr
    assert "FILLMASK_UI_RUNS" in result.stderr
    assert fillmask("predict", "The cat [MASK].").returncode == 0


def test_a_fault_of_the_program_is_one_line_and_by_choice_its_traceback(fillmask, monkeypatch):
    from fillmask_ui.cli import main

    monkeypatch.setattr(main, "_call", lambda: 1 // 0)
    result = fillmask("models")
    assert result.returncode == 1
    assert result.stderr.startswith("error: internal error: ZeroDivisionError: ")
    assert len(result.stderr.splitlines()) == 1
    monkeypatch.setenv("FILLMASK_UI_DEBUG", "1")
    assert "Traceback" in fillmask("models").stderr
