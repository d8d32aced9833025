"""Ray on this machine, started once for the tests of a file."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fillmask_ui.models import load_choice
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.runs import Plan, Run, RunProgress, RunStore, perform
from fillmask_ui.runs.engines import EngineChoice, open_engine
from fillmask_ui.texts import TextSource

TEXTS = 1500
SENTENCE = "the old man saw a red house by the river and walked on in the cold rain of spring"


def write_texts(path: Path, count: int, first: int = 0) -> Path:
    """A line each, of different lengths, one in fifty blank."""
    words_of, lines = SENTENCE.split(), []
    for number in range(first, first + count):
        size = 3 + number * 7 % 23
        words = [words_of[(number * number + place) % len(words_of)] for place in range(size)]
        lines.append("" if number % 50 == 49 else " ".join(words).capitalize() + ".")
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    with open_engine(EngineChoice("ray", workers=2)) as engine:
        yield engine


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


@pytest.fixture
def plan(tmp_path: Path, tiny_models: Any) -> Plan:
    path = write_texts(tmp_path / "texts.txt", TEXTS)
    return Plan(ModelChoice(str(tiny_models.folder("bert"))), source=TextSource("file", str(path)))


def measured(plan: Plan, store: RunStore, engine: Any = None) -> Run:
    """A run to its end."""
    *_, last = perform(plan, store, load_choice, engine)
    assert isinstance(last, RunProgress)
    return store.open(last.info.name)


def rows_of(run: Run) -> dict[int, Any]:
    """Each row as it is stored, by id; no id twice."""
    lines = (run.folder / "rows.jsonl").read_bytes().splitlines()
    rows = {row["id"]: row for row in map(json.loads, lines)}
    assert len(rows) == len(lines)
    return rows


def assert_close(found: Any, expected: Any, size: float = 1e-3) -> None:
    """Equal but for the rounding of float32, which depends on the batch that a text shares."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            assert_close(found[key], expected[key], size)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for pair in zip(found, expected, strict=True):
            assert_close(*pair, size)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=size, abs=1e-5)
    else:
        assert found == expected


def assert_same(run: Run, other: Run) -> None:
    """Rows, figures, what was measured; figures are those of the rows that were stored."""
    assert run.state == other.state == "done"
    assert_close(rows_of(run), rows_of(other))
    assert_close(run.info.result["mean_nll_nats"], other.info.result["mean_nll_nats"], 1e-6)
    assert_close(run.info.result["texts"], other.info.result["texts"])
    assert_close(run.info.result, run.summary().to_dict(), 1e-12)
    assert run.info.config == other.info.config
    texts, others = ({**each.info.texts} for each in (run, other))
    # One process does not know it of a file that it has not read to its end at its first batch.
    known = {texts.pop("available"), others.pop("available")}
    assert len(known - {None}) <= 1
    assert texts == others
    assert run.info.notes == other.info.notes
    assert run.info.signature == other.info.signature


def processes(name: str, of: int | None = None) -> list[int]:
    """Ids of live processes whose command has a name in it; of one process and those below it."""
    command = ["ps", "-eo", "stat,pid,ppid,args"]
    listed = subprocess.run(command, capture_output=True, text=True).stdout
    rows = [line.split(None, 3) for line in listed.splitlines()[1:]]
    alive = {int(pid): (int(above), args) for state, pid, above, args in rows if state[0] != "Z"}

    def chain(pid: int) -> Iterator[int]:
        while pid in alive:
            yield pid
            pid = alive[pid][0]

    named = [pid for pid, (_, args) in alive.items() if name in args]
    return [pid for pid in named if of in (None, *chain(pid))]


def workers_of_this_process() -> list[int]:
    """Processes that hold a model."""
    return processes("ray::Worker", os.getpid())


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def wait_for(condition: Any, seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)
