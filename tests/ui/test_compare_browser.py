"""Two models in a real browser: a link opens them, a click writes a word, the picker ends it."""

import re

from playwright.sync_api import expect

from fillmask_ui import compare, load_model

TEXT = "The [MASK] sat on the mat."


def test_a_second_model_beside_the_first(explorer):
    page = explorer.page
    explorer.open(text=TEXT, compare="embedded:int8").see(TEXT)
    both = page.locator("#versus")
    rows = both.locator("li")
    (mask,) = compare(load_model("embedded"), load_model("embedded:int8"), TEXT, top_k=10).masks
    expect(rows).to_have_count(len(mask.candidates))
    expect(both).to_contain_text(f"{mask.kl_nats:.3f} nats")
    expect(both).to_contain_text("A: embedded")
    expect(both).to_contain_text("B: embedded:int8")
    expect(page.locator("#bars")).to_be_hidden()
    drawn = rows.first.locator(".fm-two-fill").evaluate_all(
        "(all) => all.map((f) => f.getBoundingClientRect().width / f.parentElement.clientWidth)"
    )
    top = mask.candidates[0]
    for width, probability in zip(drawn, (top.probability, top.other_probability), strict=True):
        assert abs(width - probability) < 0.01
    both.get_by_role("button", name="10%", exact=True).click()
    expect(both).to_contain_text("Magnified")
    both.get_by_text("words in numbers").click()
    expect(both.locator("tbody tr")).to_have_count(len(mask.candidates))
    # No other model: the bars of the first are back, and the link forgets the second.
    box = page.get_by_role("combobox", name="Compare with")
    box.click()
    page.get_by_role("option", name="no other model").click()
    expect(page.locator("#bars")).to_be_visible()
    expect(rows).to_have_count(0)
    page.wait_for_url(lambda url: "compare=" not in url)
    # What cannot be had is said above the bars that stay.
    explorer.open(text=TEXT, compare="no/such").see(TEXT)
    expect(both.get_by_role("alert")).to_contain_text(re.compile("no/such"))
    expect(page.locator("#bars")).to_be_visible()
