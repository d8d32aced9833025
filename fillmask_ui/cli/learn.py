"""`fillmask-ui learn`: the page, opened at a chapter of the course."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

import typer

from fillmask_ui.cli.options import Host, PickedModel, Port, option
from fillmask_ui.cli.serve import start_page
from fillmask_ui.cli.terminal import say
from fillmask_ui.errors import OptionError
from fillmask_ui.lessons import Chapter, chapters


def learn(
    chapter: Annotated[
        str, typer.Argument(help="Name or number of a chapter; the first if not given.")
    ] = "1",
    host: Host = None,
    port: Port = None,
    model: PickedModel = "embedded",
    open_browser: Annotated[
        bool, option("Open the page in the browser.", "--open/--no-open")
    ] = True,
) -> None:
    """Open the page at a chapter of the course on the masked-LM loss."""
    link = urlencode({"tab": "learn", "chapter": chapter_called(chapter).name})
    if not open_browser:
        say(f"The chapter is at /?{link} of the page.")
    start_page(model, host=host, port=port, link=link if open_browser else None)


def chapter_called(name: str) -> Chapter:
    """The chapter of a name or number; an `OptionError` lists all.

    >>> chapter_called("5").name, chapter_called("Ledger").number
    ('ledger', 5)
    """
    course = chapters()
    for chapter in course:
        if name.strip().lower() in (chapter.name, str(chapter.number)):
            return chapter
    known = ", ".join(f"{chapter.number} {chapter.name}" for chapter in course)
    raise OptionError(f"there is no chapter {name!r}; there are: {known}")
