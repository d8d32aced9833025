"""A sentence under two models in a real browser: tints, what stands beside a word, the lines."""

import pytest
from explore_page import Explorer
from playwright.sync_api import expect

from fillmask_ui import compare_sentence, load_model

MOON = "The cat sat on the moon."


@pytest.fixture
def apart(page, served):
    return Explorer(page, served)


def test_two_models_on_a_sentence(apart):
    expected = compare_sentence(load_model("embedded"), load_model("embedded:int8"), MOON)
    apart.open(text=MOON, compare="embedded:int8").see(MOON)
    page, tokens = apart.page, apart.strip.locator('button[data-action="hide"]')
    lines, tints = page.locator(".fm-apart-lines svg"), page.locator("#apart-tints")
    expect(lines).to_be_visible()
    labels = [
        f"{'▲' if own.difference_nats > 0 else '▼'}{abs(own.difference_nats):.2f}"
        for own in expected.words
    ]
    assert tokens.evaluate_all("(all) => all.map((b) => b.dataset.apart)") == labels
    expect(page.locator("#lens-table tbody tr")).to_have_count(7)
    # Beside a word stands what both wanted.
    tokens.nth(5).hover()
    beside = page.get_by_role("tooltip")
    moon = expected.words[5]
    for side in (*moon.first, *moon.second):
        expect(beside).to_contain_text(side.wanted[0].word)
    expect(beside).to_contain_text(f"loss {moon.other_nll_nats:.3f} nats")
    # The tint is chosen, stands in the address, and goes back.
    tints.get_by_role("button", name="Loss of B").click()
    expect(tokens.nth(5)).to_have_attribute("data-apart", f"{moon.other_nll_nats:.2f}")
    expect(tints.get_by_role("button", name="Loss of B")).to_have_attribute("aria-pressed", "true")
    assert "tint=b" in page.url
    page.go_back()
    expect(tokens.nth(5)).to_have_attribute("data-apart", labels[5])
    # A click hides the word; the sentence is asked about no more.
    tokens.nth(5).click()
    expect(page.locator("#sentence textarea")).to_have_value("The cat sat on the [MASK].")
    expect(lines).to_have_count(0)
    expect(tints).to_be_hidden()


def test_a_second_model_that_cannot_be_had_leaves_the_first(apart):
    apart.open(text=MOON, compare="no/such.onnx").see(MOON)
    expect(apart.page.locator("#notice .fm-error")).to_contain_text("no/such.onnx")
    expect(apart.page.locator("#lens-story .fm-lens-story")).to_contain_text("most surprised by")
