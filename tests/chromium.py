"""The browser of the tests: a Chromium on the path, else the one that Playwright installed."""

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
# What a page is waited for, however busy the machine is.
PATIENCE_MS = 240_000
# Matches once Gradio has built its tabs and the tab list of the first response is gone.
BUILT = "body:not(:has(#shell:not([hidden]))) #tabs [role=tabpanel]"
# What Gradio's own client says where a page is left or reloaded during one of its events.
BROKEN_OFF = ("AbortError", "Connection errored out")


def faults_of(context: Any) -> list[str]:
    """Script errors, logged errors and dialogs of all pages of a context; it grows as they come."""
    faults: list[str] = []

    def add(message: str) -> None:
        if not any(excuse in message for excuse in BROKEN_OFF):
            faults.append(message)

    def watch(page: Any) -> None:
        page.on("pageerror", lambda error: add(str(error)))
        page.on("console", lambda message: add(message.text) if message.type == "error" else None)
        page.on("dialog", lambda dialog: (add(dialog.message), dialog.dismiss()))

    context.on("page", watch)
    return faults


@contextmanager
def chromium() -> Iterator[Any]:
    """A running Playwright browser; a machine without one fails, it does not skip."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    # Without one on the path Playwright starts its own, or says how to install it.
    program = next((path for path in map(shutil.which, PROGRAMS) if path), None)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        try:
            yield running
        finally:
            running.close()
