"""How fast this machine runs a model, also beside what is usually used instead.

Every contender has a process of its own, so that none disturbs the threads of another. They are
asked in turn, round by round, so that a machine that slows down slows all of them. Run it on a
machine that does nothing else:

    python benchmarks/speed.py --peers > speed.md
"""

import argparse
import importlib.util
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from contenders import CROSS_ENTROPY, PEERS, PSEUDO_PERPLEXITY, FillmaskModel, Timing

from fillmask_ui.features.quantize.timing import timed
from fillmask_ui.models.runtime_model import cpu_features
from fillmask_ui.texts import TextSource, open_texts

LENGTHS = (8, 32, 128, 512)  # tokens of one sentence
PSEUDO_SHARE = 25  # one text in so many is also measured by pseudo-perplexity
SENTENCE_CALLS = 10  # of a turn, after one that warms the caches
PACKAGES = ("fillmask-ui", "onnxruntime", "numpy", "torch", "transformers")

_contender: Any = None  # of a process of a contender, once it has loaded


@dataclass
class Row:
    """One contender at one task."""

    task: str
    contender: str
    unit: str  # `tokens/s`, of which more is better; `ms`, `s` and `MB`, of which less is
    values: list[float] = field(default_factory=list)  # run by run
    loss: float | None = None  # in nats

    def ratio(self, rival: "Row") -> float:
        """How many times faster, or smaller, this one is.

        >>> Row("sentence", "a", "ms", [2.0]).ratio(Row("sentence", "b", "ms", [6.0]))
        3.0
        """
        quotient = median(self.values) / median(rival.values)
        return quotient if self.unit == "tokens/s" else 1 / quotient

    @property
    def spread(self) -> float:
        """Interquartile range of the runs."""
        low, high = np.percentile(self.values, [25, 75])
        return float(high - low)


class ContenderProcess:
    """A process that has loaded one contender."""

    def __init__(self, stack: ExitStack, kind: str, *arguments: str | None) -> None:
        pool = ProcessPoolExecutor(1, get_context("spawn"))
        self._pool = stack.enter_context(pool)
        # From the start of Python to the loaded model, with all imports.
        loading = timed(lambda: self._pool.submit(_load, kind, arguments).result(), 1)
        (self.load_seconds,), self.tasks = loading

    def ask(self, method: str, *arguments: Any) -> Any:
        """What a method of the contender returns."""
        return self._pool.submit(_call, method, arguments).result()

    def peak_bytes(self) -> int:
        return self._pool.submit(_peak_bytes).result()


def _load(kind: str, arguments: Sequence[str | None]) -> tuple[str, ...]:
    """The tasks that the contender of this process can do."""
    global _contender  # noqa: PLW0603 - the process is that of this contender
    _contender = PEERS.get(kind, FillmaskModel)(*arguments)
    return _contender.tasks


def _call(method: str, arguments: Sequence[Any]) -> Any:
    return getattr(_contender, method)(*arguments)


def _peak_bytes() -> int:
    """The most memory that this process has held. Linux alone tells it."""
    status = Path("/proc/self/status").read_text("utf-8")
    # Not `ru_maxrss`, which begins with what the parent process held.
    return 1024 * int(re.findall(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE)[0])


def start(stack: ExitStack, models: Sequence[str], peers: bool) -> dict[str, ContenderProcess]:
    """A process for each contender: the models, and their weights on PyTorch with the peers."""
    processes = {model: ContenderProcess(stack, "model", model) for model in models}
    if peers:
        weights = models[0]
        for dtype in ("float32", "bfloat16"):
            name = f"{weights}, PyTorch {dtype}"
            processes[name] = ContenderProcess(stack, "model", weights, "torch", dtype)
        for name in PEERS:
            if name != "minicons" or importlib.util.find_spec("minicons"):
                processes[name] = ContenderProcess(stack, name, weights)
    return processes


def measure(
    processes: dict[str, ContenderProcess], texts: Sequence[str], rounds: int
) -> Iterator[Row]:
    """A row of each contender at each of its tasks."""
    for task, chosen in ((CROSS_ENTROPY, texts), (PSEUDO_PERPLEXITY, texts[::PSEUDO_SHARE])):
        rows = [Row(task, name, "tokens/s") for name in processes if task in processes[name].tasks]
        for number in range(rounds + 1):
            for row in rows:
                timing: Timing = processes[row.contender].ask("evaluation", chosen, task)
                if number:  # the first round fills caches
                    row.values.append(timing.tokens / timing.seconds)
                    row.loss = timing.loss
        yield from rows
    for tokens in LENGTHS:
        task = f"one sentence of {tokens} tokens"
        rows = [Row(task, name, "ms") for name in processes if "sentence" in processes[name].tasks]
        for _ in range(rounds):
            for row in rows:
                calls = [
                    processes[row.contender].ask("sentence", texts, tokens)
                    for _ in range(1 + SENTENCE_CALLS)
                ]
                row.values += [1000 * call.seconds for call in calls[1:] if call]
                row.loss = calls[0].loss if calls[0] else None
        yield from (row for row in rows if row.values)
    for name, process in processes.items():
        yield Row("load", name, "s", [process.load_seconds])
    for name, process in processes.items():
        yield Row("peak memory", name, "MB", [process.peak_bytes() / 1e6])


def markdown(rows: Sequence[Row]) -> Iterator[str]:
    """A table for each task, with ratios to its last contender."""
    for task in dict.fromkeys(row.task for row in rows):
        of_task = [row for row in rows if row.task == task]
        rival = of_task[-1]
        yield f"\n### {task.capitalize()}\n"
        ratio = f"ratio to {rival.contender}"
        yield f"| contender | median ({rival.unit}) | spread | loss (nats) | {ratio} |"
        yield "| :-- | --: | --: | --: | --: |"
        for row in of_task:
            loss = "" if row.loss is None else f"{row.loss:.5f}"
            figures = (
                f"{median(row.values):,.4g} | {row.spread:.3g} | {loss} | {row.ratio(rival):.2f}"
            )
            yield f"| {row.contender} | {figures} |"


def machine() -> str:
    """The processor and its features, Python and the versions of libraries."""
    cpuinfo = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.+)", cpuinfo.read_text()) if cpuinfo.is_file() else []
    installed = {own.name: own.version for own in metadata.distributions()}
    versions = [f"{name} {installed[name]}" for name in PACKAGES if name in installed]
    processor = f"{names[0] if names else 'unknown processor'}, {len(names) or '?'} cores"
    return f"{processor} ({', '.join(cpu_features())}); {', '.join(versions)}"


def main() -> None:
    """Print a table for each task as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=["embedded", "embedded:int8"])
    parser.add_argument("--peers", action="store_true", help="also measure what is usually used")
    parser.add_argument("--file", help="texts, one per line; embedded ones by default")
    parser.add_argument("--samples", type=int, default=200, help="texts to measure on")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    source = TextSource(samples=options.samples)
    if options.file:
        source = TextSource("file", options.file, samples=options.samples, format="txt")
    with open_texts(source) as opened:
        texts = [example.text for example in opened if example.text.strip()]
    with ExitStack() as stack:
        processes = start(stack, options.models, options.peers)
        rows = list(measure(processes, texts, options.rounds))
    sys.stdout.write("\n".join([machine(), *markdown(rows), ""]))


if __name__ == "__main__":
    main()
