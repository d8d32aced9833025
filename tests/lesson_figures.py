"""Figures of the course, and HTML as a browser would see it, without one."""

import re
from contextlib import suppress
from html.parser import HTMLParser
from typing import Any

from fillmask_ui.features.course.exercises.exercise import Choice, Exercise, Numeric
from fillmask_ui.features.course.learn_figures import FIGURES
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.ui.figure import Asked, Shown
from fillmask_ui.ui.job import Unfinished
from fillmask_ui.ui.session import Session


def show_figure(session: Session, model: MaskedLM | None, name: str, **values: Any) -> Shown:
    """What a figure shows of some values, asked again until it is known."""
    asked = Asked(session, {key: str(value) for key, value in values.items()}, model)
    for _ in range(300):  # each waits for a moment
        with suppress(Unfinished):
            return FIGURES[name].show(asked)
    raise AssertionError(f"{name} went on for minutes")


def right_response(exercise: Exercise) -> str:
    """What a reader types, chooses or orders who is right."""
    if isinstance(exercise, Numeric):
        return f"{exercise.answer:.{exercise.decimals + 1}f}"
    return (
        str(exercise.right) if isinstance(exercise, Choice) else ",".join(map(str, exercise.order))
    )


def text_of(html: str) -> str:
    """What a reader sees; blocks and cells stand apart."""
    apart = re.sub(r"(?=</?(?:t[dh]|d[td]|p|h4|li|text)\b)", " ", html)
    return " ".join(Tags(apart).text.split())


def cells(html: str) -> list[list[str]]:
    """The cells of each row of the body of a table, as text."""
    body = html.split("<tbody>")[1].split("</tbody>")[0]
    rows = re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    return [
        [text_of(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)] for row in rows
    ]


class Tags(HTMLParser):
    """The tags and attributes that a browser would see, and the text."""

    def __init__(self, source):
        super().__init__()
        self.names, self.attributes, self.text = set(), set(), ""
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text += data
