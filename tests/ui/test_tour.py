"""The tour of a first visit, in a real browser."""

from __future__ import annotations

import pytest
from chromium import faults_of
from playwright.sync_api import expect

from fillmask_ui.ui.guide import STEPS

# Whether two boxes of the page share a point.
MEET = """([a, b]) => {
    const [one, two] = [a, b].map((s) => document.querySelector(s).getBoundingClientRect());
    return one.left < two.right && two.left < one.right
        && one.top < two.bottom && two.top < one.bottom;
}"""


@pytest.fixture
def visit(browser, served):
    """A function that opens a new visitor's page; script errors fail the test."""
    expect.set_options(timeout=60_000)
    faults, contexts = [], []

    def make(width=1280, height=800, query="", script="", **options):
        context = browser.new_context(
            first_visit=True, viewport={"width": width, "height": height}, **options
        )
        context.set_default_timeout(60_000)
        contexts.append(context)
        page = context.new_page()
        faults.append(faults_of(page))
        if script:
            page.add_init_script(script)
        page.goto(served.url + query)
        page.locator("#strip [data-place]").first.wait_for()
        return page

    yield make
    for context in contexts:
        context.close()
    assert not any(faults), faults


def card(page):
    return page.get_by_role("dialog", name="Tour of the page")


def button(page, name):
    return card(page).get_by_role("button", name=name)


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1920, 1080), (390, 844)])
def test_five_steps_each_beside_what_it_is_about(visit, width, height):
    page = visit(width, height, reduced_motion="reduce")
    for number, step in enumerate(STEPS):
        expect(card(page)).to_be_visible()
        expect(card(page).get_by_role("heading")).to_have_text(step.title)
        expect(card(page)).to_contain_text(f"Step {number + 1} of {len(STEPS)}")
        target = page.locator(".fm-tour-target")
        expect(target).to_have_count(1)
        assert target.evaluate("(e, selectors) => e.matches(selectors)", step.target)
        assert not page.evaluate(MEET, ["#fm-tour", "#sentence"])
        assert not page.evaluate(MEET, ["#fm-tour", ".fm-tour-target"])
        for inside in (card(page), target):
            box = inside.bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= width
            assert box["y"] >= 0 and box["y"] + box["height"] <= height
        button(page, "Next" if number + 1 < len(STEPS) else "Done").click()
    expect(card(page)).to_be_hidden()
    expect(page.locator(".fm-tour-target")).to_have_count(0)


def test_it_is_shown_once_and_blocks_nothing(visit):
    page = visit()
    expect(card(page)).to_be_visible()
    assert page.evaluate("document.activeElement === document.body")
    page.locator("#sentence textarea").fill("Paris is in [MASK].")
    expect(page.locator("#strip")).to_contain_text("Paris")
    page.locator("#strip button", has_text="Paris").click()
    expect(page.locator("#strip .fm-mask")).to_have_count(2)
    expect(card(page)).to_be_visible()
    page.keyboard.press("Escape")
    expect(card(page)).to_be_hidden()
    page.reload()
    page.locator("#strip [data-place]").first.wait_for()
    expect(card(page)).to_be_hidden()


def test_the_focus_stays_with_the_reader(visit):
    page = visit()
    button(page, "Next").focus()
    page.keyboard.press("Enter")
    expect(button(page, "Next")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")  # back to the first step, where there is no way back
    expect(card(page)).to_contain_text("Step 1 of")
    expect(button(page, "Next")).to_be_focused()
    expect(card(page).locator("[aria-live=polite]")).to_contain_text(STEPS[0].title)
    button(page, "Skip").click()
    expect(page.locator("#sentence textarea")).to_be_focused()


def test_it_comes_back_from_a_button_of_another_tab(visit):
    page = visit()
    button(page, "Skip").click()
    page.get_by_role("tab", name="Guide").click()
    page.evaluate(
        """() => {
            const again = document.createElement("button");
            again.dataset.tour = "";
            again.textContent = "Show me around";
            document.querySelector(".fm-guide").prepend(again);
        }"""
    )
    page.get_by_role("button", name="Show me around").click()
    expect(card(page)).to_be_visible()
    expect(card(page)).to_be_focused()
    # Another tab hides it, and Explore brings it back.
    page.get_by_role("tab", name="Guide").click()
    expect(card(page)).to_be_hidden()
    page.get_by_role("tab", name="Explore").click()
    expect(card(page)).to_be_visible()
    for _ in STEPS[1:]:
        button(page, "Next").click()
    page.get_by_role("tab", name="Evaluate").click()
    expect(card(page)).to_be_hidden()
    page.get_by_role("tab", name="Explore").click()
    expect(card(page)).to_be_hidden()  # it ended where it led to


def test_a_link_that_presents_is_not_interrupted(visit):
    page = visit(query="?present=1")
    expect(page.locator(".fm-present-count")).to_be_visible()
    expect(card(page)).to_be_hidden()
    page.keyboard.press("Escape")
    page.locator("#strip button").first.click()
    expect(page.locator("#strip .fm-mask")).to_have_count(2)
    expect(card(page)).to_be_hidden()


def test_without_storage_it_is_gone_once_skipped(visit):
    forbidden = "Object.defineProperty(window, 'localStorage', { get() { throw Error('no'); } })"
    page = visit(script=forbidden)
    button(page, "Skip").click()
    page.locator("#strip button").first.click()
    expect(page.locator("#strip .fm-mask")).to_have_count(2)
    expect(card(page)).to_be_hidden()
