"""The benchmark itself: every contender in its own process, all asked in turn, round by round.

Interleaved, so that a machine that slows down slows all of them; a single run at a time, as the
clock of each would else count the others.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fillmask_ui.bench.config import BenchConfig
from fillmask_ui.bench.machine import machine
from fillmask_ui.bench.process import Worker
from fillmask_ui.bench.products import LIBRARIES, SHAPES
from fillmask_ui.bench.report import Report, Row, Samples, rows_of
from fillmask_ui.bench.subjects import OWN, Lineup, Subject, lineup
from fillmask_ui.errors import FillmaskError
from fillmask_ui.texts import open_texts

LENGTHS = (8, 32, 128, 512)  # tokens of one sentence
CROSS_ENTROPY, PSEUDO_PERPLEXITY = METRICS = ("cross-entropy", "pseudo-perplexity")
SHARE = "share of the matrix-product rate, cross-entropy"
PRODUCTS = "matrix products"
# One sentence is timed so long before it is the next subject's turn.
_TURN_SECONDS = 0.1
_CALLS_A_TURN = 10
_LEAST_CALLS = 3
_SENTENCE_STEPS = 10
_PRODUCT_CALLS = 5
# Of the texts, the longest are run once before any clock starts.
_WARM_SHARE = 20


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

    worker: str
    task: str
    arguments: dict[str, Any]
    samples: Samples
    calls: int = 1  # in one turn
    operations: list[float] = field(default_factory=list)  # per second, where they are known


def run_bench(config: BenchConfig) -> Generator[Step]:
    """Measure; the last step has the report, in which what failed has rows that say why.

    Raises:
        FillmaskError: if a model or the texts cannot be read, or nothing can be measured.
    """
    subjects = lineup(config)
    with open_texts(config.source()) as source:
        texts = [example.text for example in source if example.text.strip()]
    with ExitStack() as stack:
        yield from Bench(config, subjects, texts, stack).steps()


class Bench:
    """One benchmark under way."""

    def __init__(
        self, config: BenchConfig, subjects: Lineup, texts: list[str], stack: ExitStack
    ) -> None:
        self._effort, self._subjects, self._notes = config.effort, subjects.subjects, subjects.notes
        self._texts, self._stack = texts, stack
        self._workers: dict[str, Worker] = {}
        self._samples: list[Samples] = []
        self._errors: dict[str, str] = {}  # of the subjects that failed
        self._done, self._total = 0.0, 0

    def steps(self) -> Iterator[Step]:
        """All works, from starting the processes to the report."""
        effort = self._effort
        share = self._texts[:: effort.share]
        works = [
            (texts, self._evaluations(metric))
            for metric, texts in zip(METRICS, (self._texts, share), strict=True)
        ]
        sentences = {tokens: self._sentences(tokens) for tokens in LENGTHS}
        self._total = (
            effort.loads * len(self._subjects)
            + (1 + effort.rounds) * sum(len(entries) for _, entries in works)
            + _SENTENCE_STEPS * len(sentences)
        )
        yield from self._start()
        for texts, entries in works:
            yield from self._evaluate(texts, entries)
        for tokens, entries in sentences.items():
            yield from self._time_sentences(tokens, entries)
        yield Step(self._total, self._total, "done", self._report(works[0][1]))

    def _start(self) -> Iterator[Step]:
        """Start every process several times; the last ones stay."""
        loading = [self._sample("load time", subject, "s") for subject in self._subjects]
        limits: dict[Path, int] = {}
        for number in range(1, self._effort.loads + 1):
            for subject, samples in zip(self._subjects, loading, strict=True):
                yield self._step(f"loading {subject.name}")
                if subject.name in self._errors:
                    continue
                try:
                    worker = Worker(subject.name, subject.request(limits.get(subject.folder)))
                except FillmaskError as error:
                    samples.error = self._fail(subject.name, error)
                    continue
                samples.values.append(worker.loaded["seconds"])
                limits.setdefault(subject.folder, worker.loaded["max_tokens"])
                if number < self._effort.loads:
                    worker.close()
                else:
                    self._keep(subject.name, worker)
        self._keep(PRODUCTS, Worker(PRODUCTS, {"kind": "products"}))

    def _evaluate(self, texts: Sequence[str], entries: Sequence[Entry]) -> Iterator[Step]:
        """Rounds over the texts; the processes' peak memory after the first of them."""
        longest = sorted(texts, key=len)[-max(1, len(texts) // _WARM_SHARE) :]
        for number in range(self._effort.rounds + 1):
            for entry in entries:
                yield self._step(f"{entry.samples.work}: {entry.samples.subject}")
                given = {"texts": longest if number == 0 else texts}
                timing = self._ask(entry, {} if entry.task == "product" else given)
                if number and timing:
                    _note(entry, timing)
            if number == 1 and entries[0].samples.work == CROSS_ENTROPY:
                self._note_memory(entries)

    def _note_memory(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            subject = next((own for own in self._subjects if own.name == entry.worker), None)
            if not subject or subject.name in self._errors:
                continue
            if most := self._workers[subject.name].ask("peak_bytes"):
                self._sample("peak memory", subject, "MB").values.append(most / 1e6)

    def _time_sentences(self, tokens: int, entries: Sequence[Entry]) -> Iterator[Step]:
        """Turns of a few calls each, one call before the clock, until there are enough."""
        what, before, effort = f"one sentence of {tokens} tokens", self._done, self._effort
        yield self._step(what, 0)
        able = []
        for entry in entries:
            if (first := self._ask(entry, {"runs": 2})) is None:
                continue
            able.append(entry)
            entry.calls = min(_CALLS_A_TURN, max(1, int(_TURN_SECONDS / first["seconds"][-1])))
        start = time.perf_counter()
        fraction = 0.0
        while able and fraction < 1:
            for entry in able.copy():
                if timing := self._ask(entry, {"runs": 1 + entry.calls}):
                    _note(entry, {**timing, "seconds": timing["seconds"][1:]})
                else:
                    able.remove(entry)
            fewest = min((len(entry.samples.values) for entry in able), default=effort.calls)
            spent = min(fewest / _LEAST_CALLS, (time.perf_counter() - start) / effort.seconds)
            fraction = min(1.0, max(fewest / effort.calls, spent))
            self._done = before + fraction * _SENTENCE_STEPS
            yield self._step(what, 0)
        self._done = before + _SENTENCE_STEPS

    def _ask(self, entry: Entry, more: dict[str, Any]) -> Any:
        """The answer of a contender; None if it has none, or has failed now or before."""
        if entry.worker not in self._errors:
            try:
                return self._workers[entry.worker].ask(entry.task, **{**entry.arguments, **more})
            except FillmaskError as error:
                self._fail(entry.worker, error)
        entry.samples.error = self._errors[entry.worker]
        return None

    def _fail(self, name: str, error: FillmaskError) -> str:
        """Go on without a contender, unless nothing is measured and none is left."""
        self._errors[name] = str(error)
        measured = any(one.values for one in self._samples if one.unit not in ("s", "GFLOP/s"))
        if name == PRODUCTS or (not measured and len(self._errors) == len(self._subjects)):
            raise error
        return str(error)

    def _evaluations(self, metric: str) -> list[Entry]:
        """All that evaluate; with the cross-entropy also the products that it is held against."""
        asked = {"metric": metric}
        entries = [
            Entry(subject.name, "evaluation", asked, self._sample(metric, subject, "tokens/s"))
            for subject in self._subjects
            if metric in subject.works
        ]
        if metric != CROSS_ENTROPY:
            return entries
        for shape in SHAPES:
            for library in LIBRARIES:
                name = "matrix product {}x{}x{}".format(*shape)
                samples = Samples(name, library, "GFLOP/s")
                self._samples.append(samples)
                arguments = {"library": library, "shape": shape, "runs": _PRODUCT_CALLS}
                entries.append(Entry(PRODUCTS, "product", arguments, samples))
        return entries

    def _sentences(self, tokens: int) -> list[Entry]:
        work = f"one sentence of {tokens} tokens"
        asked = {"texts": self._texts, "tokens": tokens}
        able = [subject for subject in self._subjects if "sentence" in subject.works]
        entries = [
            Entry(subject.name, "sentence", asked, self._sample(work, subject, "ms"))
            for subject in able
        ]
        for subject in able:
            if subject.kind == OWN:
                samples = Samples(work, f"bare call, {subject.name}", "ms")
                self._samples.append(samples)
                entries.append(Entry(subject.name, "call_alone", asked, samples))
        return entries

    def _sample(self, work: str, subject: Subject, unit: str) -> Samples:
        samples = Samples(work, subject.name, unit, peer=subject.kind != OWN)
        self._samples.append(samples)
        return samples

    def _keep(self, name: str, worker: Worker) -> None:
        self._stack.callback(worker.close)
        self._workers[name] = worker

    def _step(self, what: str, count: int = 1) -> Step:
        self._done += count
        return Step(self._done, self._total, what)

    def _report(self, evaluated: Sequence[Entry]) -> Report:
        rows = rows_of(self._samples)
        rate = max(row.median for row in rows if row.median and row.unit == "GFLOP/s")
        for entry in evaluated:
            own = entry.samples
            if entry.operations:
                values = [speed / (1e9 * rate) for speed in entry.operations]
                self._samples.append(
                    Samples(SHARE, own.subject, "share", own.peer, values, own.loss)
                )
        features = [worker.loaded["cpu_features"] for worker in self._workers.values()]
        here = {**machine(), "features": next(filter(None, features), []), "gflops": rate}
        ordered = sorted(rows_of(self._samples), key=_place)
        return Report(here, tuple(ordered), self._notes)


def _note(entry: Entry, timing: dict[str, Any]) -> None:
    """Add the runs of a `Timing` to the samples of an entry."""
    own = entry.samples
    own.loss = timing["loss"]
    for seconds in timing["seconds"]:
        speed = timing["amount"] / seconds
        own.values.append({"ms": 1e3 * seconds, "GFLOP/s": speed / 1e9}.get(own.unit, speed))
        if timing["operations"]:
            entry.operations.append(timing["operations"] / seconds)


def _place(row: Row) -> int:
    """Where a row stands in the report: evaluations, sentences, what a process takes, products."""
    works, units = (CROSS_ENTROPY, SHARE, PSEUDO_PERPLEXITY), ("ms", "s", "MB", "GFLOP/s")
    if row.work in works:
        return works.index(row.work)
    return len(works) + units.index(row.unit)
