"""Hostile inputs: stored runs that somebody altered, and stores that cannot be used."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cli.hostile.attempt import Attempt

_RECORDED = Path(__file__).parents[2] / "recorded" / "runs" / "20260105-131500-noisy-cross-entropy"
Make = Callable[[Path, Path], object]
Change = Callable[[Any], object]


def _stored(folder: Path, name: str | bytes = "broken") -> Path:
    """A recorded run in the store of the test."""
    target = folder / "runs" / os.fsdecode(name)
    shutil.copytree(_RECORDED, target)
    return target


def _info(change: Change) -> Make:
    """A run whose run.json was altered, and one that is as it was."""

    def make(folder: Path, _: Path) -> None:
        _stored(folder, "good")
        path = _stored(folder) / "run.json"
        values = json.loads(path.read_text("utf-8"))
        change(values)
        path.write_text(json.dumps(values), "utf-8")

    return make


def _row(change: Change) -> Make:
    """A run with an altered row in line 2, the first that was measured, and one as it was."""

    def make(folder: Path, _: Path) -> None:
        _stored(folder, "good")
        path = _stored(folder) / "rows.jsonl"
        lines = path.read_text("utf-8").splitlines()
        number = next(i for i, line in enumerate(lines) if "nll_nats" in line)
        row = json.loads(lines.pop(number))
        change(row)
        lines.insert(1, json.dumps(row, separators=(",", ":")))
        path.write_text("\n".join(lines) + "\n", "utf-8")

    return make


def _in_place(name: str, put: Callable[[Path], object]) -> Make:
    """A run with something else in place of one of its files."""

    def make(folder: Path, _: Path) -> None:
        _stored(folder, "good")
        path = _stored(folder) / name
        path.unlink(missing_ok=True)
        put(path)

    return make


def _lines(change: Callable[[list[str]], object]) -> Make:
    """A run whose lines were altered, and one that is as it was."""

    def make(folder: Path, _: Path) -> None:
        _stored(folder, "good")
        path = _stored(folder) / "rows.jsonl"
        lines = path.read_text("utf-8").splitlines(keepends=True)
        change(lines)
        path.write_text("".join(lines), "utf-8")

    return make


def _unmasked(row: dict[str, Any]) -> None:
    row["written_ids"] = row["ids"]


def _unbegun(folder: Path, _: Path) -> None:
    path = _stored(folder) / "run.json"
    values = json.loads(path.read_text("utf-8")) | {"state": "stopped", "result": None}
    path.write_text(json.dumps(values), "utf-8")
    (path.parent / "rows.jsonl").write_text("")


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _named(name: bytes) -> Make:
    return lambda folder, _: _stored(folder, name)


SHOW = ("runs", "show", "broken")
RESUME = ("eval", "--resume", "broken")
LIST = ("runs", "list")
CSV = ("runs", "export", "broken", "-o", "{}/out.csv")
JSONL = ("runs", "export", "broken", "--format", "jsonl")
REPORT = ("report", "broken", "-o", "{}/out.html")
COMPARE = ("runs", "compare", "good", "broken")
LINE = "run broken, line 2: "
DELETE_LINE = "delete the line or the run"
FILE = "run broken: run.json: "


def _row_attempts(name: str, change: Change, *words: str) -> list[Attempt]:
    commands = {"show": SHOW, "export": CSV, "go on with": RESUME}
    return [
        Attempt(
            f"{verb} a run where {name}", command, (LINE, DELETE_LINE, *words), make=_row(change)
        )
        for verb, command in commands.items()
    ]


ATTEMPTS: list[Attempt] = [
    *_row_attempts(
        "the losses are null", lambda row: row.update(nll_nats=None), "nll_nats must be a list of"
    ),
    *_row_attempts(
        "an id has 400 digits", lambda row: row.update(id=10**400), "id must be a whole number"
    ),
    *_row_attempts("tokens were written", _unmasked, "written_ids", "step by step"),
    Attempt(
        "show a run with a row twice",
        SHOW,
        ("run broken, line", "repeats text", DELETE_LINE),
        make=_lines(lambda lines: lines.append(lines[0])),
    ),
    Attempt(
        "report on a run that lost its last row",
        REPORT,
        ("run broken measured", "was altered"),
        make=_lines(list.pop),
    ),
    Attempt(
        "export a run onto its own rows",
        ("runs", "export", "broken", "-o", "{}/runs/broken/rows.jsonl"),
        ("part of a stored run",),
        2,
        make=_lines(list.copy),
    ),
    Attempt(
        "report on a rank of 10^30",
        REPORT,
        (LINE, "ranks must be a list of"),
        make=_row(lambda row: row["ranks"].__setitem__(0, 10**30)),
    ),
    Attempt(
        "compare with tokens out of the vocabulary",
        COMPARE,
        (LINE, "whole numbers from 0 to 209"),
        make=_row(lambda row: row["ids"].__setitem__(0, 210)),
    ),
    Attempt(
        "export a loss that is not a number, line by line",
        JSONL,
        (LINE, "with nan in it"),
        make=_row(lambda row: row["nll_nats"].__setitem__(0, float("nan"))),
    ),
    Attempt(
        "show a run with spans beyond its text",
        SHOW,
        (LINE, "spans must be a list of"),
        make=_row(lambda row: row["spans"].__setitem__(0, [0, 10**6])),
    ),
    Attempt(
        "show a run with a line nested 100,000 deep",
        SHOW,
        ("run broken, line 1", "nested too deeply"),
        make=_in_place("rows.jsonl", lambda path: path.write_text("[" * 100_000 + "\n")),
    ),
    Attempt(
        "show a run of a negative vocabulary",
        SHOW,
        (FILE, "model.vocabulary_size must be a whole number", "it was -5", "delete the run"),
        make=_info(lambda info: info["model"].update(vocabulary_size=-5)),
    ),
    Attempt(
        "go on with a run without a vocabulary",
        RESUME,
        (FILE, "model.vocabulary_size is missing"),
        make=_info(lambda info: info["model"].pop("vocabulary_size")),
    ),
    Attempt(
        "compare with a run whose baseline is a text",
        COMPARE,
        (FILE, "baseline must be an object, it was 'x'"),
        make=_info(lambda info: info.update(baseline="x")),
    ),
    Attempt(
        "report on a run whose model's name is a number",
        REPORT,
        (FILE, "model.name must be text"),
        make=_info(lambda info: info["model"].update(name=7)),
    ),
    Attempt(
        "show a run whose versions are a list",
        SHOW,
        (FILE, "versions must be an object, it was a list of 0"),
        make=_info(lambda info: info.update(versions=[])),
    ),
    Attempt(
        "show a run whose protocol is a text",
        SHOW,
        (FILE, "protocol must be a whole number", "it was '2'"),
        make=_info(lambda info: info.update(protocol="2")),
    ),
    Attempt(
        "show a run of a time that there is not",
        SHOW,
        (FILE, "created must be a time", "it was '99999-13-45'"),
        make=_info(lambda info: info.update(created="99999-13-45")),
    ),
    Attempt(
        "show a run whose figure was altered",
        SHOW,
        (FILE, "result.cross_entropy is 0.5, but", "by its mean_nll_nats"),
        make=_info(lambda info: info["result"].update(cross_entropy=0.5)),
    ),
    Attempt(
        "show a run with an unknown metric",
        SHOW,
        ("run broken", "unknown metric 'x'", "delete the run"),
        make=_info(lambda info: info["config"].update(metric="x")),
    ),
    Attempt(
        "list the others beside a run whose result is a list",
        LIST,
        ("good",),
        0,
        _info(lambda info: info.update(result=[1])),
    ),
    Attempt(
        "delete a run that cannot be read",
        ("runs", "delete", "broken", "--yes"),
        ("deleted broken",),
        0,
        _in_place("run.json", lambda path: path.write_bytes(b"\xff" * 9)),
    ),
    Attempt(
        "show a run.json that is a pipe",
        SHOW,
        ("no regular file",),
        1,
        _in_place("run.json", os.mkfifo),
    ),
    Attempt(
        "show rows that are a pipe",
        SHOW,
        ("no regular file",),
        1,
        _in_place("rows.jsonl", os.mkfifo),
    ),
    Attempt(
        "go on with rows that are a folder",
        RESUME,
        ("no regular file",),
        1,
        _in_place("rows.jsonl", Path.mkdir),
    ),
    Attempt(
        "list the others beside rows that are a folder",
        LIST,
        ("good",),
        0,
        _in_place("rows.jsonl", Path.mkdir),
    ),
    Attempt(
        "go on with a run whose lock is a pipe",
        RESUME,
        ("lock is no regular file; delete it",),
        1,
        _in_place("lock", os.mkfifo),
    ),
    Attempt(
        "go on with a run whose lock is a folder",
        RESUME,
        ("lock is no regular file",),
        1,
        _in_place("lock", Path.mkdir),
    ),
    Attempt(
        "go on with a run whose lock is a link to itself",
        RESUME,
        ("lock is no regular file",),
        1,
        _in_place("lock", _loop),
    ),
    Attempt(
        "delete a run whose lock is a pipe",
        ("runs", "delete", "broken", "-y"),
        ("deleted broken",),
        0,
        _in_place("lock", os.mkfifo),
    ),
    Attempt(
        "list runs in a folder whose name is too long",
        LIST,
        ("file name too long", "FILLMASK_UI_RUNS"),
        environment={"FILLMASK_UI_RUNS": "/tmp/" + "a" * 5000},
    ),
    Attempt(
        "list runs in the home of nobody",
        LIST,
        ("FILLMASK_UI_RUNS", "no home folder for ~nosuchuser/runs"),
        environment={"FILLMASK_UI_RUNS": "~nosuchuser/runs"},
    ),
    Attempt(
        "list runs in a file",
        LIST,
        ("not a directory", "FILLMASK_UI_RUNS"),
        make=lambda folder, _: (folder / "runs").write_text(""),
    ),
    Attempt("list a run whose name is not UTF-8", LIST, ("caf\\udce9",), 0, _named(b"caf\xe9")),
    Attempt(
        "show a run whose name is not UTF-8",
        ("runs", "show", "caf"),
        ("caf\\udce9",),
        0,
        _named(b"caf\xe9"),
    ),
    Attempt(
        "report on a run whose name is not UTF-8",
        ("report", "caf", "-o", "{}/caf\udce9.html"),
        ("caf\\udce9.html",),
        0,
        _named(b"caf\xe9"),
    ),
    Attempt(
        "export a run whose name is not UTF-8",
        ("runs", "export", "caf", "-o", "{}/caf\udce9.json"),
        ("records of run caf\\udce9",),
        0,
        _named(b"caf\xe9"),
    ),
    Attempt(
        "delete a run whose name is not UTF-8",
        ("runs", "delete", "caf\\udce9", "-y"),
        ("deleted caf",),
        0,
        _named(b"caf\xe9"),
    ),
    Attempt(
        "delete a run whose name would colour the terminal",
        ("runs", "delete", "\x1b[31mred", "-y"),
        ("deleted ␛[31mred",),
        0,
        _named(b"\x1b[31mred"),
    ),
    Attempt(
        "report on a run into a file whose name would colour the terminal",
        ("report", "\x1b[31mred", "-o", "{}/\x1b[31mred.html"),
        ("␛[31mred.html", "run ␛[31mred"),
        0,
        _named(b"\x1b[31mred"),
    ),
    Attempt(
        "export CSV into a file named as parquet",
        ("runs", "export", "broken", "--format", "csv", "-o", "{}/a.parquet"),
        ("is named as parquet", "csv was asked for"),
        2,
        make=_lines(list.copy),
    ),
    Attempt(
        "export parquet into a device",
        ("runs", "export", "broken", "--format", "parquet", "-o", "/dev/null"),
        ("/dev/null is a pipe or a device", "parquet needs a file"),
        2,
        make=_lines(list.copy),
    ),
    Attempt(
        "report on a run that stopped before its first text",
        REPORT,
        ("run broken has measured no text yet", "--resume broken"),
        make=_unbegun,
    ),
    Attempt(
        "delete a run that is a link",
        ("runs", "delete", "link", "-y"),
        ("link is a link to another folder", "remove the link"),
        make=lambda folder, _: (folder / "runs" / "link").symlink_to(_stored(folder)),
    ),
    Attempt(
        "list a broken run alone",
        LIST,
        ("no runs that can be read",),
        0,
        make=lambda folder, _: (_stored(folder) / "run.json").write_text("{"),
    ),
    Attempt(
        "show a run with a run.json of 3 GB",
        SHOW,
        ("run broken", "more than 16,777,216 bytes"),
        make=lambda folder, _: os.truncate(_stored(folder) / "run.json", 3 << 30),
    ),
]
