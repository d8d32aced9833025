"""A run as a file: one record a hidden token (csv, parquet) or a text (jsonl), or all (json)."""

import csv
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from fillmask_ui.errors import DataError, OptionError, unknown
from fillmask_ui.evaluation.rows import PARTS
from fillmask_ui.evaluation.schemes import Unmasking
from fillmask_ui.files import finished_file, text_file
from fillmask_ui.masking import KINDS
from fillmask_ui.records import SkippedText
from fillmask_ui.runs.store import Run

FORMATS = ("csv", "json", "jsonl", "parquet")

# Attributes of the record that holds them, in the order of their columns.
_TOKEN = ("cols", "true_ids", "tokens", "kinds", "shown_ids", "parts")
_SCORES = ("nll_nats", "ranks", "entropy_nats", "top_ids", "top_tokens", "top_probabilities")
# Where texts were filled step by step.
_WRITTEN = ("steps", "written_ids", "written_tokens", "written_probabilities")
_DIFFERENCES = ("kl_nats", "kl_reverse_nats", "mean_abs", "max_abs")
# Columns that are not named as an attribute without its plural s.
_COLUMNS = {
    "cols": "position",
    "true_ids": "token_id",
    "top_probabilities": "top_probability",
    "written_probabilities": "written_probability",
    "mean_abs": "mean_abs_logit_difference",
    "max_abs": "max_abs_logit_difference",
}
_NAMED = {"kinds": KINDS, "parts": PARTS}
_STRINGS = ("token", "kind", "part", "top_token", "written_token")
_WHOLE = ("text_id", "position", "token_id", "shown_id", "rank", "top_id", "step", "written_id")
_ROWS_A_GROUP = 20_000


def export(run: Run, target: Path, file_format: str | None = None) -> int:
    """Write a run, done or not, to a file; the number of records is returned.

    The format is one of `FORMATS`, by default the ending of the file's name; csv where it has none.

    Raises:
        OptionError: for an unknown format.
        DataError: if the file cannot be written, or pyarrow is missing for parquet.
    """
    chosen = (file_format or target.suffix.removeprefix(".") or "csv").lower()
    if chosen not in FORMATS:
        raise OptionError(unknown("export format", chosen, FORMATS))
    named = target.suffix.removeprefix(".").lower()
    if named in FORMATS and named != chosen:
        raise OptionError(f"{target} is named as {named}, and {chosen} was asked for: name it so")
    if chosen == "parquet":
        with finished_file(target) as fresh:
            return _write_parquet(run, fresh)
    with text_file(target) as file:
        return write_text(run, file, chosen)


def write_text(run: Run, file: TextIO, file_format: str) -> int:
    """Write a run as csv, json or jsonl to an open file; the number of records is returned."""
    if file_format == "csv":
        writer = csv.DictWriter(file, _columns(run), restval="", lineterminator="\n")
        writer.writeheader()
        return sum(1 for record in token_records(run) if writer.writerow(record))
    lines = (line.content.decode().rstrip("\n") for line in run.lines)
    if file_format == "jsonl":
        return sum(1 for line in lines if file.write(line + "\n"))
    head = {"run": run.info.to_dict(), "summary": run.summary().to_dict()}
    file.write(json.dumps(head, ensure_ascii=False)[:-1] + ', "rows": [')
    count = 0
    for count, line in enumerate(lines, start=1):
        file.write((",\n" if count > 1 else "\n") + line)
    file.write("\n]}\n")
    return count


def _column(attribute: str) -> str:
    """The column of an attribute.

    >>> _column("ranks"), _column("nll_nats"), _column("cols")
    ('rank', 'nll_nats', 'position')
    """
    plain = attribute if attribute.endswith("_nats") else attribute.removesuffix("s")
    return _COLUMNS.get(attribute, plain)


def _scores(run: Run) -> tuple[str, ...]:
    """Attributes of what a model says."""
    return _SCORES + (_WRITTEN if isinstance(run.info.config.scheme, Unmasking) else ())


def _columns(run: Run) -> list[str]:
    own = _scores(run)
    second = [f"baseline_{_column(name)}" for name in own]
    return ["text_id", *map(_column, _TOKEN + own), *second, *map(_column, _DIFFERENCES)]


def token_records(run: Run) -> Iterator[dict[str, Any]]:
    """One flat record for each hidden token of the run."""
    scores = _scores(run)
    for row in run.rows():
        if isinstance(row, SkippedText):
            continue
        columns: dict[str, Sequence[Any]] = {}
        for record, prefix, names in (
            (row, "", _TOKEN),
            (row.scores, "", scores),
            (row.baseline, "baseline_", scores),
            (row.difference, "", _DIFFERENCES),
        ):
            for name in names if record is not None else ():
                values = getattr(record, name)
                values = values if isinstance(values, tuple) else values.tolist()
                known = _NAMED.get(name)
                own = [known[value] for value in values] if known else values
                columns[prefix + _column(name)] = own
        for values in zip(*columns.values(), strict=True):
            yield {"text_id": row.id, **dict(zip(columns, values, strict=True))}


def _write_parquet(run: Run, target: Path) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise DataError("parquet needs pyarrow: pip install pyarrow, or export to csv") from error
    kinds = {**dict.fromkeys(_STRINGS, pa.string()), **dict.fromkeys(_WHOLE, pa.int64())}
    schema = pa.schema(
        [(name, kinds.get(name.removeprefix("baseline_"), pa.float64())) for name in _columns(run)]
    )
    records = token_records(run)
    count = 0
    with pq.ParquetWriter(target, schema) as writer:
        while group := list(itertools.islice(records, _ROWS_A_GROUP)):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
            count += len(group)
    return count
