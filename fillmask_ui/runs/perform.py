"""perform(): a plan becomes a stored run, yielded row by row.

The faces decide: draw what is yielded, or stop by closing the generator; what was measured until
then is kept and can be resumed.
"""

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from fillmask_ui.evaluation import (
    EvaluatedText,
    EvaluationConfig,
    Heartbeat,
    Masks,
    RunningSummary,
    check_models,
)
from fillmask_ui.models.choice import ModelChoice
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import SkippedText
from fillmask_ui.runs.info import DONE, RunInfo, prepare_info
from fillmask_ui.runs.plan import Plan
from fillmask_ui.runs.record import Recorder, resume, start
from fillmask_ui.runs.store import RunStore
from fillmask_ui.texts import Texts, open_texts

Load = Callable[[ModelChoice], MaskedLM]


@dataclass(frozen=True, eq=False)
class Progress:
    """A run at one moment."""

    info: RunInfo  # its run.json.
    running: RunningSummary  # the figures so far, which go on growing
    expected: int | None = None  # texts in all; None where that is not known
    through: float | None = None  # texts, those under way by share of the work; None with a row
    row: EvaluatedText | SkippedText | None = None  # just measured; None for a sign of life
    dropped_bytes: int = 0  # length of a half-written last line that a resumed run has dropped
    # Stops the run at once, from any thread: what is on disk by then is the run.
    stop: Callable[[], None] = lambda: None


def perform(plan: Plan, store: RunStore, load: Load) -> Generator[Progress]:
    """Measure as planned, in a new run.

    `load` makes a model of a choice; the texts are open by then.

    Yields:
        First the new run, then each row as it is stored and signs of life between them, at last
        the run as it ended.

    Raises:
        FillmaskError: if texts or models cannot be had or do not fit; before a run is made.
    """
    # The texts first: a wrong column shows before a model is loaded.
    with open_texts(plan.source) as texts:
        model = load(plan.model)
        baseline = load(plan.baseline) if plan.baseline else None
        check_models(model, baseline, plan.config)
        choices = {"texts": plan.texts(), "choices": plan.choices(), "limits": plan.limits}
        info = prepare_info(plan.config, model, baseline=baseline, **choices)
        masks = _masks(model, info.config)
        with start(store, info) as recorder:
            yield from _measure(recorder, texts, model, baseline, masks)


def perform_rest(name: str, store: RunStore, load: Load) -> Generator[Progress]:
    """Measure what a stopped run lacks; of a run that is done, yield only that it is.

    Raises:
        FillmaskError: if the run, its texts or models cannot be had, or have changed since.
    """
    with resume(store, name) as recorder:
        if recorder.info.state == DONE:
            yield Progress(recorder.info, recorder.running)
            return
        plan = Plan.of(recorder.info)
        with open_texts(plan.source) as texts:
            recorder.check_texts(texts)
            model = load(plan.model)
            baseline = load(plan.baseline) if plan.baseline else None
            masks = _masks(model, plan.config)
            yield from _measure(recorder, texts, model, baseline, masks)


def _measure(
    recorder: Recorder,
    texts: Texts,
    model: MaskedLM,
    baseline: MaskedLM | None,
    masks: Masks | None,
) -> Generator[Progress]:
    def now(**changes: Any) -> Progress:
        return Progress(
            recorder.info, recorder.running, texts.report.expected, stop=recorder.close, **changes
        )

    yield now(through=recorder.running.seen, dropped_bytes=recorder.dropped_bytes)
    rows = recorder.measure(model, texts, baseline=baseline, masks=masks, heartbeat=True)
    try:
        with closing(rows):
            for item in rows:
                yield now(through=item.texts) if isinstance(item, Heartbeat) else now(row=item)
    finally:
        recorder.note(texts.report.notes)
    yield now(through=recorder.running.seen)


def _masks(model: MaskedLM, config: EvaluationConfig) -> Masks | None:
    """The published evaluator's stream of masks where it is asked for; None for seeded masks."""
    if config.mask_stream != "collator":
        return None
    from fillmask_ui.runs.collator_masks import CollatorMasks

    return CollatorMasks(model.vocabulary, config)
