"""The hidden tokens of a stored run: all of them in a file, and one as each model met it."""

import csv
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from fillmask_ui.errors import DataError, OptionError, how_to_install, unknown
from fillmask_ui.evaluation import EvaluatedText
from fillmask_ui.evaluation.rows import PARTS, TokenScores
from fillmask_ui.files import csv_cell, finished_file, text_file
from fillmask_ui.masking import KINDS
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.records import SkippedText
from fillmask_ui.runs.info import RunInfo, model_choice
from fillmask_ui.runs.store import Run, RunStore

FORMATS = ("csv", "json", "jsonl", "parquet")

# Columns of the file with the types of their cells, in their order.
_TOKEN = {
    "position": int,
    "token_id": int,
    "token": str,
    "kind": str,
    "shown_id": int,
    "part": str,
}
_SCORES = {
    "nll_nats": float,
    "rank": int,
    "entropy_nats": float,
    "top_id": int,
    "top_token": str,
    "top_probability": float,
}
_DIFFERENCES = {
    "kl_nats": float,
    "kl_reverse_nats": float,
    "mean_abs_logit_difference": float,
    "max_abs_logit_difference": float,
}
# The attributes that have their values, where they are not the names with a plural s.
_ATTRIBUTES = {
    "position": "cols",
    "token_id": "true_ids",
    "top_probability": "top_probabilities",
    "written_probability": "written_probabilities",
    "mean_abs_logit_difference": "mean_abs",
    "max_abs_logit_difference": "max_abs",
} | {name: name for name in ("nll_nats", "entropy_nats", "kl_nats", "kl_reverse_nats")}
_NAMED = {"kind": KINDS, "part": PARTS}
_ROWS_A_GROUP = 20_000


def export(run: Run, target: Path, file_format: str | None = None) -> int:
    """Write a run, done or not, to a file; the number of records is returned.

    A record is a hidden token (csv, parquet) or a text (jsonl, json). The format is by default the
    ending of the file's name, else csv. A `DataError` if the file cannot be written, or pyarrow is
    missing for parquet.
    """
    ending = target.suffix.removeprefix(".").lower()
    chosen = (file_format or ending or "csv").lower()
    if chosen not in FORMATS:
        raise OptionError(unknown("export format", chosen, FORMATS))
    if ending in FORMATS and ending != chosen:
        raise OptionError(
            f"{target} ends with .{ending}, but the format is {chosen}: name the file *.{chosen}, "
            "or leave out --format"
        )
    if chosen == "parquet":
        with finished_file(target) as fresh:
            return _write_parquet(run, fresh)
    with text_file(target) as file:
        return write_text(run, file, chosen)


def write_text(run: Run, file: TextIO, file_format: str) -> int:
    """Write a run as csv, json or jsonl to an open file; the number of records is returned."""
    if file_format == "csv":
        writer = csv.DictWriter(file, list(_columns(run)), restval="", lineterminator="\n")
        writer.writeheader()
        count = 0
        for record in _records(run):
            writer.writerow({name: csv_cell(cell) for name, cell in record.items()})
            count += 1
        return count
    lines = (line.content.decode().rstrip("\n") for line in run.lines())
    if file_format == "jsonl":
        return sum(1 for line in lines if file.write(line + "\n"))
    head = {"run": run.info.to_dict(), "summary": run.summary().to_dict()}
    file.write(json.dumps(head, ensure_ascii=False)[:-1] + ', "rows": [')
    count = 0
    for count, line in enumerate(lines, start=1):
        file.write((",\n" if count > 1 else "\n") + line)
    file.write("\n]}\n")
    return count


def _columns(run: Run) -> dict[str, type]:
    scores = {**_SCORES, **run.info.config.metric.token_columns}
    reference_scores = {f"reference_{name}": kind for name, kind in scores.items()}
    columns = {"text_id": int, "group": str, **_TOKEN}
    return {**columns, **scores, **reference_scores, **_DIFFERENCES}


