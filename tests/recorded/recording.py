"""Recorded outputs: how they are stored, and what counts as the same.

`RECORD_OUTPUTS=1 python -m pytest tests/recorded` writes them anew.
"""

from __future__ import annotations

import csv
import difflib
import io
import itertools
import json
import math
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

OUTPUTS = Path(__file__).parent / "outputs"
RECORD = bool(os.environ.get("RECORD_OUTPUTS"))

# What rightly differs from one call to the next: the time in the name of a fresh run, versions.
_CHANGING = (
    (re.compile(r"\b(?!2026010)\d{8}-\d{6}-"), "@TIME@-"),
    (
        re.compile(
            r"\b(fillmask-ui|onnxruntime|transformers|tokenizers|numpy|torch):\d[\w.+]*(?=$|[|\s])"
        ),
        r"\1:@VERSION@",
    ),
    (re.compile(r"(cpu:)[\w,+-]+"), r"\1@CPU@"),
)
# Frames of tables and panels.
_FRAMES = re.compile(r"[\u2500-\u257f]")


def steady(text: str) -> str:
    """A text without what changes from one call to the next."""
    for pattern, instead in _CHANGING:
        text = pattern.sub(instead, text)
    return text


def visible_lines(text: str) -> list[str]:
    """Words and figures of what the terminal shows, without frames and alignment."""
    lines = (" ".join(_FRAMES.sub(" ", line).split()) for line in steady(text).splitlines())
    return [line for line in lines if line]


class _VisibleText(HTMLParser):
    """The text of a page a line for each block; scripts and styles left out."""

    _HIDDEN = ("script", "style")
    _INLINE = ("b", "code", "em", "i", "mark", "span", "strong", "a", "small", "sub", "sup")
    _CELLS = ("td", "th")

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in self._HIDDEN
        self._part(tag)

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in self._HIDDEN
        self._part(tag)

    def _part(self, tag: str) -> None:
        if tag not in self._INLINE:
            self.parts.append(" " if tag in self._CELLS else "\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(" ".join(data.splitlines()) if data.strip() else " ")


def page_lines(page: str) -> list[str]:
    """What a reader of an HTML page sees, a line for each block or row of a table."""
    parser = _VisibleText()
    parser.feed(page)
    return visible_lines("".join(parser.parts))


def parsed(text: str) -> Any:
    """JSON, one value a line, without what changes from one call to the next."""
    return [_steady_values(json.loads(line)) for line in text.splitlines()]


def _steady_values(value: Any) -> Any:
    if isinstance(value, str):
        return steady(value)
    if isinstance(value, list):
        return [_steady_values(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _steady_values(entry) for key, entry in value.items()}
    return value


def check_json(name: str, found: Any, *, more: bool = False) -> None:
    """Hold values against the recorded ones of that name: floats to 12 digits, all else exactly.

    With `more`, objects may have gained keys.
    """
    path = OUTPUTS / "json" / f"{name}.json"
    if RECORD:
        path.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", "utf-8")
    _refuse(path, differing(json.loads(path.read_text("utf-8")), found, more=more))


def check_text(name: str, found: list[str]) -> None:
    """Hold lines against the recorded ones of that name."""
    path = OUTPUTS / "text" / f"{name}.txt"
    if RECORD:
        path.write_text("\n".join(found) + "\n", "utf-8")
    # Not splitlines, which also breaks at characters that may stand in a text.
    recorded = path.read_text("utf-8").removesuffix("\n").split("\n")
    changes = difflib.unified_diff(recorded, found, "recorded", "found", n=0, lineterm="")
    assert found == recorded, f"{path.name}:\n" + "\n".join(itertools.islice(changes, 40))


def check_csv(name: str, found: str) -> None:
    """Hold a table against the recorded one of that name: floats to 12 digits."""
    path = OUTPUTS / "text" / f"{name}.csv"
    if RECORD:
        path.write_text(found, "utf-8", newline="")
    with path.open(encoding="utf-8", newline="") as file:
        recorded = [[_cell(cell) for cell in row] for row in csv.reader(file)]
    rows = [[_cell(cell) for cell in row] for row in csv.reader(io.StringIO(found))]
    _refuse(path, differing(recorded, rows))


def _refuse(path: Path, differences: list[str]) -> None:
    shown = "\n".join(differences[:20])
    assert not differences, f"{path.name}: {len(differences)} differ\n{shown}"


def _cell(value: str) -> str | float:
    return float(value) if re.fullmatch(r"-?\d+\.\d+(e-?\d+)?", value) else value


def differing(recorded: Any, found: Any, where: str = "", *, more: bool = False) -> list[str]:
    """Where two JSON values differ, and how.

    The models' logits have the same bits everywhere, but exp and log of numpy may differ in the
    last bit between CPUs, and a difference of two losses near zero keeps the noise of both.

    >>> differing({"a": [1, 2.0]}, {"a": [1, 2.1]})
    ['.a[1]: was 2.0, is 2.1']
    """
    pairs: list[tuple[Any, Any, str]] = []
    if isinstance(recorded, dict) and isinstance(found, dict):
        lost = recorded.keys() - found.keys()
        gained = [] if more else found.keys() - recorded.keys()
        if lost or gained:
            return [f"{where}: lost the keys {sorted(lost)}, gained {sorted(gained)}"]
        pairs = [(recorded[key], found[key], f"{where}.{key}") for key in recorded]
    elif isinstance(recorded, list) and isinstance(found, list):
        if len(recorded) != len(found):
            return [f"{where}: had {len(recorded)} entries, has {len(found)}"]
        entries = enumerate(zip(recorded, found, strict=True))
        pairs = [(old, new, f"{where}[{index}]") for index, (old, new) in entries]
    elif type(recorded) is not type(found) or not _same(recorded, found):
        return [f"{where}: was {recorded!r}, is {found!r}"]
    return [difference for pair in pairs for difference in differing(*pair, more=more)]


def _same(recorded: Any, found: Any) -> bool:
    if isinstance(recorded, float):
        return math.isclose(recorded, found, rel_tol=1e-12, abs_tol=1e-13)
    return recorded == found
