"""What works before Gradio has built the page, and stays as it was when Gradio takes it over."""

import re
from urllib.parse import parse_qs, urlsplit

from chromium import BUILT
from journey import Explore
from playwright.sync_api import expect


class HeldAssets:
    """Gradio's scripts, on their way until they are released."""

    def __init__(self) -> None:
        self._routes, self._released = [], False

    def __call__(self, route) -> None:
        if self._released:
            route.continue_()
        else:
            self._routes.append(route)

    def release(self) -> None:
        self._released = True
        for route in self._routes:
            route.continue_()


# As https://web.dev/articles/cls sums them up, of all that no key or click has caused.
_SUM_SHIFTS = """
window.shifted = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""


def test_what_is_shown_first_works_before_gradio_is_up(visit, served):
    """The words, the box, the modes, a tab and p; nothing is lost or jumps when Gradio comes."""
    held = HeldAssets()
    explore = Explore(page := visit(script=_SUM_SHIFTS, ready="#bars .fm-row", assets=held))
    assert page.locator("#tabs").count() == 0
    explore.word("morning").click()
    explore.see("I drink a cup of [MASK] every [MASK].")
    explore.mode("What mattered").click()
    expect(explore.story).to_contain_text("mattered most")
    explore.mode("Predict").click()
    explore.write("The cat sat on the [MASK].")
    explore.sentence.press("End")
    page.keyboard.type(" It")
    explore.see("The cat sat on the [MASK]. It")
    page.evaluate("window.shifted = 0")  # a line that says "Working" had moved what is below it
    held.release()
    page.wait_for_selector(BUILT)
    page.keyboard.type(" is.")
    explore.see("The cat sat on the [MASK]. It is.")
    expect(explore.sentence).to_be_focused()
    assert page.evaluate("window.shifted") < 0.02


def test_a_tab_that_is_pressed_before_gradio_is_up_opens_once_it_is(visit):
    held = HeldAssets()
    page = visit(ready="#bars .fm-row", assets=held)
    page.get_by_role("tab", name="Evaluate").click()
    expect(page.get_by_role("status").filter(has_text="Opening Evaluate")).to_be_visible()
    page.get_by_role("tab", name="Explore").click()
    page.locator("body").press("p")
    expect(page.locator("body")).to_have_class(re.compile("fm-presenting"))
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="Evaluate").click()
    held.release()
    page.get_by_role("button", name="Measure this model").wait_for()
    assert parse_qs(urlsplit(page.url).query)["tab"] == ["evaluate"]
    page.get_by_role("tab", name="Explore").click()
    expect(page.locator("#bars .fm-row").first).to_be_visible()