def _records(run: Run) -> Iterator[dict[str, Any]]:
    """One flat record for each hidden token of the run."""
    scores = {**_SCORES, **run.info.config.metric.token_columns}
    for row in run.rows():
        if isinstance(row, SkippedText):
            continue
        columns: dict[str, Sequence[Any]] = {"text_id": [row.id] * len(row.cols)}
        columns["group"] = [row.group] * len(row.cols)
        for record, prefix, names in (
            (row, "", _TOKEN),
            (row.scores, "", scores),
            (row.reference, "reference_", scores),
            (row.difference, "", _DIFFERENCES),
        ):
            for name in names if record is not None else ():
                values = np.asarray(getattr(record, _ATTRIBUTES.get(name, f"{name}s"))).tolist()
                if names_of_values := _NAMED.get(name):
                    values = [names_of_values[value] for value in values]
                columns[prefix + name] = values
        for values in zip(*columns.values(), strict=True):
            yield dict(zip(columns, values, strict=True))


def _write_parquet(run: Run, target: Path) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise DataError(
            "parquet needs pyarrow, which is not installed: "
            f"{how_to_install('hub')}; or export to csv"
        ) from error

    types = {int: pa.int64(), float: pa.float64(), str: pa.string()}
    schema = pa.schema([(name, types[kind]) for name, kind in _columns(run).items()])
    records, count = _records(run), 0
    with pq.ParquetWriter(target, schema) as writer:
        while group := list(itertools.islice(records, _ROWS_A_GROUP)):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
            count += len(group)
    return count


@dataclass(frozen=True)
class TokenPlace:
    """Which token of which run."""

    run: str  # its name
    example: int  # id of the text
    position: int  # of the token, special tokens counted, as the model of `side` tokenizes
    other: str = ""  # name of the run that it is compared with; blank for none
    side: int = 0  # 0 for the candidate, 1 for what it is measured against


@dataclass(frozen=True, eq=False)
class MeasuredToken:
    """A hidden token as one model met it."""

    info: RunInfo  # of the run that has the row
    which: str  # `model` or `baseline` of that run
    row: EvaluatedText  # of its text, as this model tokenizes it
    scores: TokenScores  # of this model
    entry: int  # which of the M hidden tokens

    @property
    def choice(self) -> ModelChoice:
        """How the model was asked for; a `DataError` if the run does not say."""
        return model_choice(self.info, self.which)

    @property
    def signature(self) -> dict[str, Any]:
        """Of the model when it was measured, as `ModelSignature.to_dict` gives it."""
        return dict(getattr(self.info, self.which))


def measured_tokens(store: RunStore, token: TokenPlace) -> tuple[MeasuredToken | None, ...]:
    """A token as each model met it: the candidate, then the reference if there is one.

    With another tokenizer it is the first token that shares a character with it, or None. A
    `DataError` if a run is gone, has no such text, or did not hide that token.
    """
    run = store.open(token.run)
    row = run.row(token.example)
    measured = [(run.info, "model", row, row.scores)]
    if token.other:
        baseline_run = store.open(token.other)
        baseline_row = baseline_run.row(token.example)
        measured.append((baseline_run.info, "model", baseline_row, baseline_row.scores))
    elif row.reference is not None:
        measured.append((run.info, "baseline", row, row.reference))
    elif row.reference_text is not None:
        text = row.reference_text
        measured.append((run.info, "baseline", text, text.scores))
    if not 0 <= token.side < len(measured):
        raise DataError(f"run {run.info.name} measured one model alone: choose a token of it")
    chosen_row = measured[token.side][2]
    matches = np.flatnonzero(chosen_row.cols == token.position)
    if not len(matches):
        raise DataError(
            f"token {token.position} of text {token.example} was not hidden in run "
            f"{run.info.name}: choose a hidden token"
        )
    start, end = chosen_row.spans[matches[0]].tolist()
    tokens: list[MeasuredToken | None] = []
    for info, which, text, scores in measured:
        same_ids = np.array_equal(text.ids, chosen_row.ids)
        if same_ids and np.array_equal(text.cols, chosen_row.cols):
            entries = matches
        else:
            entries = np.flatnonzero((text.spans[:, 0] < end) & (text.spans[:, 1] > start))
        if len(entries):
            tokens.append(MeasuredToken(info, which, text, scores, int(entries[0])))
        else:
            tokens.append(None)
    return tuple(tokens)
