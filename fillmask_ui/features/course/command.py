"""`fillmask-ui learn`: the page at a chapter."""

from urllib.parse import urlencode

from fillmask_ui.cli import options
from fillmask_ui.cli.serve import start_page
from fillmask_ui.errors import OptionError
from fillmask_ui.features.course.chapter import chapters


def learn(
    chapter: str = options.argument(
        "1", None, "Name or number of a chapter; the first if not given."
    ),
    host: str | None = options.HOST,
    port: int | None = options.PORT,
    model: str = options.PICKED_MODEL,
    open_browser: bool = options.option(True, "Open the page in the browser.", "--open/--no-open"),
) -> None:
    """Open the page at a chapter of the course on the masked-LM loss."""
    normalized, course = chapter.strip().lower(), chapters()
    name = next(
        (entry.name for entry in course if normalized in (entry.name, str(entry.number))), None
    )
    if name is None:
        listed = ", ".join(f"{entry.number} {entry.name}" for entry in course)
        raise OptionError(f"there is no chapter {chapter!r}; there are: {listed}")
    query = urlencode({"tab": "learn", "chapter": name})
    start_page(model, host=host, port=port, query=query, open_browser=open_browser)
