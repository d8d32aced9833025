"""rows.jsonl of a run: one line per text, appended and flushed as it is measured.

A line holds what `EvaluatedText.to_dict` gives, or `{"id", "skipped"}`, the checksum of the text
that it was made from, as `plan` that of what the run measures (`RunInfo.plan_checksum`), and as
`crc` one of all that stands before it. A line without its newline is
half-written: readers leave it out, and a resumed run drops it. Others may have altered the file:
whatever is not as it was written is a `DataError` that names the run and the line.
"""

import json
import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluatedText
from fillmask_ui.evaluation.row_values import Count, Stored, String
from fillmask_ui.evaluation.rows import StoredModels
from fillmask_ui.json_text import parse_object
from fillmask_ui.records import SkippedText
from fillmask_ui.runs.files import open_file

# Of any line.
_OWN = {"id": Count(2**63 - 1), "checksum": Count(2**32 - 1)}
_REASON = String()
_CRC = b',"crc":'


# Of a line; a text of 1,000,000 characters with all of its tokens hidden takes a quarter.
MOST_BYTES = 2**28


@dataclass(frozen=True)
class Place:
    """Where a line stands."""

    start: int  # offset in bytes
    number: int  # from 1


@dataclass(frozen=True)
class Measured:
    """What a run that is done says of its rows."""

    rows: int  # texts that were skipped included
    texts: int
    tokens: int
    mean_nll_nats: float | None  # None where it is infinite


@dataclass(frozen=True)
class StoredLine:
    """One whole line."""

    name: str  # of run and line, for messages
    place: Place
    end: int  # offset in bytes of what follows it
    values: dict[str, Any]  # as stored; `id` and `checksum` are whole numbers
    models: StoredModels | None = None  # which models made the rows, where that is known
    intact: bool = True  # whether its `crc` is right; lines of earlier versions have none
    plan: int | None = None  # what its `plan` must be, where that is known and it has one

    @property
    def id(self) -> int:
        """Of the text."""
        return int(self.values["id"])

    @property
    def checksum(self) -> int:
        """Of the text that the row was made from."""
        return int(self.values["checksum"])

    def row(self) -> EvaluatedText | SkippedText:
        """What was measured; a `DataError` if a field is missing or not as it was written."""
        try:
            row = self._row()
        except ValueError as error:
            raise self.broken(str(error)) from error
        if not self.intact:
            raise self.broken("it is not as it was written")
        if self.plan is not None and self.values.get("plan", self.plan) != self.plan:
            raise self.broken(
                "it was measured by another model, on other texts or with other options than "
                "run.json says"
            )
        return row

    def _row(self) -> EvaluatedText | SkippedText:
        if "skipped" in self.values:
            _check(self.values, "skipped", _REASON)
            return SkippedText(self.id, self.values["skipped"])
        return EvaluatedText.from_dict(self.values, self.models)

    def broken(self, why: str) -> DataError:
        """What to say of a line that is not as it was written."""
        return DataError(f"{self.name}: {why}; delete the line or the run")


def dump_row(row: EvaluatedText | SkippedText, checksum: int, plan: int) -> bytes:
    """A line of the file, its newline included; `checksum` and `plan` as the module says."""
    values: dict[str, Any] = (
        {"id": row.id, "skipped": row.reason} if isinstance(row, SkippedText) else row.to_dict()
    )
    values |= {"checksum": checksum, "plan": plan}
    line = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    head = line[:-1].encode("utf-8", "surrogatepass")
    return head + _CRC + b"%d}\n" % zlib.crc32(head)


