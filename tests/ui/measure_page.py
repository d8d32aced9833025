"""How quick the page is on this machine: from a key, a click or the address to bars.

PYTHONPATH=tests python tests/ui/measure_page.py [URL]    (serves its own page if none is given)
"""

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


# When the latest key or click came, by the clock of the page.
CLOCK = """() => ["input", "click"].forEach((kind) =>
  document.addEventListener(kind, (event) => (window.began = event.timeStamp), true))"""
# Of each tab, what its first sight ends with.
TABS = {
    "unmask": "#unmask button",
    "evaluate": "#evaluate button",
    "quantize": "#quantize button",
    "learn": "#learn .fm-row",
}


def until(page: Any, condition: str, argument: Any = None) -> float:
    """Milliseconds from the latest key or click to the frame in which a condition holds."""
    timed = f"argument => ({condition})(argument) && performance.now() - window.began"
    return page.wait_for_function(timed, arg=argument, polling="raf").json_value()


def last_key(page: Any, turn: int) -> float:
    """From the last key of a sentence to its bars; typed at 140 ms per key, or at 20."""
    box = page.locator("#sentence textarea")
    box.fill("")
    sentence = f"The {NOUNS[turn % len(NOUNS)]} was very [MASK] {turn}"
    box.press_sequentially(sentence[:-1], delay=140 if turn % 5 == 0 else 20)
    box.press(sentence[-1])
    return until(
        page,
        "text => window.fillmask.explore.answer?.base === text"
        " && document.querySelector('#bars .fm-row')",
        sentence,
    )


def click(page: Any, turn: int) -> float:
    """From a click on a word of the strip to the bars of what it hides."""
    noun = NOUNS[turn % len(NOUNS)]
    page.locator("#sentence textarea").fill(f"The {noun} was very tired on day {turn}.")
    page.wait_for_function(
        "turn => window.fillmask.explore.answer?.base?.includes(`day ${turn}.`)", arg=turn
    )
    page.wait_for_timeout(1_000)  # what the sentence without a mask sets going is over
    page.locator("#strip button", has_text=noun).click()
    return until(page, "() => document.querySelector('#bars .fm-row')")


def opening(query: str, drawn: str) -> Callable[[Any, int], float]:
    """From an address to a drawing, in a browser that has nothing stored."""

    def once(page: Any, _turn: int) -> float:
        with page.context.browser.new_context(viewport=page.viewport_size) as context:
            fresh = context.new_page()
            started = time.perf_counter()
            fresh.goto(page.url.partition("?")[0] + query, wait_until="commit")
            fresh.wait_for_function("drawn => document.querySelector(drawn)", arg=drawn, polling=5)
            return 1000 * (time.perf_counter() - started)

    return once


def tab_opened(tab: str, drawn: str) -> Callable[[Any, int], float]:
    """From the first click on a tab to its drawing, some seconds after the page opened."""

    def once(page: Any, _turn: int) -> float:
        with page.context.browser.new_context(viewport=page.viewport_size) as context:
            fresh = context.new_page()
            fresh.goto(page.url.partition("?")[0])
            fresh.wait_for_function(ANSWERED)
            fresh.evaluate(CLOCK)
            fresh.wait_for_timeout(2_000)
            fresh.locator(f'#tabs [data-tab-id="{tab}"]').click()
            seen = "drawn => [...document.querySelectorAll(drawn)].some(own => own.offsetParent)"
            return until(fresh, seen, drawn)

    return once


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
        page.evaluate(CLOCK)
        measure(page, "last key to new bars", last_key)
        measure(page, "click on a word to new bars", click)
        measure(page, "address to first bars", opening("", "#bars .fm-row"))
        measure(page, "address of Learn to its drawing", opening("?tab=learn", TABS["learn"]))
        for tab, drawn in TABS.items():
            measure(page, f"first click on the tab {tab}", tab_opened(tab, drawn))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
