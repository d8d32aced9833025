"""The browser of the tests: Debian's chromium, or the first chromium on the path."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# What Gradio's own client says where a page is left or reloaded during one of its events.
BROKEN_OFF = ("AbortError", "Connection errored out")


def faults_of(page: Any) -> list[str]:
    """Script errors, logged errors and dialogs of a page from now on; it grows as they come."""
    found: list[str] = []

    def add(message: str) -> None:
        if not any(own in message for own in BROKEN_OFF):
            found.append(message)

    page.on("pageerror", lambda error: add(str(error)))
    page.on("console", lambda message: add(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: (add(dialog.message), dialog.dismiss()))
    return found


@contextmanager
def chromium() -> Iterator[Any]:
    """A running Playwright browser; a machine without one fails, it does not skip."""
    from playwright.sync_api import sync_playwright

    program = next((found for found in map(shutil.which, PROGRAMS) if found), None)
    assert program, "the browser tests need chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        try:
            yield _returning(running)
        finally:
            running.close()


def _returning(running: Any) -> Any:
    """Its visitors have seen the page's tour, but for those of `new_context(first_visit=True)`."""
    new_context = running.new_context

    def context(*, first_visit: bool = False, **options: Any) -> Any:
        made = new_context(**options)
        if not first_visit:
            # Not every document may store anything.
            made.add_init_script("try { localStorage['fillmask-tour'] = 'yes'; } catch {}")
        return made

    running.new_context = context
    running.new_page = lambda **options: context(**options).new_page()
    return running
