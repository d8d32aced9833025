"""A run as a file: one record a hidden token (csv, parquet) or a text (jsonl), or all (json)."""

import csv
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from fillmask_ui.errors import DataError, OptionError, unknown
from fillmask_ui.evaluation.rows import PARTS
from fillmask_ui.evaluation.schemes import Unmasking
from fillmask_ui.masking import KINDS
from fillmask_ui.output import finished_file, printable, text_file
from fillmask_ui.records import SkippedText
from fillmask_ui.runs.store import Run

FORMATS = ("csv", "json", "jsonl", "parquet")

# Column of a flat record -> attribute of the record that holds it.
_TOKEN = {
    "position": "cols",
    "token_id": "true_ids",
    "token": "tokens",
    "kind": "kinds",
    "shown_id": "shown_ids",
    "part": "parts",
}
_SCORES = {
    "nll_nats": "nll_nats",
    "rank": "ranks",
    "entropy_nats": "entropy_nats",
    "top_id": "top_ids",
    "top_token": "top_tokens",
    "top_probability": "top_probabilities",
}
# Where texts were filled step by step.
_WRITTEN = {
    "step": "steps",
    "written_id": "written_ids",
    "written_token": "written_tokens",
    "written_probability": "written_probabilities",
}
_DIFFERENCES = {
    "kl_nats": "kl_nats",
    "kl_reverse_nats": "kl_reverse_nats",
    "mean_abs_logit_difference": "mean_abs",
    "max_abs_logit_difference": "max_abs",
}
_NAMED = {"kind": KINDS, "part": PARTS}
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
        if target.exists() and not target.is_file():
            raise OptionError(f"{target} is a pipe or a device, and parquet needs a file: name one")
        with finished_file(target) as fresh:
            return _write_parquet(run, fresh)
    with text_file(target) as file:
        return write_text(run, file, chosen)


def write_text(run: Run, file: TextIO, file_format: str) -> int:
    """Write a run as csv, json or jsonl to an open file; the number of records is returned."""
    if file_format == "csv":
        writer = csv.DictWriter(file, _columns(run), restval="", lineterminator="\n")
        writer.writeheader()
        return _count(writer.writerow(record) for record in token_records(run))
    lines = (line.content.decode().rstrip("\n") for line in run.lines)
    if file_format == "jsonl":
        return _count(file.write(line + "\n") for line in lines)
    head = {"run": run.info.to_dict(), "summary": run.summary().to_dict()}
    file.write(json.dumps(head, ensure_ascii=False)[:-1] + ', "rows": [')
    count = 0
    for count, line in enumerate(lines, start=1):
        file.write((",\n" if count > 1 else "\n") + line)
    file.write("\n]}\n")
    return count


def _scores(run: Run) -> dict[str, str]:
    """Columns of what a model says, and the attributes they come from."""
    return _SCORES | (_WRITTEN if isinstance(run.info.config.scheme, Unmasking) else {})


def _columns(run: Run) -> tuple[str, ...]:
    own = _scores(run)
    return ("text_id", *_TOKEN, *own, *(f"baseline_{name}" for name in own), *_DIFFERENCES)


def _count(written: Iterable[Any]) -> int:
    return sum(1 for _ in written)


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
            for name, attribute in names.items() if record is not None else ():
                values = getattr(record, attribute)
                values = values if isinstance(values, tuple) else values.tolist()
                known = _NAMED.get(name)
                columns[prefix + name] = [known[value] for value in values] if known else values
        for values in zip(*columns.values(), strict=True):
            yield {"text_id": row.id, **dict(zip(columns, values, strict=True))}


def _write_parquet(run: Run, target: Path) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise DataError(
            "parquet needs pyarrow: pip install pyarrow, or export to csv or jsonl"
        ) from error

    kinds = {**dict.fromkeys(_STRINGS, pa.string()), **dict.fromkeys(_WHOLE, pa.int64())}
    schema = pa.schema(
        [(name, kinds.get(name.removeprefix("baseline_"), pa.float64())) for name in _columns(run)]
    )
    records = token_records(run)
    count = 0
    with pq.ParquetWriter(target, schema) as writer:
        while group := list(itertools.islice(records, _ROWS_A_GROUP)):
            # Arrow holds UTF-8 alone.
            plain = [
                {name: printable(own) if isinstance(own, str) else own for name, own in one.items()}
                for one in group
            ]
            writer.write_table(pa.Table.from_pylist(plain, schema=schema))
            count += len(group)
    return count
