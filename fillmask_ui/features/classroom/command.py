"""`fillmask-ui class`: the page as the wall of a class."""

from pathlib import Path

import typer

from fillmask_ui.cli import options
from fillmask_ui.cli.serve import start_page
from fillmask_ui.features.classroom.class_rounds import read_sentences


def class_(
    sentences: Path | None = options.argument(
        None, "FILE", "A sentence a line, its hidden word in brackets; the examples if not given."
    ),
    host: str | None = options.HOST,
    port: int | None = options.PORT,
    model: str = options.PICKED_MODEL,
    public: bool = options.PUBLIC,
    open_browser: bool = options.option(True, "Open the wall in the browser.", "--open/--no-open"),
) -> None:
    """Open the wall of a class that guesses on its phones, against the model."""
    read = read_sentences(sentences) if sentences is not None else ()
    link = "present=1&class=1"
    if not open_browser:
        typer.echo(f"The wall is at /?{link} of the page.")
    opened = link if open_browser else None
    start_page(
        model, host=host, port=port, public=public, link=opened, settings={"sentences": read}
    )
