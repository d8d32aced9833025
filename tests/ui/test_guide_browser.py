"""The sets of examples and the Guide in a real browser."""

import pytest
from explore_page import Explorer
from playwright.sync_api import expect

from fillmask_ui.ui.explore.examples import EXAMPLE_SETS, EXAMPLES

GRAMMAR = next(group for group in EXAMPLE_SETS if group.name == "Grammar")


@pytest.fixture
def page(browser, served):
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    yield context.new_page()
    context.close()


def test_an_example_is_asked_with_all_its_parts_and_its_question(page, served):
    explorer = Explorer(page, served).open().see(EXAMPLES[0].text)
    question = page.locator(".fm-question")
    # The first screen is the first example.
    expect(question).to_have_text(EXAMPLES[0].question)
    page.get_by_role("tab", name="Start").press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Grammar")).to_be_focused()
    expect(page.locator("#examples .fm-chip:visible")).to_have_count(len(GRAMMAR.examples))
    example = GRAMMAR.examples[0]
    chip = page.get_by_role("button", name=example.name)
    chip.click()
    explorer.see(example.text)
    expect(question).to_have_text(example.question)
    expect(chip).to_have_attribute("aria-pressed", "true")
    state = page.evaluate("window.fillmask.explore.state")
    assert {name: state[name] for name in example.state()} == example.state()
    # The question stays while the class works on the sentence, and goes with it.
    page.locator("#strip").get_by_role("button", name="table").click()
    explorer.see(example.text.replace("table", "[MASK]"))
    expect(question).to_have_text(example.question)
    explorer.sentence.fill("Something [MASK] else.")
    explorer.see("Something [MASK] else.")
    expect(question).to_have_text("")
    page.go_back()
    expect(question).not_to_have_text("")


def test_the_examples_are_low_and_nothing_sticks_out(page, served):
    Explorer(page, served).open().see(EXAMPLES[0].text)
    box = page.locator("#examples")
    for width, height in ((1280, 800), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        for group in EXAMPLE_SETS:
            page.get_by_role("tab", name=group.name, exact=True).click()
            page.locator("#examples .fm-chip:visible").last.click()
            expect(page.locator(".fm-question")).to_have_text(group.examples[-1].question)
            assert box.bounding_box()["height"] <= 155, (group.name, width)
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_guide_names_the_address_of_this_very_page(page, served):
    page.goto(f"{served.url}?tab=guide&k=3")
    expect(page.locator(".fm-guide pre")).to_contain_text(f'Client("{served.url}")')
    expect(page.locator(".fm-guide button[data-tour]")).to_have_text("Show the tour again")
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    headings = page.locator(".fm-guide h2")
    assert headings.all_inner_texts() == [
        *("Explore: one sentence", "Keys", "The numbers"),
        *("Evaluate: many texts", "Unmask: word after word", "Quantize: smaller and faster"),
        "Learn: the loss, step by step",
        "From a program",
    ]
