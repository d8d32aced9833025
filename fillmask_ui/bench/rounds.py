"""The benchmark: every contender in its own process, all asked in turn, round by round; medians.

Interleaved, so that a machine that slows down slows all of them; a single run at a time, as the
clock of each would else count the others.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from fillmask_ui.bench.contender_process import ContenderProcess
from fillmask_ui.bench.contenders import OWN, BenchConfig, Contender, lineup
from fillmask_ui.bench.machine import LIBRARIES, SHAPES, machine
from fillmask_ui.errors import FillmaskError
from fillmask_ui.texts import open_texts

LENGTHS = (8, 32, 128, 512)  # tokens of one sentence
CROSS_ENTROPY, PSEUDO_PERPLEXITY = "cross-entropy", "pseudo-perplexity"
SHARE = "share of the matrix-product rate, cross-entropy"
PRODUCTS = "matrix products"
_LEAST_CALLS = 3  # of one sentence, however long they take
_SENTENCE_STEPS = 10  # of the progress
_WARM_SHARE = 20  # of the texts, the longest are run once before any clock starts
_SPEEDS = ("tokens/s", "GFLOP/s", "share")  # of these more is better, of others (ms, s, MB) less


@dataclass
class Samples:
    """What one contender took for one work, run by run."""

    work: str
    subject: str
    unit: str
    peer: bool = False  # whether it is something else than this project
    values: list[float] = field(default_factory=list)
    loss: float | None = None  # in nats; the same for all that did the same
    error: str | None = None  # why it was not measured, or not to the end


@dataclass(frozen=True)
class Row:
    """One contender at one work."""

    work: str
    subject: str
    median: float | None  # None if it failed before the first run ended
    unit: str
    spread: float | None = None  # interquartile range of the runs; None for a single one
    loss: float | None = None  # mean NLL of the hidden tokens, or of the first candidate, in nats
    # contender -> how many times faster, or smaller, this one is
    ratios: dict[str, float] = field(default_factory=dict)
    p95: float | None = None  # of the time of one sentence
    p99: float | None = None
    error: str | None = None  # why it failed
    peer: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values; percentiles and the error where there are some."""
        values = asdict(self)
        del values["peer"]
        rare = ("p95", "p99", "error")
        return {key: own for key, own in values.items() if key not in rare or own is not None}


@dataclass(frozen=True)
class Report:
    """What `fillmask-ui bench` found."""

    machine: dict[str, Any]
    rows: tuple[Row, ...]  # by work
    notes: tuple[str, ...] = ()  # what a reader should know

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return {"machine": self.machine, "rows": [row.to_dict() for row in self.rows]}


def rows_of(samples: Sequence[Samples]) -> tuple[Row, ...]:
    """A row for all that were measured or failed, in their order.

    >>> own, other = Samples("w", "a", "ms", values=[2.0]), Samples("w", "b", "ms", values=[6.0])
    >>> rows_of([own, other])[0].ratios
    {'b': 3.0}
    """
    medians: dict[str, dict[str, float]] = {}  # work -> contender -> median
    for one in samples:
        if one.values:
            medians.setdefault(one.work, {})[one.subject] = float(np.median(one.values))
    rows = []
    for one in samples:
        about: dict[str, Any] = {"unit": one.unit, "error": one.error, "peer": one.peer}
        if one.values:
            others = dict(medians[one.work])
            own = others.pop(one.subject)
            low, high, p95, p99 = np.percentile(one.values, [25, 75, 95, 99]).tolist()
            faster = one.unit in _SPEEDS
            about |= {"ratios": {k: own / v if faster else v / own for k, v in others.items()}}
            about |= {"loss": one.loss, "spread": high - low if len(one.values) > 1 else None}
            if one.unit == "ms":
                about |= {"p95": p95, "p99": p99}
            rows.append(Row(one.work, one.subject, own, **about))
        elif one.error is not None:
            rows.append(Row(one.work, one.subject, None, **about))
    return tuple(rows)


@dataclass(frozen=True)
class Step:
    """How far a benchmark is."""

    done: float
    total: int
    what: str  # that is measured now
    report: Report | None = None  # at the end


@dataclass
class Entry:
    """One work that one process is asked for."""

    process: str
    task: str
    arguments: dict[str, Any]
    samples: Samples
    operations: float | None = None  # per unit of the work, where they are known


