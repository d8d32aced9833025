"""What the engine costs on this machine: speed of two workers, cost to one process, driver memory.

python tests/cluster/measure.py FILE.txt  prints a table; FILE has 4,096 lines or more.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

from fillmask_ui.cluster import EngineChoice, open_engine
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.models import load_choice
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.runs import Plan, RunStore, perform
from fillmask_ui.texts import TextSource


def plan(file: Path, model: str, samples: int) -> Plan:
    source = TextSource("file", str(file), samples=samples, shuffle=False)
    return Plan(ModelChoice(model, threads=1), None, EvaluationConfig(batch_tokens=512), source)


def seconds_on(workers: int, what: Plan) -> float:
    """From the first stored row to the last of a run: all workers have the model by then."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_engine(EngineChoice("ray", workers=workers)) as engine,
    ):
        begun, stored = 0.0, 0
        for step in perform(what, RunStore(Path(folder)), load_choice, engine):
            if not begun and step.tokens:
                begun, stored = time.perf_counter(), step.tokens
        return (time.perf_counter() - begun) * step.tokens / (step.tokens - stored)


def speed(file: Path, model: str, rounds: int) -> None:
    """One worker and two, in turn."""
    what = plan(file, model, 4096)
    spent: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for workers, times in spent.items():
            times.append(seconds_on(workers, what))
    ratios = [one / two for one, two in zip(*spent.values(), strict=True)]
    print(f"{model}: two workers are {statistics.median(ratios):.2f} times as fast as one", ratios)


DRIVER = """
import resource, sys
from pathlib import Path
from fillmask_ui.cluster import EngineChoice, open_engine
from fillmask_ui.models import load_choice
from fillmask_ui.runs import RunStore, perform
sys.path.insert(0, sys.argv[1])
from measure import plan
with open_engine(EngineChoice("ray", workers=2)) as engine:
    for step in perform(plan(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])),
                        RunStore(Path(sys.argv[5])), load_choice, engine):
        pass
print(step.info.state, step.running.seen, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def memory(file: Path, model: str, texts: int) -> float:
    """Largest resident size of the driver, in MiB, while it evaluates so many texts."""
    with tempfile.TemporaryDirectory() as folder:
        many = Path(folder) / "texts.txt"
        with file.open() as lines, many.open("w") as out:
            out.writelines(islice(cycle(lines.readlines()), texts))
        here = str(Path(__file__).parent)
        command = [sys.executable, "-c", DRIVER, here, str(many), model, str(texts), folder]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        assert said[-3:-1] == ["done", str(texts)], said
        return float(said[-1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--texts", type=int, default=200_000)
    parser.add_argument("--only", choices=["speed", "memory"])
    asked = parser.parse_args()
    if asked.only != "memory":
        speed(asked.file, asked.model, asked.rounds)
    if asked.only != "speed":
        few, many = (memory(asked.file, asked.model, texts) for texts in (2_000, asked.texts))
        print(
            f"driver: {few:.0f} MiB for 2,000 texts, {many:.0f} MiB for {asked.texts:,}: "
            f"{many / few:.2f} times"
        )
