"""How quick the page is on this machine: from a key, a click or the address to bars.

PYTHONPATH=tests python tests/ui/measure_page.py [URL]    (serves its own page if none is given)
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from chromium import chromium
from serving import serving

from fillmask_ui.ui.page import build_app

TIMES = 9
# What the page shows once it has answered the sentence in the box, and nothing else.
ANSWERED = "() => window.fillmask?.explore?.answer && !document.querySelector('#stage.fm-stale')"
NOUNS = ("cat", "dog", "king", "child", "river", "teacher", "train", "garden", "doctor", "bird")


def last_key(page: Any, turn: int) -> float:
    """Milliseconds from the last key of a sentence, typed at 140 ms per key, to its bars."""
    box = page.locator("#sentence textarea")
    box.fill("")
    sentence = f"The {NOUNS[turn % len(NOUNS)]} was very [MASK] {turn}"
    box.press_sequentially(sentence[:-1], delay=140 if turn % 5 == 0 else 20)
    started = time.perf_counter()
    box.press(sentence[-1])
    page.wait_for_function(
        "text => window.fillmask.explore.answer?.base === text"
        " && document.querySelector('#bars .fm-row')",
        arg=sentence,
        polling=5,
    )
    return 1000 * (time.perf_counter() - started)


def click(page: Any, turn: int) -> float:
    """Milliseconds from a click on a word of the strip to the bars of what it hides."""
    noun = NOUNS[turn % len(NOUNS)]
    page.locator("#sentence textarea").fill(f"The {noun} was very tired on day {turn}.")
    page.wait_for_function(
        "turn => window.fillmask.explore.answer?.base?.includes(`day ${turn}.`)", arg=turn
    )
    page.wait_for_timeout(1_000)  # what the sentence without a mask sets going is over
    started = time.perf_counter()
    page.locator("#strip button", has_text=noun).click()
    page.wait_for_function("() => document.querySelector('#bars .fm-row')", polling=5)
    return 1000 * (time.perf_counter() - started)


def load(page: Any, _turn: int) -> float:
    """Milliseconds from the address to the first bars, in a browser that has nothing stored."""
    return opening(page, "", "#bars .fm-row")


def load_learn(page: Any, _turn: int) -> float:
    """Milliseconds from the address of Learn to its first drawing, as `load`."""
    return opening(page, "?tab=learn", "#learn .fm-row")


def opening(page: Any, query: str, drawn: str) -> float:
    """Milliseconds from an address until something is drawn."""
    context = page.context.browser.new_context(viewport=page.viewport_size)
    fresh = context.new_page()
    started = time.perf_counter()
    fresh.goto(page.url.partition("?")[0] + query, wait_until="commit")
    fresh.wait_for_function("drawn => document.querySelector(drawn)", arg=drawn, polling=5)
    taken = 1000 * (time.perf_counter() - started)
    context.close()
    return taken


def measure(page: Any, what: str, once: Callable[[Any, int], float]) -> None:
    """Print the median and the range of `TIMES` measurements, after one that does not count."""
    once(page, TIMES)
    values = [once(page, turn) for turn in range(TIMES)]
    low, middle, high = min(values), statistics.median(values), max(values)
    print(f"{what:32}{middle:7.0f} ms  ({low:.0f} to {high:.0f}, median of {TIMES})", flush=True)


def main(url: str | None) -> None:
    """Measure the page at an address, or one that is served for this."""
    with nullcontext(url) if url else serving(build_app()) as address, chromium() as browser:
        page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        page.goto(address)
        page.wait_for_function(ANSWERED)
        measure(page, "last key to new bars", last_key)
        measure(page, "click on a word to new bars", click)
        page.goto(address)
        measure(page, "address to first bars", load)
        measure(page, "address to Learn's first drawing", load_learn)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