def run_bench(config: BenchConfig) -> Generator[Step]:
    """Measure; the last step has the report, in which what failed has rows that say why.

    Raises:
        FillmaskError: if a model or the texts cannot be read, or nothing can be measured.
    """
    found = lineup(config)
    with open_texts(config.source()) as source:
        texts = [example.text for example in source if example.text.strip()]
    with ExitStack() as stack:
        bench = Bench(config, found.contenders, texts, stack)
        yield from bench.steps()
        yield Step(bench.total, bench.total, "done", bench.report(found.notes))


class Bench:
    """One benchmark under way."""

    def __init__(
        self,
        config: BenchConfig,
        contenders: Sequence[Contender],
        texts: Sequence[str],
        stack: ExitStack,
    ) -> None:
        self._effort, self._contenders, self._texts = config.effort, contenders, texts
        self._stack = stack  # which ends the processes
        self._processes: dict[str, ContenderProcess] = {}
        self._samples: list[Samples] = []
        self._errors: dict[str, str] = {}  # of the contenders that failed
        self._cross_entropy = [*self._evaluations(CROSS_ENTROPY), *self._products()]
        self._one_by_one = self._evaluations(PSEUDO_PERPLEXITY)
        self._sentences = {tokens: self._one_sentence(tokens) for tokens in LENGTHS}
        evaluations = len(self._cross_entropy) + len(self._one_by_one)
        self._done, self.total = 0.0, self._effort.loads * len(contenders)
        self.total += (1 + self._effort.rounds) * evaluations + _SENTENCE_STEPS * len(LENGTHS)

    def steps(self) -> Iterator[Step]:
        """All works, from starting the processes."""
        yield from self._start()
        yield from self._evaluate(self._texts, self._cross_entropy)
        yield from self._evaluate(self._texts[:: self._effort.share], self._one_by_one)
        for tokens, entries in self._sentences.items():
            yield from self._time_sentences(f"one sentence of {tokens} tokens", entries)

    def report(self, notes: tuple[str, ...]) -> Report:
        """All rows: evaluations, sentences, what a process takes, products."""
        products = [row for row in rows_of(self._samples) if row.unit == "GFLOP/s"]
        rate = max(row.median for row in products if row.median)
        for entry in self._cross_entropy:
            own = entry.samples
            if entry.operations:
                shares = [speed * entry.operations / (1e9 * rate) for speed in own.values]
                shared = Samples(SHARE, own.subject, "share", own.peer, shares, own.loss)
                self._samples.append(shared)
        features = [process.loaded["cpu_features"] for process in self._processes.values()]
        here = {**machine(), "features": next(filter(None, features), []), "gflops": rate}
        works, units = (CROSS_ENTROPY, SHARE, PSEUDO_PERPLEXITY), ("ms", "s", "MB", "GFLOP/s")
        places = {name: place for place, name in enumerate((*works, *units))}
        rows = rows_of(self._samples)
        ordered = sorted(rows, key=lambda row: places.get(row.work, places.get(row.unit, 0)))
        return Report(here, tuple(ordered), notes)

    def _sample(self, work: str, contender: Contender, unit: str, prefix: str = "") -> Samples:
        name = f"{prefix}{contender.name}"
        self._samples.append(Samples(work, name, unit, peer=contender.kind != OWN))
        return self._samples[-1]

    def _evaluations(self, metric: str) -> list[Entry]:
        return [
            Entry(own.name, "evaluation", {"metric": metric}, self._sample(metric, own, "tokens/s"))
            for own in self._contenders
            if metric in own.works
        ]

    def _products(self) -> list[Entry]:
        """What the cross-entropy is held against."""
        entries = []
        for shape in SHAPES:
            for library in LIBRARIES:
                samples = Samples("matrix product {}x{}x{}".format(*shape), library, "GFLOP/s")
                self._samples.append(samples)
                asked = {"library": library, "shape": shape}
                entries.append(Entry(PRODUCTS, "product", asked, samples))
        return entries

    def _one_sentence(self, tokens: int) -> list[Entry]:
        work, asked = f"one sentence of {tokens} tokens", {"texts": self._texts, "tokens": tokens}
        able = [own for own in self._contenders if "sentence" in own.works]
        texts_in = [
            Entry(own.name, "sentence", asked, self._sample(work, own, "ms")) for own in able
        ]
        alone = [
            Entry(own.name, "call_alone", asked, self._sample(work, own, "ms", "bare call, "))
            for own in able
            if own.kind == OWN
        ]
        return [*texts_in, *alone]

    def _start(self) -> Iterator[Step]:
        """Start every process several times; the last ones stay."""
        loading = [self._sample("load time", own, "s") for own in self._contenders]
        limits: dict[object, int] = {}  # by the folder of the weights, that of the own model
        for number in range(1, self._effort.loads + 1):
            for contender, samples in zip(self._contenders, loading, strict=True):
                yield self._step(f"loading {contender.name}")
                if contender.name in self._errors:
                    continue
                request = contender.request(limits.get(contender.folder))
                try:
                    process = ContenderProcess(contender.name, request)
                except FillmaskError as error:
                    samples.error = self._fail(contender.name, error)
                    continue
                samples.values.append(process.loaded["seconds"])
                limits.setdefault(contender.folder, process.loaded["max_tokens"])
                if number < self._effort.loads:
                    process.close()
                else:
                    self._keep(contender.name, process)
        self._keep(PRODUCTS, ContenderProcess(PRODUCTS, {"kind": "products"}))

    def _keep(self, name: str, process: ContenderProcess) -> None:
        self._stack.callback(process.close)
        self._processes[name] = process

    def _evaluate(self, texts: Sequence[str], entries: Sequence[Entry]) -> Iterator[Step]:
        """Rounds over the texts; the processes' peak memory after the first of them."""
        longest = sorted(texts, key=len)[-max(1, len(texts) // _WARM_SHARE) :]
        for number in range(self._effort.rounds + 1):
            for entry in entries:
                yield self._step(f"{entry.samples.work}: {entry.samples.subject}")
                given = {} if entry.task == "product" else {"texts": texts if number else longest}
                timing = self._ask(entry, **given)
                if number and timing:
                    _note(entry, timing)
            if number == 1 and entries is self._cross_entropy:
                for own in self._contenders:
                    if CROSS_ENTROPY in own.works and own.name not in self._errors:
                        most = self._processes[own.name].ask("peak_bytes")
                        if most:
                            self._sample("peak memory", own, "MB").values.append(most / 1e6)

    def _time_sentences(self, what: str, entries: Sequence[Entry]) -> Iterator[Step]:
        """Turns of a few calls each until there are enough, or the time is over."""
        before, effort, able = self._done, self._effort, list(entries)
        start, fraction = time.perf_counter(), 0.0
        while able and fraction < 1:
            yield self._step(what, 0)
            for entry in able.copy():
                if timing := self._ask(entry):
                    _note(entry, timing)
                else:
                    able.remove(entry)
            fewest = min((len(entry.samples.values) for entry in able), default=effort.calls)
            spent = min(fewest / _LEAST_CALLS, (time.perf_counter() - start) / effort.seconds)
            fraction = min(1.0, max(fewest / effort.calls, spent))
            self._done = before + fraction * _SENTENCE_STEPS
        self._done = before + _SENTENCE_STEPS

    def _ask(self, entry: Entry, **more: Any) -> Any:
        """The answer of a contender; None if it has none, or has failed now or before."""
        if entry.process not in self._errors:
            try:
                return self._processes[entry.process].ask(entry.task, **entry.arguments, **more)
            except FillmaskError as error:
                self._fail(entry.process, error)
        entry.samples.error = self._errors[entry.process]
        return None

    def _fail(self, name: str, error: FillmaskError) -> str:
        """Go on without a contender, unless nothing is measured and none is left."""
        self._errors[name] = str(error)
        measured = any(one.values for one in self._samples if one.unit not in ("s", "GFLOP/s"))
        if name == PRODUCTS or (not measured and len(self._errors) == len(self._contenders)):
            raise error
        return str(error)

    def _step(self, what: str, count: int = 1) -> Step:
        self._done += count
        return Step(self._done, self.total, what)


def _note(entry: Entry, timing: dict[str, Any]) -> None:
    """Add the runs of a `Timing` to the samples of an entry."""
    own, amount = entry.samples, timing["amount"]
    own.loss = timing["loss"]
    if timing["operations"]:
        entry.operations = timing["operations"] / amount
    for seconds in timing["seconds"]:
        speed = amount / seconds
        own.values.append({"ms": 1e3 * seconds, "GFLOP/s": speed / 1e9}.get(own.unit, speed))
