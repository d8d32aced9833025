"""An evaluation that runs behind the page: told about as it goes, stopped at once, never lost.

The work is done in a thread that stores each row before it goes on. Whoever watches asks for news
every now and then; a job that nobody has asked about for a minute stops by itself, so that a
closed browser leaves a stopped run behind, which can be resumed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fillmask_ui.errors import FillmaskError
from fillmask_ui.evaluation import Heartbeat, History, MeanSoFar, Summary, check_models
from fillmask_ui.runs import RunInfo, RunStore, prepare_info, resume, start
from fillmask_ui.texts import open_texts
from fillmask_ui.ui.evaluate_request import Request, source_of

if TYPE_CHECKING:
    from fillmask_ui.evaluation import EvaluationConfig, Masks
    from fillmask_ui.models import LoadProgress
    from fillmask_ui.protocol import MaskedLM
    from fillmask_ui.runs import Recorder
    from fillmask_ui.texts import Texts
    from fillmask_ui.ui.session import Session

NEWS_SECONDS = 1.0
ABANDONED_SECONDS = 60.0
# How long a cancelled job is waited for before the page goes on without it.
STOP_SECONDS = 0.4


@dataclass(frozen=True, eq=False)
class News:
    """How far a job is.

    Attributes:
        state: `waiting`, `running`, `done`, `stopped` or `failed`.
        message: what it does, or why it failed.
        fraction: part done; None where nothing is counted.
        seen: texts measured or skipped.
        expected: texts in all; None where that is not known.
        seconds_left: an estimate; None where there is none.
        info: of the run, once it has begun.
        summary: figures so far, once there are any.
        history: of the mean.
    """

    state: str = "waiting"
    message: str = ""
    fraction: float | None = None
    seen: int = 0
    expected: int | None = None
    seconds_left: float | None = None
    info: RunInfo | None = None
    summary: Summary | None = None
    history: tuple[MeanSoFar, ...] = ()

    @property
    def ended(self) -> bool:
        return self.state in ("done", "stopped", "failed")


class Job:
    """One evaluation; start it with `begin`.

    Args:
        session: the page's models.
        store: where the run is kept.
        slots: how many jobs may measure at a time.
        request: what is to be measured; None to resume.
        run: name of a run to resume.
    """

    def __init__(
        self,
        session: Session,
        store: RunStore,
        slots: threading.Semaphore,
        request: Request | None = None,
        run: str = "",
    ) -> None:
        self._session, self._store, self._slots = session, store, slots
        self._request, self._run = request, run
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._asked_at = time.monotonic()
        self._history = History()
        self._after: Job | None = None
        self.news = News(message="Starting…")

    def begin(self, after: Job | None = None) -> None:
        """Go to work in a thread.

        Args:
            after: a job that is being stopped; its end is waited for, as both may write one run.
        """
        self._after = after
        threading.Thread(target=self._work, daemon=True, name="evaluation").start()

    def cancel(self) -> None:
        """Stop before the next row; what is done is kept."""
        self._stop.set()

    @property
    def reads(self) -> str:
        """Path of the file whose texts it measures, or will; blank for none or a stored run's."""
        ended = self._ended.is_set()
        return self._request.source.where if self._request and not ended else ""

    @property
    def cancelled(self) -> bool:
        return self._stop.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for the end, at most so long; asking keeps the job alive."""
        self._asked_at = time.monotonic()
        return self._ended.wait(seconds)

    @property
    def _unwanted(self) -> bool:
        return self.cancelled or time.monotonic() - self._asked_at > ABANDONED_SECONDS

    def _work(self) -> None:
        try:
            self._measure()
        except FillmaskError as error:
            self.news = replace(self.news, state="failed", message=str(error))
        except BaseException:
            self.news = replace(
                self.news,
                state="failed",
                message="The evaluation failed; the log of the server says why. What was measured "
                "before is kept.",
            )
            raise
        finally:
            self._ended.set()

    def _say(self, message: str, fraction: float | None = None) -> None:
        self.news = replace(self.news, message=message, fraction=fraction)

    def _measure(self) -> None:
        while self._after is not None and not self._after._ended.wait(0.2):
            self._say("Waiting for the evaluation before to stop…")
            if self._unwanted:
                break
        self._after = None
        while not self._slots.acquire(timeout=0.2):
            self._say("Waiting for another evaluation to end…")
            if self._unwanted:
                self.news = replace(self.news, state="stopped", message="")
                return
        try:
            self._measure_now()
        finally:
            self._slots.release()

    def _measure_now(self) -> None:
        stored = None if self._request else self._store.open(self._run).info
        source = self._request.source if self._request else source_of(stored.texts)
        choices = self._request.choices() if self._request else stored.choices
        self._say("Reading the texts…")
        # The texts first: a wrong column shows before a model is loaded.
        with open_texts(source) as texts:
            model = self._model(choices["model"])
            baseline = self._model(choices["baseline"]) if choices["baseline"] else None
            if self._unwanted:
                self.news = replace(self.news, state="stopped", message="")
                return
            with self._recorder(model, baseline) as recorder:
                self._record(recorder, texts, model, baseline)

    def _recorder(self, model: MaskedLM, baseline: MaskedLM | None) -> Recorder:
        request = self._request
        if request is None:
            for row in self._store.open(self._run).rows():
                self._history.add(row)
            return resume(self._store, self._run)
        # Two models that cannot be compared are refused before a run is made.
        check_models(model, baseline, request.config)
        info = prepare_info(
            request.config,
            model,
            baseline=baseline,
            texts=request.texts(),
            choices=request.choices(),
            limits=request.limits,
        )
        return start(self._store, info)

    def _record(
        self, recorder: Recorder, texts: Texts, model: MaskedLM, baseline: MaskedLM | None
    ) -> None:
        running = recorder.running
        already = running.seen
        begun_at = told_at = time.monotonic()
        self.news = replace(
            self.news,
            state="running",
            message="",
            fraction=None,
            info=recorder.info,
            expected=texts.report.expected,
            seen=already,
        )
        items = recorder.measure(
            model,
            texts,
            baseline=baseline,
            masks=_masks(model, recorder.info.config),
            heartbeat=True,
        )
        try:
            for item in items:
                if not isinstance(item, Heartbeat):
                    self._history.add(item)
                    self.news = replace(
                        self.news, seen=running.seen, expected=texts.report.expected
                    )
                elif time.monotonic() - told_at >= NEWS_SECONDS:
                    self._tell(recorder, texts, item.texts, already, begun_at)
                    # The next news is a second after these, however long they took to make.
                    told_at = time.monotonic()
                if self._unwanted:
                    break
        finally:
            items.close()
        recorder.note(texts.report.notes)
        self.news = replace(
            self.news,
            state=recorder.info.state,
            message="",
            fraction=None,
            info=recorder.info,
            seen=running.seen,
            summary=running.summary() if running.texts else None,
            history=self._history.means(),
        )

    def _tell(
        self, recorder: Recorder, texts: Texts, through: float, already: int, begun_at: float
    ) -> None:
        running, expected = recorder.running, texts.report.expected
        left = None
        if expected and through > already:
            pace = (time.monotonic() - begun_at) / (through - already)
            left = max(0.0, expected - through) * pace
        self.news = replace(
            self.news,
            fraction=min(1.0, through / expected) if expected else None,
            seen=running.seen,
            expected=expected,
            seconds_left=left,
            summary=running.summary(quick=True) if running.texts else None,
            history=self._history.means(),
        )

    def _model(self, choice: Mapping[str, Any]) -> MaskedLM:
        def tell(progress: LoadProgress) -> None:
            self._say(progress.message, progress.fraction)

        self._say("Loading the model…")
        return chosen_model(self._session, choice, tell)


def chosen_model(
    session: Session, choice: Mapping[str, Any], on_progress: Callable[..., None] | None = None
) -> MaskedLM:
    """The model of a run, as run.json says that it was asked for.

    Args:
        session: the page's models.
        choice: a `reference`, and options of `load_model`.
        on_progress: told how far loading is.

    Raises:
        ModelError: if it cannot be loaded, or is not offered on a public page.
    """
    from fillmask_ui.models import ModelChoice

    options = options_of(choice)
    if not options or session.public:
        return session.model(choice["reference"], on_progress)
    return session.store.get(ModelChoice(choice["reference"], **options), on_progress)


def options_of(choice: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for beside the reference of a model.

    >>> options_of({"reference": "embedded", "runtime": "auto", "threads": None, "dtype": "int8"})
    {'dtype': 'int8'}
    """
    plain = {"runtime": "auto"}
    return {
        name: value
        for name, value in choice.items()
        if value is not None and name != "reference" and value != plain.get(name)
    }


def _masks(model: MaskedLM, config: EvaluationConfig) -> Masks | None:
    if config.mask_stream != "collator":
        return None
    from fillmask_ui.runs.collator_masks import CollatorMasks

    return CollatorMasks(model.vocabulary, config)


def watch(job: Job, pause: Callable[[Job, float], bool] = Job.wait) -> Iterator[News]:
    """News of a job about once a second until it ends; stops it when nobody listens any more.

    Args:
        job: begun.
        pause: waits for its end, at most so many seconds.

    Yields:
        What is new; the last one has `ended`.
    """
    told: News | None = None
    cancelled_at: float | None = None
    try:
        while True:
            over = pause(job, 0.1)
            news = job.news
            if over:
                yield news
                return
            if job.cancelled:
                if cancelled_at is None:
                    cancelled_at = time.monotonic()
                    yield replace(news, state="waiting", message="Stopping…", fraction=None)
                if time.monotonic() - cancelled_at > STOP_SECONDS:
                    # The batch at hand ends by itself; what it gives is stored or not, as it may.
                    yield replace(news, state="stopped", message="")
                    return
            elif news is not told:
                told = news
                yield news
    finally:
        job.cancel()
