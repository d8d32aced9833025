"""How quick the page is on this machine: from a key, a click or the address to bars.

The first click that is answered is measured beside a page of Gradio that has a box and a button, in
turns. What a new session costs the server is measured as a stranger would cause it.

PYTHONPATH=tests python tests/ui/measure_page.py [URL]    (serves its own page if none is given)
"""

import os
import secrets
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
from chromium import chromium
from serving import serving, started
from ui.soak import memory_mb

from fillmask_ui.ui.page import build_app

TIMES, SESSIONS = 9, 40
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


def tab_opened(tab: str, drawn: str, after_ms: int) -> Callable[[Any, int], float]:
    """From the first click on a tab to its drawing, some time after the page was built."""

    def once(page: Any, _turn: int) -> float:
        with page.context.browser.new_context(viewport=page.viewport_size) as context:
            fresh = context.new_page()
            fresh.goto(page.url.partition("?")[0])
            fresh.wait_for_selector("#shell", state="detached")
            fresh.evaluate(CLOCK)
            fresh.wait_for_timeout(after_ms)
            fresh.locator(f'#tabs [data-tab-id="{tab}"]').click()
            seen = "drawn => [...document.querySelectorAll(drawn)].some(own => own.offsetParent)"
            return until(fresh, seen, drawn)

    return once


# From the address to the answer of a click: on a word of the page, once, and on the button of the
# bare page, again and again, as it hears nothing before it is built.
FIRST_CLICK = """() => {
  let clicked = false;
  const look = () => {
    const word = document.querySelector("#strip button[data-action=hide]");
    const button = document.querySelector("#bare-button");
    if (button || (word && !clicked)) (button ?? word).click();
    clicked ||= Boolean(word);
    const hidden = document.querySelectorAll("#strip .fm-mask-word").length > 1;
    const done = hidden || document.querySelector("#bare-answer")?.textContent.includes("answered");
    if (done) window.first_answer = performance.now();
    else setTimeout(look, 10);
  };
  look();
}"""


def bare_page() -> Any:
    """A page of Gradio with a box and a button."""
    with gr.Blocks(analytics_enabled=False) as demo:
        box = gr.Textbox("some text")
        button = gr.Button("Ask", elem_id="bare-button")
        answer = gr.HTML(elem_id="bare-answer")
        button.click(lambda text: f"answered: {text}", box, answer)
    return demo


def first_click(browser: Any, url: str) -> float:
    """Milliseconds, in a browser that has nothing stored."""
    with browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        page = context.new_page()
        page.add_init_script(f"({FIRST_CLICK})()")
        page.goto(url, wait_until="commit")
        return page.wait_for_function("window.first_answer").json_value()


def compare_first_clicks(browser: Any, url: str, bare_url: str) -> None:
    """Print the medians of both pages, opened in turns, and their ratio."""
    first_click(browser, url)
    first_click(browser, bare_url)
    pairs = [(first_click(browser, url), first_click(browser, bare_url)) for _ in range(TIMES)]
    ours, bare = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"first answered click {ours:.0f} ms, of a bare page {bare:.0f} ms: {ours / bare:.2f}")


def measure_sessions() -> None:
    """Print what a new session costs the server of a public page, by what its first request is."""
    with started("--public") as (url, server), httpx.Client(base_url=url, timeout=60) as client:
        wait_until_idle(server.pid)
        config = client.get("config").json()
        html = next(part["id"] for part in config["components"] if part["type"] == "html")
        openers = [
            event
            for event in config["dependencies"]
            if any(trigger == "submit" for _, trigger in event["targets"])
        ]

        def ask_component(session: str) -> None:
            body = {"component_id": html, "fn_name": "none", "data": {}, "session_hash": session}
            client.post("gradio_api/component_server", json=body)

        def fire(event: dict[str, Any], session: str) -> None:
            body = {"fn_index": event["id"], "data": [], "session_hash": session}
            client.post("gradio_api/run/predict", json=body).raise_for_status()

        kinds = {"a component": ask_component, "a tab": partial(fire, openers[0])}
        for kind, ask in kinds.items():
            ask(secrets.token_hex(6))
            seconds, megabytes = cpu_seconds(server.pid), memory_mb(server.pid)
            for _ in range(SESSIONS):
                ask(secrets.token_hex(6))
            seconds = (cpu_seconds(server.pid) - seconds) / SESSIONS
            megabytes = (memory_mb(server.pid) - megabytes) / SESSIONS
            print(f"a new session that asks for {kind}: {seconds:.4f} s of CPU, {megabytes:.3f} MB")


def wait_until_idle(process: int) -> None:
    """Until it has loaded what it prepares for its first visitors."""
    used = -1.0
    while cpu_seconds(process) - used > 0.05:
        used = cpu_seconds(process)
        time.sleep(2)


def cpu_seconds(process: int) -> float:
    """User and system time, by proc(5)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
        with serving(bare_page(), app_kwargs={}) as bare_url:
            compare_first_clicks(browser, address, bare_url)
        page.goto(address)
        page.wait_for_function(ANSWERED)
        page.evaluate(CLOCK)
        measure(page, "last key to new bars", last_key)
        measure(page, "click on a word to new bars", click)
        measure(page, "address to first bars", opening("", "#bars .fm-row"))
        measure(page, "address of Learn to its drawing", opening("?tab=learn", TABS["learn"]))
        for tab, drawn in TABS.items():
            measure(page, f"first click on the tab {tab}", tab_opened(tab, drawn, 2_000))
            measure(page, f"{tab} at once", tab_opened(tab, drawn, 0))
    measure_sessions()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
