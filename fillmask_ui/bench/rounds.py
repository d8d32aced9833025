"""The benchmark: every contender in its own process, all asked in turn, round by round; medians.

Interleaved, so that a machine that slows down slows all of them; a single run at a time, as the
clock of each would else count the others.
"""

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fillmask_ui.bench.contender_process import ContenderProcess
from fillmask_ui.bench.contenders import BenchConfig, Contender, lineup
from fillmask_ui.bench.machine import LIBRARIES, SHAPES, machine
from fillmask_ui.bench.timing import Timing
from fillmask_ui.errors import FillmaskError
from fillmask_ui.records import Progress
from fillmask_ui.texts import open_texts

LENGTHS = (8, 32, 128, 512)  # tokens of one sentence
CROSS_ENTROPY, PSEUDO_PERPLEXITY = "cross-entropy", "pseudo-perplexity"
SHARE = "share of the matrix-product rate, cross-entropy"
PRODUCTS = Contender("matrix products", Path(), works=())
_LEAST_CALLS = 3  # of one sentence, however long they take
_SENTENCE_STEPS = 10  # of the progress
_WARM_SHARE = 20  # of the texts, the longest are run once before any clock starts
_SPEEDS = ("tokens/s", "GFLOP/s", "share")  # more is better; of ms, s and MB less


@dataclass
class Row:
    """One contender at one work."""

    work: str
    subject: str
    unit: str
    peer: bool = False  # whether it is something else than this project
    values: list[float] = field(default_factory=list)  # run by run
    loss: float | None = None  # mean NLL of the hidden tokens, or of the first candidate, in nats
    error: str | None = None  # why it was not measured, or not to the end
    # contender -> how many times faster, or smaller, this one is
    ratios: dict[str, float] = field(default_factory=dict)

    def _percentile(self, share: float) -> float | None:
        return float(np.percentile(self.values, share)) if self.values else None

    @property
    def median(self) -> float | None:
        """None if it failed before the first run ended."""
        return self._percentile(50)

    @property
    def spread(self) -> float | None:
        """Interquartile range of the runs; None for a single one."""
        low, high = self._percentile(25), self._percentile(75)
        return None if low is None or high is None or len(self.values) < 2 else high - low

    @property
    def p95(self) -> float | None:
        """Of the time of one sentence."""
        return self._percentile(95) if self.unit == "ms" else None

    @property
    def p99(self) -> float | None:
        return self._percentile(99) if self.unit == "ms" else None

    def add(self, timing: Timing) -> None:
        self.loss = timing.loss
        for seconds in timing.seconds:
            speed = timing.amount / seconds
            own = {"ms": 1e3 * seconds, "GFLOP/s": speed / 1e9}.get(self.unit, speed)
            self.values.append(own)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values; percentiles and the error only if there are any."""
        names = ("work", "subject", "median", "unit", "spread", "loss", "ratios")
        rare = {name: getattr(self, name) for name in ("p95", "p99", "error")}
        known = {name: value for name, value in rare.items() if value is not None}
        return {name: getattr(self, name) for name in names} | known


def compared(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Those that were measured or failed, with their ratios.

    >>> own, other = Row("w", "a", "ms", values=[2.0]), Row("w", "b", "ms", values=[6.0])
    >>> compared([own, other])[0].ratios
    {'b': 3.0}
    """
    medians: dict[str, dict[str, float]] = {}  # work -> contender -> median
    for row in rows:
        if row.median is not None:
            medians.setdefault(row.work, {})[row.subject] = row.median
    for row in rows:
        others = dict(medians.get(row.work, {}))
        if own := others.pop(row.subject, None):
            faster = row.unit in _SPEEDS
            row.ratios = {k: own / v if faster else v / own for k, v in others.items()}
    return tuple(row for row in rows if row.values or row.error)


@dataclass(frozen=True)
class Report:
    """What `fillmask-ui bench` found."""

    machine: dict[str, Any]
    rows: tuple[Row, ...]  # by work
    notes: tuple[str, ...] = ()  # what a reader should know

    def to_dict(self) -> dict[str, Any]:
        return {"machine": self.machine, "rows": [row.to_dict() for row in self.rows]}


