"""compare_runs(): two stored runs side by side, paired by text.

Runs keep what each model said of the true tokens, not whole distributions: there is no KL
divergence and no difference of logits. For those evaluate with a baseline.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluatedText, Summary, summarize
from fillmask_ui.evaluation.measure import NOT_COMPARABLE
from fillmask_ui.intervals import Limits
from fillmask_ui.records import SkippedText
from fillmask_ui.runs.info import DONE, RunInfo
from fillmask_ui.runs.store import Run

ONE_RUN_ONLY = "measured in one run only"


def compare_runs(
    reference: Run | Path | str, candidate: Run | Path | str, *, limits: Limits | None = None
) -> Summary:
    """Figures of two runs (or their folders), the change from the reference to the candidate.

    The first model of each counts, on the texts in both. Runs with different tokenizers are
    compared by character. Groups, if it has any, and by default `limits` are those of the
    candidate. A `DataError` if a folder holds no run, or the runs measured different things or
    share no text.
    """
    first, second = _opened(reference), _opened(candidate)
    config, second_config = first.info.config, second.info.config
    if config.signature != second_config.signature:
        raise DataError(
            f"the runs measured different things: {first.info.name} has {config.signature}, "
            f"{second.info.name} has {second_config.signature}; evaluate both alike"
        )
    summary = summarize(
        paired(first, second),
        config=second_config,
        vocabulary_size=max(run.info.model["vocabulary_size"] for run in (first, second)),
        limits=limits or second.info.limits,
    )
    unfinished = tuple(
        f"run {run.info.name} is {run.state}: only the {run.row_count:,} texts that it has are "
        "compared"
        for run in (second, first)
        if run.state != DONE
    )
    return replace(summary, alarms=unfinished + summary.alarms)


def _opened(run: Run | Path | str) -> Run:
    if isinstance(run, Run):
        return run
    if isinstance(run, Path | str):
        return Run(Path(run))
    raise DataError(
        f"{type(run).__name__} is neither a run nor a folder of one: open one with "
        "RunStore(folder).open(name)"
    )


def compared_info(reference: Run, candidate: Run) -> RunInfo:
    """The run of the candidate, with the model of the reference as its baseline."""
    name = f"{reference.info.name} and {candidate.info.name}"
    return replace(
        candidate.info, baseline=reference.info.model, name=name, engines=(), call_seconds=()
    )


def paired(reference: Run, candidate: Run) -> Iterator[EvaluatedText | SkippedText]:
    """Rows of the candidate beside those of the reference, one text in memory at a time.

    A `DataError` if the runs have different texts, or hid them differently.
    """
    by_token: bool | None = None
    reference_starts = {line.row.id: line.start for line in reference.lines()}
    for line in candidate.lines():
        row = line.row
        if row.id not in reference_starts:
            yield SkippedText(row.id, ONE_RUN_ONLY)
            continue
        reference_line = reference.line_at(reference_starts.pop(row.id))
        if reference_line.checksum != line.checksum:
            raise DataError(
                f"text {row.id} differs between {candidate.info.name} and {reference.info.name}: "
                "evaluate both over the same texts"
            )
        pair = _pair(reference_line.row, row, reference, candidate)
        if isinstance(pair, EvaluatedText):
            if by_token not in (None, pair.reference_text is None):
                raise _not_alike(reference, candidate, row.id)
            by_token = pair.reference_text is None
        yield pair
    yield from (SkippedText(text_id, ONE_RUN_ONLY) for text_id in reference_starts)


def _pair(
    reference_row: EvaluatedText | SkippedText,
    row: EvaluatedText | SkippedText,
    reference: Run,
    candidate: Run,
) -> EvaluatedText | SkippedText:
    """A row of the candidate with the scores of the reference."""
    if isinstance(row, SkippedText) or isinstance(reference_row, SkippedText):
        both_skipped = type(row) is type(reference_row)
        return row if both_skipped else SkippedText(row.id, ONE_RUN_ONLY)
    metric = candidate.info.config.metric
    text, reference_text = replace(_alone(row), metric=metric), _alone(reference_row)
    text = replace(text, group=row.group or reference_row.group)
    if np.array_equal(row.ids, reference_row.ids):
        same_cols = np.array_equal(row.cols, reference_row.cols)
        if not same_cols or not np.array_equal(row.shown_ids, reference_row.shown_ids):
            raise _not_alike(reference, candidate, row.id)
        if text.worse is not None and reference_text.worse is not None:
            worse = replace(text.worse, reference=reference_text.worse.scores)
            text = replace(text, worse=worse)
        return replace(text, reference=reference_text.scores)
    if not metric.compares_tokenizers:
        raise DataError(
            f"{candidate.info.name} and {reference.info.name} have different tokenizers, so their "
            "losses per token mean different things; evaluate both by pseudo-perplexity or whole "
            "words, which compare by character"
        )
    if not metric.covers_same(row, reference_row):
        return SkippedText(row.id, NOT_COMPARABLE)
    return replace(text, reference_text=reference_text)


def _alone(row: EvaluatedText) -> EvaluatedText:
    """A row, and its other sentence, without what a second model said."""
    worse = row.worse and _alone(row.worse)
    return replace(row, reference=None, difference=None, reference_text=None, worse=worse)


def _not_alike(reference: Run, candidate: Run, text_id: int) -> DataError:
    return DataError(
        f"text {text_id} was not hidden alike in {candidate.info.name} and {reference.info.name}: "
        "evaluate one with the other model as its baseline"
    )
