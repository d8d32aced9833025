"""Recorded outputs: how they are stored, and what counts as the same.

`RECORD_OUTPUTS=1 python -m pytest tests/recorded` writes anew what has changed; a file that counts
as the same stays. Look at each difference before it is committed: the files are what users and
programs rely on. Numbers, words and keys are recorded; sentences and the marks of a page are not.

- `outputs/json/NAME.json`: JSON of commands (`check_json`), and the figures of what a terminal
  shows;
- `outputs/json/page/GROUP.json`: what a browser asks of the page, and the figures of the answers;
- `outputs/text/`: tables in CSV (`check_csv`).
"""

import csv
import io
import json
import math
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

OUTPUTS = Path(__file__).parent / "outputs"
RECORD = bool(os.environ.get("RECORD_OUTPUTS"))

# What rightly differs from one call to the next: the time in the name of a fresh run, versions,
# what the processor can do.
_CHANGING = (
    (re.compile(r"\b\d{8}-\d{6}-"), "@TIME@-"),
    (
        re.compile(
            r"\b(fillmask-ui|onnxruntime|transformers|tokenizers|numpy|torch):\d[\w.+]*(?=$|[|\s])"
        ),
        r"\1:@VERSION@",
    ),
    (re.compile(r"(cpu:)[\w,+-]+"), r"\1@CPU@"),
    # Of files that libraries write, each version in its own way.
    (re.compile(r"\b(config|tokenizer):[0-9a-f]{12}\b"), r"\1:@HASH@"),
)
_DECIMAL = re.compile(r"\d+\.\d+(?:e[-+]?\d+)?")
_FLOAT = re.compile(r"-?\d+\.\d+(?:e-?\d+)?|-?\d+e-?\d+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
# Under these JSON holds what depends on the clock, on the machine or on the library that wrote a
# file.
_OF_HERE = (
    *("token_times", "sentence_times", "speedup", "speedup_interval_95", "busy"),
    *("duration_seconds", "cpu_features", "runtime"),
)


def steady(text: str) -> str:
    """A text without what changes from one call to the next."""
    for pattern, instead in _CHANGING:
        text = pattern.sub(instead, text)
    return text


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


def anywhere(value: Any, *, also: tuple[str, ...] = ()) -> Any:
    """Values with the type in place of what is only so here; `also` are further such keys."""
    if isinstance(value, list):
        return [anywhere(entry, also=also) for entry in value]
    if not isinstance(value, dict):
        return value
    return {
        key: f"@{type(entry).__name__}@"
        if key in (*_OF_HERE, *also)
        else anywhere(entry, also=also)
        for key, entry in value.items()
    }


def decimals(text: str) -> str:
    """The decimal numbers that a text shows, in their order.

    >>> decimals("cat 25.4% 1.372 nats at mask 3")
    '25.4 1.372'
    """
    return " ".join(_DECIMAL.findall(text))


class _Shown(HTMLParser):
    """The decimal numbers that a reader sees, and those in data-* attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.numbers = list[str]()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        data = [value or "" for name, value in attrs if name.startswith("data-")]
        self.numbers += [value for value in data if _FLOAT.fullmatch(value)]

    def handle_data(self, data: str) -> None:
        self.numbers += _DECIMAL.findall(data)


# Under these an answer of the page holds HTML, by itself or by the names of places.
_HTML = ("html", "pieces", "story")
# Sentences, and what names a state or a model.
_WORDING = ("notice", "error", "texts", "label", "count", "model", "version", "name", "type")


def figures(answer: Any, *, html: bool = False) -> Any:
    """An answer of the page without its wording: numbers and words as they are, numbers of HTML.

    >>> figures({"html": "<td data-value='1.5'>a <b>1.50</b></td>", "masks": 1, "notice": "Try"})
    {'html': '1.5 1.50', 'masks': 1}
    """
    if isinstance(answer, dict):
        if answer.keys() == {"name", "type", "text"}:
            return _file(answer["type"], answer["text"])
        values = {
            key: figures(value, html=html or key in _HTML)
            for key, value in answer.items()
            if key not in _WORDING or html
        }
        return {key: value for key, value in values.items() if value not in ("", {}, [])}
    if isinstance(answer, list):
        return [figures(value, html=html) for value in answer]
    if html and isinstance(answer, str):
        return " ".join(_Shown(answer).numbers)
    return answer


def _file(kind: str, text: str) -> Any:
    """What a file to save holds."""
    if kind == "application/json":
        return _steady_values(json.loads(text))
    if kind.endswith("jsonl"):
        return anywhere(parsed(text))
    return cells(text)


def cells(table: str) -> list[list[str | float]]:
    """The cells of a table in CSV, decimal numbers as floats."""
    rows = csv.reader(io.StringIO(table))
    return [[float(cell) if _FLOAT.fullmatch(cell) else cell for cell in row] for row in rows]


def check_json(name: str, current: Any, *, close: bool = False) -> None:
    """Hold values against the recorded ones of that name: floats to 12 digits, all else exactly.

    With `close`, floats may differ by 1 in 10,000 and shown decimals by one in the last place:
    kernels of models in float32 round differently on other CPUs.
    """
    path = OUTPUTS / "json" / f"{name}.json"
    if RECORD and not (
        path.exists() and not differing(json.loads(path.read_text("utf-8")), current, close=close)
    ):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(current, ensure_ascii=False, indent=1) + "\n", "utf-8")
    _refuse(path, differing(json.loads(path.read_text("utf-8")), current, close=close))


def check_csv(name: str, current: str) -> None:
    """Hold a table against the recorded one of that name: floats to 12 digits."""
    path = OUTPUTS / "text" / f"{name}.csv"
    if RECORD:
        path.parent.mkdir(exist_ok=True)
        path.write_text(current, "utf-8", newline="")
    _refuse(path, differing(cells(path.read_text("utf-8")), cells(current)))


def _refuse(path: Path, differences: list[str]) -> None:
    listed = "\n".join(differences[:20])
    assert not differences, f"{path.name}: {len(differences)} differ\n{listed}"


def differing(recorded: Any, current: Any, where: str = "", *, close: bool = False) -> list[str]:
    """Where two JSON values differ, and how.

    The models' logits have the same bits everywhere, but exp and log of numpy may differ in the
    last bit between CPUs, and a difference of two losses near zero keeps the noise of both.

    >>> differing({"a": [1, 2.0]}, {"a": [1, 2.1]})
    ['.a[1]: was 2.0, is 2.1']
    """
    pairs: list[tuple[Any, Any, str]] = []
    if isinstance(recorded, dict) and isinstance(current, dict):
        lost, gained = recorded.keys() - current.keys(), current.keys() - recorded.keys()
        if lost or gained:
            return [f"{where}: lost the keys {sorted(lost)}, gained {sorted(gained)}"]
        pairs = [(recorded[key], current[key], f"{where}.{key}") for key in recorded]
    elif isinstance(recorded, list) and isinstance(current, list):
        if len(recorded) != len(current):
            return [f"{where}: had {len(recorded)} entries, has {len(current)}"]
        entries = enumerate(zip(recorded, current, strict=True))
        pairs = [(old, new, f"{where}[{index}]") for index, (old, new) in entries]
    elif type(recorded) is not type(current) or not _same(recorded, current, close):
        return [f"{where}: was {recorded!r}, is {current!r}"]
    return [difference for pair in pairs for difference in differing(*pair, close=close)]


def _same(recorded: Any, current: Any, close: bool) -> bool:
    if isinstance(recorded, float):
        relative, absolute = (1e-4, 1e-6) if close else (1e-12, 1e-13)
        return math.isclose(recorded, current, rel_tol=relative, abs_tol=absolute)
    if not close or not isinstance(recorded, str) or recorded == current:
        return bool(recorded == current)
    texts = _NUMBER.sub("#", recorded), _NUMBER.sub("#", current)
    pairs = zip(_NUMBER.findall(recorded), _NUMBER.findall(current), strict=False)
    return texts[0] == texts[1] and all(_near(*pair) for pair in pairs)


def _near(recorded: str, current: str) -> bool:
    """Whether two shown numbers are the same but for one in the last place, or 1 in 10,000."""
    digits, _, exponent = recorded.partition("e")
    digits_kept = min(len(digits.partition(".")[2]) - int(exponent or 0), 6)
    room = 1.01 * 10.0**-digits_kept if digits_kept else 0.0
    return abs(float(recorded) - float(current)) <= room + 1e-4 * abs(float(recorded))