@dataclass
class _Task:
    process: str
    method: str
    arguments: dict[str, Any]
    row: Row
    operations: float | None = None  # per unit of the work, if known


def run_bench(config: BenchConfig) -> Generator[Progress | Report]:
    """Measure; the report comes last, in which what failed has rows that say why.

    Raises:
        FillmaskError: if a model or the texts cannot be read, or nothing can be measured.
    """
    found = lineup(config)
    with open_texts(config.source()) as source:
        texts = [example.text for example in source if example.text.strip()]
    with closing(_Bench(config, found.contenders, texts)) as bench:
        yield from bench.steps()
        yield bench.report(found.notes)


class _Bench:
    def __init__(
        self, config: BenchConfig, contenders: Sequence[Contender], texts: Sequence[str]
    ) -> None:
        self._effort, self._contenders, self._texts = config.effort, contenders, texts
        self._processes: dict[str, ContenderProcess] = {}
        self._rows: list[Row] = []
        self._errors: dict[str, str] = {}  # of the contenders that failed
        self._cross_entropy = self._tasks(CROSS_ENTROPY, "tokens/s", "evaluation", CROSS_ENTROPY)
        for shape, library in product(SHAPES, LIBRARIES):  # what it is held against
            row = self._row("matrix product {}x{}x{}".format(*shape), PRODUCTS, "GFLOP/s", library)
            asked: dict[str, Any] = {"library": library, "shape": shape}
            self._cross_entropy.append(_Task(PRODUCTS.name, "product", asked, row))
        self._one_by_one = self._tasks(
            PSEUDO_PERPLEXITY, "tokens/s", "evaluation", PSEUDO_PERPLEXITY
        )
        self._sentences = {}
        for tokens in LENGTHS:
            work, asked = f"one sentence of {tokens} tokens", {"texts": texts, "tokens": tokens}
            self._sentences[work] = [
                *self._tasks(work, "ms", "sentence", "sentence", **asked),
                *self._tasks(work, "ms", "call_alone", "bare call", **asked),
            ]
        evaluations = len(self._cross_entropy) + len(self._one_by_one)
        self._done, self._total = 0.0, self._effort.loads * len(contenders)
        self._total += (1 + self._effort.rounds) * evaluations + _SENTENCE_STEPS * len(LENGTHS)

    def _row(self, work: str, own: Contender, unit: str, subject: str = "") -> Row:
        self._rows.append(Row(work, subject or own.name, unit, bool(own.peer)))
        return self._rows[-1]

    def _tasks(self, work: str, unit: str, method: str, kind: str, **asked: Any) -> list[_Task]:
        """A task of each contender that can do works of a kind."""
        if method == "evaluation":
            asked = {"metric": work}
        prefix = "bare call, " if kind == "bare call" else ""
        return [
            _Task(own.name, method, asked, self._row(work, own, unit, f"{prefix}{own.name}"))
            for own in self._contenders
            if kind in own.works
        ]

    def steps(self) -> Iterator[Progress]:
        """All works, from starting the processes."""
        last = self._effort.rounds + 1
        yield from self._start()
        yield from self._evaluate(self._texts, self._cross_entropy, range(2))
        for own in self._contenders:
            if CROSS_ENTROPY in own.works and own.name not in self._errors:
                most = self._processes[own.name].ask("peak_bytes")
                self._row("peak memory", own, "MB").values += [most / 1e6] if most else []
        yield from self._evaluate(self._texts, self._cross_entropy, range(2, last))
        fewer = self._texts[:: self._effort.share]
        yield from self._evaluate(fewer, self._one_by_one, range(last))
        for work, tasks in self._sentences.items():
            yield from self._time_sentences(work, tasks)

    def report(self, notes: tuple[str, ...]) -> Report:
        """All rows: evaluations, sentences, what a process takes, products."""
        rate = max(row.median for row in self._rows if row.median and row.unit == "GFLOP/s")
        for task in self._cross_entropy:
            if task.operations:
                own = task.row
                shares = [speed * task.operations / (1e9 * rate) for speed in own.values]
                self._rows.append(Row(SHARE, own.subject, "share", own.peer, shares, own.loss))
        features = [process.loaded["cpu_features"] for process in self._processes.values()]
        here = {**machine(), "features": next(filter(None, features), []), "gflops": rate}
        works, units = (CROSS_ENTROPY, SHARE, PSEUDO_PERPLEXITY), ("ms", "s", "MB", "GFLOP/s")
        places = {name: place for place, name in enumerate((*works, *units))}
        self._rows.sort(key=lambda row: places.get(row.work, places.get(row.unit, 0)))
        return Report(here, compared(self._rows), notes)

    def _start(self) -> Iterator[Progress]:
        """Start every process several times; the last ones stay."""
        loading = [self._row("load time", own, "s") for own in self._contenders]
        limits: dict[Path, int] = {}  # by the folder of the weights, that of the own model
        for number in range(1, self._effort.loads + 1):
            for contender, row in zip(self._contenders, loading, strict=True):
                yield self._step("loading")
                if contender.name in self._errors:
                    continue
                try:
                    process = ContenderProcess(contender, limits.get(contender.folder))
                except FillmaskError as error:
                    row.error = self._fail(contender.name, error)
                    continue
                row.values.append(process.loaded["seconds"])
                limits.setdefault(contender.folder, process.loaded["max_tokens"])
                if number < self._effort.loads:
                    process.close()
                else:
                    self._processes[contender.name] = process
        self._processes[PRODUCTS.name] = ContenderProcess(PRODUCTS)

    def close(self) -> None:
        for process in self._processes.values():
            process.close()

    def _evaluate(
        self, texts: Sequence[str], tasks: Sequence[_Task], rounds: range
    ) -> Iterator[Progress]:
        """Rounds over the texts; round 0 is over the longest and does not count."""
        longest = sorted(texts, key=len)[-max(1, len(texts) // _WARM_SHARE) :]
        for number in rounds:
            for task in tasks:
                yield self._step(tasks[0].row.work)
                given = texts if number else longest
                more = {} if task.method == "product" else {"texts": given}
                timing = self._ask(task, **more)
                if number and timing:
                    task.row.add(timing)
                    if timing.operations:
                        task.operations = timing.operations / timing.amount

    def _time_sentences(self, what: str, tasks: Sequence[_Task]) -> Iterator[Progress]:
        """Turns of a few calls each until there are enough, or the time is over."""
        before, effort, able = self._done, self._effort, list(tasks)
        start, fraction = time.perf_counter(), 0.0
        while able and fraction < 1:
            yield self._step(what, 0)
            for task in able.copy():
                if timing := self._ask(task):
                    task.row.add(timing)
                else:
                    able.remove(task)
            fewest = min((len(task.row.values) for task in able), default=effort.calls)
            spent = min(fewest / _LEAST_CALLS, (time.perf_counter() - start) / effort.seconds)
            fraction = min(1.0, max(fewest / effort.calls, spent))
            self._done = before + fraction * _SENTENCE_STEPS
        self._done = before + _SENTENCE_STEPS

    def _ask(self, task: _Task, **more: Any) -> Timing | None:
        """The answer of a contender; None if it has none, or has failed now or before."""
        if task.process not in self._errors:
            try:
                process = self._processes[task.process]
                timing: Timing | None = process.ask(task.method, **task.arguments, **more)
                return timing
            except FillmaskError as error:
                self._fail(task.process, error)
        task.row.error = self._errors[task.process]
        return None

    def _fail(self, name: str, error: FillmaskError) -> str:
        """Go on without a contender, unless nothing is measured and none is left."""
        self._errors[name] = str(error)
        measured = any(row.values for row in self._rows if row.unit not in ("s", "GFLOP/s"))
        if name == PRODUCTS.name or not (measured or len(self._errors) < len(self._contenders)):
            raise error
        return str(error)

    def _step(self, message: str, count: int = 1) -> Progress:
        self._done += count
        return Progress(message, self._done / self._total)
