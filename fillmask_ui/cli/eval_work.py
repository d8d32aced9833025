"""What `fillmask-ui eval` does once its options are understood: load, measure, record."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fillmask_ui.cli.options import ModelChoice, load
from fillmask_ui.errors import DataError, OptionError

if TYPE_CHECKING:
    from fillmask_ui.evaluation import EvaluationConfig, Masks, Summary
    from fillmask_ui.intervals import Limits
    from fillmask_ui.protocol import MaskedLM
    from fillmask_ui.runs import Recorder, RunInfo, RunStore
    from fillmask_ui.texts import Texts, TextSource


@dataclass(frozen=True)
class Plan:
    """The choices of a new run."""

    model: ModelChoice
    baseline: ModelChoice | None
    config: EvaluationConfig
    source: TextSource
    limits: Limits


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    name: str
    signature: str
    notes: tuple[str, ...]
    summary: Summary

    def to_dict(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        return {
            **self.summary.to_dict(),
            "notes": list(self.notes),
            "signature": self.signature,
            "run": self.name,
        }


def store() -> RunStore:
    """Where runs are kept: `FILLMASK_UI_RUNS`, else the platform's place for user data."""
    import os

    from fillmask_ui.runs import RunStore, default_root

    return RunStore(default_root(os.environ, sys.platform, Path.home()))


def start_new(plan: Plan, *, quiet: bool) -> Outcome:
    """Measure as planned, in a run of its own.

    Args:
        plan: what to measure.
        quiet: print nothing on standard output.
    """
    from fillmask_ui.evaluation import check_models
    from fillmask_ui.runs import prepare_info, start
    from fillmask_ui.texts import open_texts

    # The texts first: a wrong column shows before a model is loaded.
    with open_texts(plan.source) as texts:
        model, baseline = _models(plan)
        info = prepare_info(
            plan.config,
            model,
            baseline=baseline,
            texts={**plan.source.to_dict(), "signature": str(plan.source)},
            choices={
                "model": asdict(plan.model),
                "baseline": asdict(plan.baseline) if plan.baseline else None,
            },
            limits=plan.limits,
        )
        masks = _masks(model, info.config)
        check_models(model, baseline, info.config)
        with start(store(), info) as recorder:
            return _work(recorder, model, baseline, texts, masks, quiet=quiet)


def go_on(name: str, *, quiet: bool, judged: bool) -> Outcome:
    """Measure what a stopped run lacks; a run that is done is only shown.

    Args:
        name: of the run.
        quiet: print nothing on standard output.
        judged: whether the verdict decides the exit code.

    Raises:
        OptionError: if a verdict is wanted of a run that has no baseline.
        DataError: if the texts have changed, or the run does not say what they and its model are.
    """
    from fillmask_ui.runs import resume
    from fillmask_ui.texts import open_texts

    with resume(store(), name) as recorder:
        if judged and recorder.info.baseline is None:
            raise OptionError(
                f"--fail-on needs a baseline, and run {recorder.name} has none: leave it out"
            )
        if recorder.dropped_bytes:
            sys.stderr.write(
                f"dropped a half-written last line of {recorder.dropped_bytes} bytes\n"
            )
        if recorder.info.state == "done":
            sys.stderr.write(f"run {recorder.name} is done already\n")
            return _outcome(recorder, quiet=quiet)
        plan = _plan_of(recorder.info)
        with open_texts(plan.source) as texts:
            recorder.check_texts(texts)
            model, baseline = _models(plan)
            masks = _masks(model, plan.config)
            return _work(recorder, model, baseline, texts, masks, quiet=quiet)


def _plan_of(info: RunInfo) -> Plan:
    from fillmask_ui.texts import TextSource

    try:
        own, other = info.choices["model"], info.choices["baseline"]
        return Plan(
            ModelChoice(**own),
            ModelChoice(**other) if other else None,
            info.config,
            TextSource(**{key: info.texts[key] for key in TextSource.__dataclass_fields__}),
            info.limits,
        )
    except (KeyError, TypeError) as error:
        raise DataError(
            f"run {info.name} does not say how its model and texts were asked for (it was made "
            "from Python): resume it there, with fillmask_ui.runs.resume"
        ) from error


def _models(plan: Plan) -> tuple[MaskedLM, MaskedLM | None]:
    return load(plan.model), load(plan.baseline) if plan.baseline else None


def _masks(model: MaskedLM, config: EvaluationConfig) -> Masks | None:
    if config.mask_stream != "collator":
        return None
    from fillmask_ui.runs.collator_masks import CollatorMasks

    return CollatorMasks(model.vocabulary, config)


def _work(
    recorder: Recorder,
    model: MaskedLM,
    baseline: MaskedLM | None,
    texts: Texts,
    masks: Masks | None,
    *,
    quiet: bool,
) -> Outcome:
    from fillmask_ui.cli.eval_output import eval_progress, print_head
    from fillmask_ui.evaluation import Heartbeat

    if not quiet:
        print_head(recorder.info, texts.report)
    sys.stderr.write(f"run {recorder.name}\n")
    rows = recorder.measure(model, texts, baseline=baseline, masks=masks, heartbeat=True)
    try:
        with eval_progress(texts.report.expected) as show, closing(rows):
            for item in rows:
                if isinstance(item, Heartbeat):
                    show(item.texts, recorder.running)
    except KeyboardInterrupt:
        sys.stderr.write(
            f"\nstopped; {recorder.running.seen} texts are kept: fillmask-ui eval --resume "
            f"{recorder.name}\n"
        )
        raise
    recorder.note(texts.report.notes)
    return _outcome(recorder, quiet=quiet)


def _outcome(recorder: Recorder, *, quiet: bool) -> Outcome:
    from fillmask_ui.cli.eval_output import print_figures

    info = recorder.info
    summary = recorder.running.summary()
    if not quiet:
        print_figures(summary, info)
    return Outcome(info.name, info.signature, info.notes, summary)
