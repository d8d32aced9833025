"""Chapters of the course, read from the Markdown files in `texts/`.

A file begins with front matter in YAML, then each heading of the second level opens a step. A line
`[figure: NAME]` of its own is where a step has its figure; formulas are LaTeX between dollars.
Every number of a text is either computed, in `numbers`, or comes from a source, in `sources`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import yaml

_FIGURE = re.compile(r"^\[figure: ([a-z_]+)\]$", re.MULTILINE)


@dataclass(frozen=True)
class ChapterStep:
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
    steps: tuple[ChapterStep, ...]
    # Number as the text writes it -> the expression that gives it, and number -> its source.
    numbers: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)


@cache
def chapters() -> tuple[Chapter, ...]:
    """All chapters in order."""
    return tuple(map(_read, sorted((Path(__file__).parent / "texts").glob("*.md"))))


def _read(file: Path) -> Chapter:
    """A chapter; the name of its file is as `05-ledger.md`."""
    _, head, body = file.read_text(encoding="utf-8").split("---\n", 2)
    number, _, name = file.stem.partition("-")
    titles_and_texts = re.split(r"^## (.+)\n", body, flags=re.MULTILINE)[1:]
    steps = []
    for title, text in zip(titles_and_texts[::2], titles_and_texts[1::2], strict=True):
        before, *figure_and_after = _FIGURE.split(text)
        figure, after = figure_and_after or ("", "")
        steps.append(ChapterStep(title.strip(), before.strip(), figure, after.strip()))
    return Chapter(int(number), name, steps=tuple(steps), **yaml.safe_load(head))
