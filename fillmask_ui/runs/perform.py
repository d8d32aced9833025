"""perform(): measure a plan, in a stored run that is yielded as its rows come.

Close the generator to stop; the rows until then are kept and can be resumed.
"""

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from fillmask_ui.evaluation import EvaluatedText, Heartbeat, RunningSummary
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import SkippedText
from fillmask_ui.runs.info import DONE, Plan, RunInfo, prepare_info
from fillmask_ui.runs.record import Recorder, resume, start
from fillmask_ui.runs.store import RunStore
from fillmask_ui.texts import Texts, open_texts

Load = Callable[[ModelChoice], MaskedLM]


@dataclass(frozen=True, eq=False)
class RunProgress:
    """A run at one moment."""

    info: RunInfo  # its run.json
    running: RunningSummary  # the figures so far, which go on growing
    expected: int | None = None  # texts in all, if known
    through: float | None = None  # texts, those under way by share of the work; None with rows
    rows: Iterable[EvaluatedText | SkippedText] = ()  # just stored
    tokens: int = 0  # scored since the run began or was resumed
    workers: int = 1  # processes of an engine that measure now
    warnings: tuple[str, ...] = ()  # on how the texts are read, none of a text before its row
    dropped_bytes: int = 0  # length of a half-written last line that was dropped
    # Stops the run at once, from any thread.
    stop: Callable[[], None] = lambda: None


class Pace:
    """Speed of a run and the time left, since its `first` progress."""

    def __init__(self, first: RunProgress) -> None:
        self._first = self._last = first
        self._began, self._seconds = time.monotonic(), 0.0

    def add(self, step: RunProgress) -> None:
        if step.tokens > self._last.tokens or (step.through or 0) > (self._last.through or 0):
            self._last, self._seconds = step, time.monotonic() - self._began

    @property
    def tokens_per_second(self) -> float | None:
        """Hidden tokens scored per second, once there are any."""
        return self._last.tokens / self._seconds if self._last.tokens and self._seconds else None

    @property
    def seconds_left(self) -> float | None:
        """An estimate; None if the number of texts is unknown, or nothing is done yet."""
        expected, through = self._last.expected, self._last.through or 0
        done = through - (self._first.through or 0)
        if not expected or done <= 0:
            return None
        return max(0.0, expected - through) * self._seconds / done


# Yields a run as its missing texts are measured.
Measure = Callable[[Recorder, Texts], Generator[RunProgress]]


class Engine(Protocol):
    """Measures elsewhere than in this process."""

    def prepare(self, plan: Plan, model: MaskedLM, baseline: MaskedLM | None) -> Measure:
        """What measures a plan; a `FillmaskError` if it cannot. No run is made before."""


def perform(
    plan: Plan,
    store: RunStore,
    load: Load,
    engine: Engine | None = None,
    *,
    cell: Mapping[str, Any] | None = None,
) -> Generator[RunProgress]:
    """Measure as planned, in a new run; `load` makes a model of a choice.

    Yields the new run, each row as it is stored, signs of life between them, and the ended run. No
    run is made if texts or models cannot be had or do not fit, which is a `FillmaskError`. `cell`
    is `RunInfo.cell`.
    """
    with ExitStack() as opened:
        # Before a model is loaded: a wrong column shows at once.
        texts = opened.enter_context(open_texts(plan.source))
        model, baseline, measure = _prepared(plan, load, engine)
        info = prepare_info(
            plan.config,
            model,
            baseline=baseline,
            cell=cell or {},
            texts=plan.texts(),
            choices=plan.choices(),
            limits=plan.limits,
        )
        recorder = opened.enter_context(start(store, info))
        yield from _measured(recorder, texts, measure)


def perform_rest(
    name: str, store: RunStore, load: Load, engine: Engine | None = None
) -> Generator[RunProgress]:
    """Measure the missing texts of a run; of one that is done, yield it once.

    A `FillmaskError` if the run, its texts or models cannot be had, or have changed since.
    """
    run = store.open(name)
    if run.info.state == DONE and not run.lacks_rows:
        yield RunProgress(run.info, run.running())
        return
    plan = Plan.of(run.info)
    with ExitStack() as opened:
        recorder = opened.enter_context(resume(store, run.info.name))
        texts = opened.enter_context(open_texts(plan.source))
        recorder.know_available(texts.report.available)
        model, baseline, measure = _prepared(plan, load, engine)
        recorder.check_models(model, baseline)
        yield from _measured(recorder, texts, measure)


def _prepared(
    plan: Plan, load: Load, engine: Engine | None
) -> tuple[MaskedLM, MaskedLM | None, Measure]:
    model = load(plan.model)
    baseline = load(plan.baseline) if plan.baseline else None
    if engine is not None:
        return model, baseline, engine.prepare(plan, model, baseline)
    return model, baseline, partial(measure_here, model=model, baseline=baseline)


def _measured(recorder: Recorder, texts: Texts, measure: Measure) -> Generator[RunProgress]:
    step = progress_of(
        recorder, texts, through=recorder.running.seen, dropped_bytes=recorder.dropped_bytes
    )
    yield step
    try:
        with closing(measure(recorder, texts)) as steps:
            for step in steps:
                yield step
    finally:
        recorder.note(texts.report.notes)
    yield replace(step, info=recorder.info, rows=(), through=recorder.running.seen)


def progress_of(recorder: Recorder, texts: Texts, **changes: Any) -> RunProgress:
    """A run as it is now."""
    report = texts.report
    progress = RunProgress(
        recorder.info,
        recorder.running,
        expected=report.expected,
        warnings=report.warnings,
        stop=recorder.close,
    )
    return replace(progress, **changes)


def measure_here(
    recorder: Recorder, texts: Texts, model: MaskedLM, baseline: MaskedLM | None
) -> Generator[RunProgress]:
    """A `Measure` of this process, once the models are given."""
    tokens = 0
    with closing(recorder.measure(model, texts, baseline=baseline, heartbeat=True)) as rows:
        for row in rows:
            if isinstance(row, Heartbeat):
                tokens = row.tokens
                yield progress_of(recorder, texts, through=row.texts, tokens=tokens)
            else:
                yield progress_of(recorder, texts, rows=(row,), tokens=tokens)
