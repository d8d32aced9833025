"""A line of rows.jsonl: what was measured of one text, and the checksum of that text.

A line holds what `EvaluatedText.to_dict` gives, or `{"id", "skipped"}`. Seals of earlier versions
are passed over.
"""

import json
import zlib
from dataclasses import dataclass
from typing import Annotated, Any

from fillmask_ui.evaluation import EvaluatedText
from fillmask_ui.records import InJson, SkippedText
from fillmask_ui.schema import from_json


@dataclass(frozen=True)
class StoredRow:
    """What a line holds."""

    row: Annotated[EvaluatedText | SkippedText, InJson(beside=True)]
    checksum: int  # `checksum` of the text


def checksum(text: str) -> int:
    """CRC-32 of the UTF-8 bytes of a text, which shows whether it has changed."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def dump_row(row: EvaluatedText | SkippedText, checksum: int) -> bytes:
    """A line of the file, its newline included; the checksum is that of the text."""
    values: dict[str, Any] = (
        {"id": row.id, "skipped": row.reason} if isinstance(row, SkippedText) else row.to_dict()
    )
    values["checksum"] = checksum
    line = json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n"
    return line.encode("utf-8", "replace")  # of lone surrogates no JSON reader knows


def read_row(content: bytes, what: str) -> StoredRow:
    """One whole line; the `DataError` for a line that is not a row begins with `what`."""
    return from_json(StoredRow, content, what)
