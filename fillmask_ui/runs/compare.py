"""compare(): two stored runs side by side, paired by text.

Two runs carry what each model said of the true tokens, not the whole distributions: so there are
paired losses and a verdict, but no KL divergence or logit differences. For those evaluate with a
baseline.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluatedText, RunningSummary, Summary
from fillmask_ui.evaluation.prepare import NOT_COMPARABLE
from fillmask_ui.intervals import Limits
from fillmask_ui.records import SkippedText
from fillmask_ui.runs.rows_file import RowsById
from fillmask_ui.runs.store import Run

ONE_RUN_ONLY = "measured in one run only"


def compare(run_a: Run | Path, run_b: Run | Path, *, limits: Limits | None = None) -> Summary:
    """Figures of two runs over the same texts, the second as the baseline of the first.

    Args:
        run_a: a run or its folder; only what its first model said counts.
        run_b: the baseline.
        limits: borders of the verdict; those of `run_a` by default.

    Returns:
        Texts in both runs; those in one alone are counted as skipped. Runs with different
        tokenizers are compared by character.

    Raises:
        DataError: if the runs measured different things or share no text.
    """
    first = run_a if isinstance(run_a, Run) else Run(run_a)
    second = run_b if isinstance(run_b, Run) else Run(run_b)
    config, other = first.info.config, second.info.config
    if config.signature != other.signature:
        raise DataError(
            f"the runs measured different things: {first.info.name} has {config.signature}, "
            f"{second.info.name} has {other.signature}; evaluate both alike"
        )
    running = RunningSummary(
        config=config,
        vocabulary_size=max(run.info.model["vocabulary_size"] for run in (first, second)),
        limits=limits or first.info.limits,
    )
    by_token: bool | None = None
    for row in paired(first, second):
        if isinstance(row, EvaluatedText):
            now = row.other is None
            if by_token is not None and by_token != now:
                raise DataError(_differ(first, second, row.id))
            by_token = now
        running.add(row)
    return running.summary()


def paired(first: Run, second: Run) -> Iterator[EvaluatedText | SkippedText]:
    """Rows of the first run with the second's as their baseline, one text in memory at a time.

    Raises:
        DataError: if the runs have other texts, hid them differently, or cannot be read.
    """
    seen = set()
    with contextlib.closing(RowsById(second.lines)) as others:
        for line in first.lines:
            row = line.row()
            seen.add(row.id)
            if row.id not in others:
                yield SkippedText(row.id, ONE_RUN_ONLY)
                continue
            other = others[row.id]
            if other.values["checksum"] != line.values["checksum"]:
                raise DataError(
                    f"text {row.id} differs between {first.info.name} and {second.info.name}: the "
                    "runs have other texts; evaluate both over the same"
                )
            yield _pair(row, other.row(), first, second)
        yield from (SkippedText(index, ONE_RUN_ONLY) for index in others if index not in seen)


def _pair(
    row: EvaluatedText | SkippedText, other: EvaluatedText | SkippedText, first: Run, second: Run
) -> EvaluatedText | SkippedText:
    if isinstance(row, SkippedText) and isinstance(other, SkippedText):
        return row
    if isinstance(row, SkippedText) or isinstance(other, SkippedText):
        return SkippedText(row.id, ONE_RUN_ONLY)
    alone = replace(row, baseline=None, difference=None, other=None)
    other = replace(other, baseline=None, difference=None, other=None)
    if np.array_equal(row.ids, other.ids):
        same = np.array_equal(row.cols, other.cols)
        if not same or not np.array_equal(row.shown_ids, other.shown_ids):
            raise DataError(_differ(first, second, row.id))
        return replace(alone, baseline=other.scores)
    scheme = first.info.config.scheme
    if not scheme.compares_tokenizers:
        raise DataError(
            f"{first.info.name} and {second.info.name} have different tokenizers, so their losses "
            "per token mean different things; evaluate both by pseudo-perplexity or whole words, "
            "which compare by character"
        )
    if not scheme.covers_same(row, other):
        return SkippedText(row.id, NOT_COMPARABLE)
    return replace(alone, other=other)


def _differ(first: Run, second: Run, index: int) -> str:
    return (
        f"text {index} was not hidden alike in {first.info.name} and {second.info.name}: evaluate "
        "one with the other model as its baseline"
    )
