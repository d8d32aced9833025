"""A line of rows.jsonl: `EvaluatedText.to_dict` or `{"id", "skipped"}`, and the text's checksum."""

import json
import zlib
from dataclasses import dataclass
from typing import Any

from fillmask_ui.evaluation import EvaluatedText
from fillmask_ui.evaluation.rows import nested, row_values
from fillmask_ui.records import SkippedText
from fillmask_ui.schema import from_json, from_trusted_values


@dataclass(frozen=True)
class StoredRow:
    """A line, read."""

    row: EvaluatedText | SkippedText
    checksum: int  # `checksum` of the text
    content: bytes  # the whole line, its newline included
    start: int  # offset in bytes


def checksum(text: str) -> int:
    """CRC-32 of the UTF-8 bytes of a text."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def dump_row(row: EvaluatedText | SkippedText, checksum: int) -> bytes:
    """A line of the file, its newline included; the checksum is that of the text."""
    values = row_values(row) | {"checksum": checksum}
    line = json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n"
    return line.encode("utf-8", "replace")  # of lone surrogates no JSON reader knows


def read_row(content: bytes, title: str, start: int = 0) -> StoredRow:
    """One whole line; the `DataError` for a line that is not a row begins with `title`."""
    values = from_json(dict[str, Any], content, title)
    row: EvaluatedText | SkippedText
    if "skipped" in values:
        row = from_trusted_values(SkippedText, {**values, "reason": values["skipped"]}, title)
    else:
        row = from_trusted_values(EvaluatedText, nested(values), title)
    return StoredRow(row, from_trusted_values(int, values.get("checksum"), title), content, start)