@dataclass(frozen=True)
class RowsFile:
    """The rows of one run, read one at a time; a file that is missing has none."""

    path: Path
    run: str  # its name
    models: StoredModels | None = None  # which models made the rows, where that is known
    measured: Measured | None = None  # what they amount to; None while more of them come
    plan: int | None = None  # `plan` of its lines, where that is known

    def __iter__(self) -> Iterator[StoredLine]:
        """All whole lines as they were written; a `DataError` if one is no row.

        At the end also if they are not those that were measured.
        """
        end, second = 0, None
        seen: set[int] = set()
        texts, tokens, nats = 0, 0, 0.0
        for number, content in enumerate(self._whole_lines(), start=1):
            line = self._line(content, Place(end, number))
            end = line.end
            if line.id in seen:
                raise line.broken(f"it repeats text {line.id}")
            seen.add(line.id)
            if "skipped" not in line.values:
                second = second or ("other" if "other" in line.values else "baseline")
                if second == "baseline" and "other" in line.values:
                    raise line.broken("it has other, where those before it have none")
                if second == "other" and "other" not in line.values:
                    raise line.broken("other is missing, which those before it have")
                losses = line.values.get("nll_nats")
                texts, tokens = texts + 1, tokens + (len(losses) if isinstance(losses, list) else 0)
                nats += _sum(losses)
            yield line
        if self.measured is not None:
            self._check_measured(self.measured, len(seen), texts, tokens, nats)

    def _check_measured(
        self, was: Measured, rows: int, texts: int, tokens: int, nats: float
    ) -> None:
        if rows < was.rows:
            raise DataError(
                f"run {self.run} measured {was.rows:,} texts and has the rows of {rows:,}: "
                f"{self.path} was altered; measure the missing ones with fillmask-ui eval --resume "
                f"{self.run}, or delete the run"
            )
        other = tokens != was.tokens or texts != was.texts
        if not other and tokens and was.mean_nll_nats is not None:
            other = not math.isclose(nats / tokens, was.mean_nll_nats, rel_tol=1e-6)
        if other:
            raise DataError(
                f"the rows of run {self.run} are not those that it measured: {self.path} or its "
                "run.json was altered; delete the run"
            )

    def __len__(self) -> int:
        return sum(1 for _ in self._whole_lines())

    def _whole_lines(self) -> Iterator[bytes]:
        try:
            with open_file(self.path) as file:
                lines = iter(partial(file.readline, MOST_BYTES), b"")
                for number, line in enumerate(lines, start=1):
                    if line.endswith(b"\n"):
                        yield line
                    elif len(line) == MOST_BYTES:
                        raise DataError(
                            f"run {self.run}, line {number}: it has more than {MOST_BYTES:,} "
                            "bytes, so it is no row; delete the line or the run"
                        )
        except FileNotFoundError:
            return
        except OSError as error:
            raise unreadable(self.run, self.path, error) from error

    def of(self, example: int) -> StoredLine | None:
        """The line of one text, by its id; None where it has none. Only that line is parsed."""
        start, head = 0, b'{"id":%d,' % example
        for number, content in enumerate(self._whole_lines(), start=1):
            if content.startswith(head):
                return self._line(content, Place(start, number))
            start += len(content)
        return None

    def at(self, place: Place) -> StoredLine:
        """The line at a place that was read before."""
        try:
            with open_file(self.path) as file:
                file.seek(place.start)
                return self._line(file.readline(), place)
        except OSError as error:
            raise unreadable(self.run, self.path, error) from error

    def _line(self, content: bytes, place: Place) -> StoredLine:
        name = f"run {self.run}, line {place.number}"
        return replace(parse_line(content, name, place, self.models), plan=self.plan)


def _sum(losses: Any) -> float:
    """NaN for what is no list of numbers, which is told where its row is read."""
    try:
        return math.fsum(losses)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def unreadable(run: str, path: Path, error: OSError) -> DataError:
    """What to say of rows that cannot be read."""
    why = error.strerror or error
    return DataError(
        f"run {run}: {path} cannot be read ({why}): make it readable or delete the run"
    )


def parse_line(
    content: bytes, name: str, place: Place = Place(0, 1), models: StoredModels | None = None
) -> StoredLine:
    """One whole line; a `DataError` if it is no row."""
    head, mark, crc = content.rpartition(_CRC)
    intact = not mark or crc.rstrip(b"}\r\n") == b"%d" % zlib.crc32(head)
    line = StoredLine(name, place, place.start + len(content), {}, models, intact)
    try:
        line.values.update(parse_object(content))
    except ValueError as error:
        raise line.broken(f"it is broken ({error})") from error
    line.values.pop("crc", None)
    try:
        for key, kind in _OWN.items():
            _check(line.values, key, kind)
    except ValueError as error:
        raise line.broken(str(error)) from error
    return line


def _check(values: Mapping[str, Any], key: str, kind: Stored) -> None:
    if key not in values:
        raise ValueError(f"{key} is missing")
    if not kind.fits(values[key], {}):
        raise kind.wrong(key, values[key], {})
