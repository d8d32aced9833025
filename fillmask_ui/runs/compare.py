"""compare(): two stored runs side by side, paired by text.

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


def compare(
    run_a: Run | Path | str, run_b: Run | Path | str, *, limits: Limits | None = None
) -> Summary:
    """Figures of two runs (or their folders), the second as the baseline of the first.

    The first model of each counts, on the texts in both. Runs with different tokenizers are
    compared by character. `limits` are by default those of `run_a`. A `DataError` if a folder holds
    no run, or the runs measured different things or share no text.
    """
    first, second = _opened(run_a), _opened(run_b)
    config, second_config = first.info.config, second.info.config
    if config.signature != second_config.signature:
        raise DataError(
            f"the runs measured different things: {first.info.name} has {config.signature}, "
            f"{second.info.name} has {second_config.signature}; evaluate both alike"
        )
    summary = summarize(
        paired(first, second),
        config=config,
        vocabulary_size=max(run.info.model["vocabulary_size"] for run in (first, second)),
        limits=limits or first.info.limits,
    )
    unfinished = tuple(
        f"run {run.info.name} is {run.state}: only the {run.row_count:,} texts that it has are "
        "compared"
        for run in (first, second)
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


def compared_info(first: Run, second: Run) -> RunInfo:
    """The first run, with the model of the second as its baseline."""
    name = f"{first.info.name} and {second.info.name}"
    return replace(first.info, baseline=second.info.model, name=name, engines=())


def paired(first: Run, second: Run) -> Iterator[EvaluatedText | SkippedText]:
    """Rows of the first run with the second's as their baseline, one text in memory at a time.

    A `DataError` if the runs have different texts, or hid them differently.
    """
    by_token: bool | None = None
    second_starts = {line.row.id: line.start for line in second.lines()}
    for line in first.lines():
        row = line.row
        if row.id not in second_starts:
            yield SkippedText(row.id, ONE_RUN_ONLY)
            continue
        second_line = second.line_at(second_starts.pop(row.id))
        if second_line.checksum != line.checksum:
            raise DataError(
                f"text {row.id} differs between {first.info.name} and {second.info.name}: "
                "evaluate both over the same texts"
            )
        pair = _pair(row, second_line.row, first, second)
        if isinstance(pair, EvaluatedText):
            if by_token not in (None, pair.other is None):
                raise _not_alike(first, second, row.id)
            by_token = pair.other is None
        yield pair
    yield from (SkippedText(text_id, ONE_RUN_ONLY) for text_id in second_starts)


def _pair(
    row: EvaluatedText | SkippedText,
    second_row: EvaluatedText | SkippedText,
    first: Run,
    second: Run,
) -> EvaluatedText | SkippedText:
    if isinstance(row, SkippedText) or isinstance(second_row, SkippedText):
        both_skipped = type(row) is type(second_row)
        return row if both_skipped else SkippedText(row.id, ONE_RUN_ONLY)
    candidate, reference = _alone(row), _alone(second_row)
    if np.array_equal(row.ids, second_row.ids):
        same_cols = np.array_equal(row.cols, second_row.cols)
        if not same_cols or not np.array_equal(row.shown_ids, second_row.shown_ids):
            raise _not_alike(first, second, row.id)
        if candidate.worse is not None and reference.worse is not None:
            worse = replace(candidate.worse, baseline=reference.worse.scores)
            candidate = replace(candidate, worse=worse)
        return replace(candidate, baseline=reference.scores)
    metric = first.info.config.metric
    if not metric.compares_tokenizers:
        raise DataError(
            f"{first.info.name} and {second.info.name} have different tokenizers, so their losses "
            "per token mean different things; evaluate both by pseudo-perplexity or whole words, "
            "which compare by character"
        )
    if not metric.covers_same(row, second_row):
        return SkippedText(row.id, NOT_COMPARABLE)
    return replace(candidate, other=reference)


def _alone(row: EvaluatedText) -> EvaluatedText:
    """A row, and its other sentence, without what a second model said."""
    worse = row.worse and _alone(row.worse)
    return replace(row, baseline=None, difference=None, other=None, worse=worse)


def _not_alike(first: Run, second: Run, text_id: int) -> DataError:
    return DataError(
        f"text {text_id} was not hidden alike in {first.info.name} and {second.info.name}: "
        "evaluate one with the other model as its baseline"
    )
