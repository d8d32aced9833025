"""perform(): measure a plan, in a stored run that is yielded as its rows come.

Close the generator to stop; the rows until then are kept and can be resumed.
"""

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
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
class Progress:
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

    def __init__(self, first: Progress) -> None:
        self._first = self._last = first
        self._began, self._seconds = time.monotonic(), 0.0

    def add(self, step: Progress) -> None:
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


@dataclass(frozen=True)
class Cell:
    """A run to be made or resumed."""

    plan: Plan
    run: str | None = None  # name of the stored run to resume
    label: Mapping[str, Any] = field(default_factory=dict)  # `RunInfo.cell` of a new run


class Engine(Protocol):
    """Measures elsewhere than in this process, with the same digits."""

    def perform(self, cells: Sequence[Cell], store: RunStore, load: Load) -> Generator[Progress]:
        """As `perform_cells`."""


def perform(
    plan: Plan, store: RunStore, load: Load, engine: Engine | None = None
) -> Generator[Progress]:
    """Measure as planned, in a new run; `load` makes a model of a choice.

    Yields the new run, each row as it is stored, signs of life between them, and the ended run. No
    run is made if texts or models cannot be had or do not fit, which is a `FillmaskError`.
    """
    yield from perform_cells([Cell(plan)], store, load, engine)


def perform_rest(
    name: str, store: RunStore, load: Load, engine: Engine | None = None
) -> Generator[Progress]:
    """Measure the missing texts of a run; of one that is done, yield it once.

    A `FillmaskError` if the run, its texts or models cannot be had, or have changed since.
    """
    run = store.open(name)
    if run.info.state == DONE and not run.lacks_rows:
        yield Progress(run.info, run.running())
    else:
        yield from perform_cells([Cell(Plan.of(run.info), run.info.name)], store, load, engine)


def perform_cells(
    cells: Sequence[Cell], store: RunStore, load: Load, engine: Engine | None = None
) -> Generator[Progress]:
    """Measure several runs of one model; `Progress.info` says which."""
    if engine is not None:
        yield from engine.perform(cells, store, load)
        return
    for cell in cells:
        with ExitStack() as opened:
            recorder = opened.enter_context(resume(store, cell.run)) if cell.run else None
            # Before a model is loaded: a wrong column shows at once.
            texts = opened.enter_context(open_texts(cell.plan.source))
            if recorder is not None:
                recorder.know_available(texts.report.available)
            model = load(cell.plan.model)
            baseline = load(cell.plan.baseline) if cell.plan.baseline else None
            recorder = recorder or opened.enter_context(begin(cell, store, model, baseline))
            yield from _measure(recorder, texts, model, baseline)


def begin(cell: Cell, store: RunStore, model: MaskedLM, baseline: MaskedLM | None) -> Recorder:
    """The new run of a cell; an `OptionError` if its plan does not fit the models."""
    plan = cell.plan
    own = {"texts": plan.texts(), "choices": plan.choices(), "limits": plan.limits}
    return start(store, prepare_info(plan.config, model, baseline=baseline, cell=cell.label, **own))


def _measure(
    recorder: Recorder, texts: Texts, model: MaskedLM, baseline: MaskedLM | None
) -> Generator[Progress]:
    def now(**changes: Any) -> Progress:
        return Progress(
            recorder.info,
            recorder.running,
            texts.report.expected,
            warnings=texts.report.warnings,
            stop=recorder.close,
            **changes,
        )

    yield now(through=recorder.running.seen, dropped_bytes=recorder.dropped_bytes)
    rows = recorder.measure(model, texts, baseline=baseline, heartbeat=True)
    tokens = 0
    try:
        with closing(rows):
            for item in rows:
                if isinstance(item, Heartbeat):
                    tokens = item.tokens
                    yield now(through=item.texts, tokens=tokens)
                else:
                    yield now(rows=(item,), tokens=tokens)
    finally:
        recorder.note(texts.report.notes)
    yield now(through=recorder.running.seen, tokens=tokens)
