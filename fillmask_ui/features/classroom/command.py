"""`fillmask-ui class`: the page as the wall of a class."""

import secrets
from pathlib import Path

from fillmask_ui.cli import options
from fillmask_ui.cli.serve import start_page
from fillmask_ui.features.classroom.class_rounds import read_sentences


def class_(
    sentences: Path | None = options.argument(
        None,
        "FILE",
        "A sentence per line, its hidden word in brackets, and optionally a tab and a "
        "question; the examples by default.",
    ),
    host: str | None = options.HOST,
    port: int | None = options.PORT,
    model: str = options.PICKED_MODEL,
    public: bool = options.PUBLIC,
    open_browser: bool = options.option(True, "Open the wall in the browser.", "--open/--no-open"),
) -> None:
    """Open the wall of a class that guesses on phones, against the model."""
    read = read_sentences(sentences) if sentences is not None else ()
    key = secrets.token_urlsafe(16) if read else ""
    query = f"present=1&class=1&key={key}" if read else "present=1&class=1"
    start_page(
        model,
        host=host,
        port=port,
        public=public,
        query=query,
        open_browser=open_browser,
        settings={"sentences": read, "class_key": key},
    )
