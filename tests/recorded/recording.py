"""Recorded outputs: how they are stored, and what counts as the same.

`RECORD_OUTPUTS=1 python -m pytest tests/recorded` writes anew what has changed; a file that counts
as the same stays. Look at each difference before it is committed: the files are what users and
programs have relied on.

- `outputs/json/NAME.json`: JSON of commands, of the endpoints and of the public surface
  (`check_json`);
- `outputs/json/page/GROUP.json`: what the functions of the page answer to a browser, HTML as its
  text and data-* attributes; variants and sweeps are recorded in the same way (`check_shown`);
- `outputs/text/`: what a terminal or the reader of a report sees (`check_text`, `check_csv`).
"""

import csv
import difflib
import io
import itertools
import json
import math
import os
import re
from collections.abc import Callable
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

OUTPUTS = Path(__file__).parent / "outputs"
RECORD = bool(os.environ.get("RECORD_OUTPUTS"))

# What rightly differs from one call to the next: the time in the name of a fresh run, versions,
# what the processor can do.
_CHANGING = (
    (re.compile(r"\b(?!2026010)\d{8}-\d{6}-"), "@TIME@-"),
    (
        re.compile(
            r"\b(fillmask-ui|onnxruntime|transformers|tokenizers|numpy|torch):\d[\w.+]*(?=$|[|\s])"
        ),
        r"\1:@VERSION@",
    ),
    (re.compile(r"(cpu:)[\w,+-]+"), r"\1@CPU@"),
    # Of files that libraries write, each version in its own way.
    (re.compile(r"\b(config|tokenizer):[0-9a-f]{12}\b"), r"\1:@HASH@"),
    (re.compile(r"(?<!')\bavx2(?:, (?:avx|amx)\w+)*"), "@CPU@"),
)
_DECIMAL = re.compile(r"(\d+(?:\.\d+(?:e[-+]?\d+)?|e-\d+))")
_WORD = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*(?:e[-+]?\d+)?|\S")
# Under these JSON holds what depends on the clock, on the machine or on the library that wrote a
# file.
_OF_HERE = (
    *("token_times", "sentence_times", "speedup", "speedup_interval_95", "busy"),
    *("duration_seconds", "cpu_features", "runtime"),
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


_HIDDEN = ("script", "style")
_INLINE = ("b", "code", "em", "i", "mark", "span", "strong", "a", "small", "sub", "sup")


class _Page(HTMLParser):
    """What a reader sees, a line for each block or row of a table, and the values of data-*."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.data, self._hidden = "", dict[str, list[str]](), 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in _HIDDEN
        self._part(tag)
        for name, value in attrs:
            if name.startswith("data-"):
                self.data.setdefault(name, []).append(steady(value or ""))

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in _HIDDEN
        self._part(tag)

    def _part(self, tag: str) -> None:
        if tag not in _INLINE:
            self.text += " " if tag in ("td", "th") else "\n"

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text += " ".join(data.splitlines()) if data.strip() else " "


def page_lines(page: str) -> list[str]:
    """What a reader of an HTML page sees, a line for each block or row of a table."""
    return visible_lines(_Page(page).text)


# Under these an answer of the page holds HTML, by itself or by the names of places.
_HTML = ("html", "pieces", "story")
# How a page says what it runs on.
_ON_PAGE = (
    (re.compile(r"\b(onnxruntime|transformers|tokenizers|numpy) \d[\w.+]*"), r"\1 @VERSION@"),
    (re.compile(r"\b(CPU )\w+(?:, \w+)*(?= ·)"), r"\1@CPU@"),
)


def seen(answer: Any, *, html: bool = False, root: str = "") -> Any:
    """An answer of the page with its HTML as the text that a reader sees and the data in it.

    The path of a folder, `root`, is left out.

    >>> seen({"html": '<p data-key="1:7">a <b>cat</b></p>', "masks": 1})
    {'html': {'text': ['a cat'], 'data': {'data-key': ['1:7']}}, 'masks': 1}
    """
    if isinstance(answer, dict):
        if answer.keys() == {"name", "type", "text"}:
            answer = {**answer, "text": _file(answer["type"], answer["text"])}
        return {
            key: seen(value, html=html or key in _HTML, root=root) for key, value in answer.items()
        }
    if isinstance(answer, list):
        return [seen(value, html=html, root=root) for value in answer]
    if not isinstance(answer, str):
        return answer
    if root:
        answer = answer.replace(root, "@ROOT@").replace(quote(root, safe=""), "@ROOT@")
    if not html:
        return steady(answer)
    if not answer.strip():
        return ""
    for pattern, instead in _ON_PAGE:
        answer = pattern.sub(instead, answer)
    page = _Page(answer)
    return {"text": visible_lines(page.text), "data": page.data}


def _file(kind: str, text: str) -> Any:
    """What a file of that media type holds: values of JSON, else lines."""
    if kind == "application/json":
        return json.loads(text)
    lines = text.splitlines()
    return anywhere([json.loads(line) for line in lines]) if kind.endswith("jsonl") else lines


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


def check_json(name: str, found: Any, *, more: bool = False) -> None:
    """Hold values against the recorded ones of that name: floats to 12 digits, all else exactly.

    With `more`, objects may have gained keys.
    """
    _hold(name, found, differing, partial(differing, more=more), indent=1)


def check_shown(name: str, found: Any, *, close: bool = False) -> None:
    """Hold answers of `seen` against the recorded ones of that name.

    Numbers in texts and data are compared as numbers, and how a text is broken into lines does
    not count. With `close`, floats may differ by 1 in 10,000 and shown decimals by one in the last
    place: kernels of models in float32 round differently on other CPUs.
    """

    def changes(recorded: Any, found: Any) -> list[str]:
        return differing(_words(recorded), _words(found), same=partial(_alike, close=close))

    _hold(name, found, changes, changes, indent=0)


Changes = Callable[[Any, Any], list[str]]


def _hold(name: str, found: Any, anew: Changes, wrong: Changes, indent: int) -> None:
    """Refuse what is `wrong`; if that is asked for, write first what `anew` finds to differ."""
    path = OUTPUTS / "json" / f"{name}.json"
    if RECORD and not (path.exists() and not anew(json.loads(path.read_text("utf-8")), found)):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(found, ensure_ascii=False, indent=indent) + "\n", "utf-8")
    _refuse(path, wrong(json.loads(path.read_text("utf-8")), found))


def _words(value: Any) -> Any:
    """Each text of a page as its words, numbers and marks."""
    if isinstance(value, list):
        return [_words(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if value.keys() != {"text", "data"}:
        return {key: _words(entry) for key, entry in value.items()}
    return {"text": _WORD.findall(" ".join(value["text"])), "data": value["data"]}


def _alike(recorded: Any, found: Any, *, close: bool) -> bool:
    """Whether two values are the same but for the last digits of their decimal numbers."""
    if isinstance(recorded, str):
        if recorded == found:
            return True
        pairs = [_DECIMAL.split(text) for text in (recorded, found)]
        texts, numbers = ([parts[start::2] for parts in pairs] for start in (0, 1))
        return texts[0] == texts[1] and all(
            _alike(float(old), float(new), close=False)
            or (close and abs(float(old) - float(new)) <= _last_place(old) + 1e-4 * abs(float(old)))
            for old, new in zip(*numbers, strict=True)
        )
    if close and isinstance(recorded, float):
        return math.isclose(recorded, found, rel_tol=1e-4, abs_tol=1e-6)
    return _same(recorded, found)


def _last_place(number: str) -> float:
    """One in the last decimal place that is shown, with a little room; of a full one, 1e-6."""
    digits, _, exponent = number.lower().partition("e")
    places = len(digits.partition(".")[2]) - int(exponent or 0)
    return 1.01 * 10.0 ** -min(places, 6) if places <= 6 else 1e-6


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


def differing(
    recorded: Any,
    found: Any,
    where: str = "",
    *,
    more: bool = False,
    same: Callable[[Any, Any], bool] | None = None,
) -> list[str]:
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
    elif type(recorded) is not type(found) or not (same or _same)(recorded, found):
        return [f"{where}: was {recorded!r}, is {found!r}"]
    return [difference for pair in pairs for difference in differing(*pair, more=more, same=same)]


def _same(recorded: Any, found: Any) -> bool:
    if isinstance(recorded, float):
        return math.isclose(recorded, found, rel_tol=1e-12, abs_tol=1e-13)
    return recorded == found
