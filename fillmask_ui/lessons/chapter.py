"""Chapters of the course, read from the Markdown files in `texts/`.

A file begins with front matter in YAML, then each heading of the second level opens a step. A line
`[figure: NAME]` of its own is where a step has its figure; formulas are LaTeX between dollars.
Every number of a text is either computed, in `numbers`, or comes from a source, in `given`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

_FIGURE = re.compile(r"^\[figure: ([a-z_]+)\]$", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """What a projector shows at once: a heading, some text, and at most one figure."""

    title: str
    text: str  # Markdown, above the figure
    figure: str = ""  # its name
    after: str = ""  # Markdown, below the figure


@dataclass(frozen=True)
class Chapter:
    """One chapter of the course."""

    number: int  # from 1
    name: str  # in links
    title: str
    question: str  # that it answers
    steps: tuple[Step, ...]
    numbers: Mapping[str, str]  # number as the text writes it -> the expression that gives it
    given: Mapping[str, str]  # number as written -> its source


@cache
def chapters() -> tuple[Chapter, ...]:
    """All chapters in order."""
    files = sorted((Path(__file__).parent / "texts").glob("*.md"))
    return tuple(read_chapter(file.name, file.read_text(encoding="utf-8")) for file in files)


def read_chapter(file_name: str, source: str) -> Chapter:
    r"""A chapter from the text of its file, whose name is as `05-ledger.md`.

    A `ValueError` if the front matter is missing or a step has two figures.

    >>> head = "---\ntitle: T\nquestion: Q?\n---\n"
    >>> read_chapter("02-loss.md", head + "## A\nbefore\n\n[figure: curve]\n\nafter").steps
    (Step(title='A', text='before', figure='curve', after='after'),)
    """
    parts = source.split("---\n", 2)
    if len(parts) != 3 or parts[0].strip():
        raise ValueError(f"{file_name} does not begin with front matter between two lines of ---")
    head = yaml.safe_load(parts[1])
    number, _, name = file_name.removesuffix(".md").partition("-")
    pieces = re.split(r"^## (.+)\n", parts[2], flags=re.MULTILINE)[1:]
    steps = [_step(title, text) for title, text in zip(pieces[::2], pieces[1::2], strict=True)]
    return Chapter(
        int(number),
        name,
        head["title"],
        head["question"],
        tuple(steps),
        head.get("numbers") or {},
        head.get("given") or {},
    )


def _step(title: str, text: str) -> Step:
    before, *rest = _FIGURE.split(text)
    if len(rest) > 2:
        raise ValueError(f"the step {title!r} has more than one figure: make two steps of it")
    figure, after = rest or ("", "")
    return Step(title.strip(), before.strip(), figure, after.strip())
