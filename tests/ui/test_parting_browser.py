"""The search for the sentences on which two models differ most, in a real browser."""

import re

from playwright.sync_api import expect

from fillmask_ui import load_model
from fillmask_ui.comparing.divergence_search import Sentence, look

CAT = "The cat [MASK]."
OWN = ["The dog barked all night.", "Too short.", "She drank a cup of tea.", "It is a [MASK] day."]


def test_own_sentences_are_searched_and_opened(explorer):
    pair = [load_model(name) for name in ("embedded", "embedded:int8")]
    looked = [look(*pair, Sentence(number, 0, text)).found for number, text in enumerate(OWN)]
    expected = sorted(filter(None, looked), key=lambda own: own.order, reverse=True)
    page = explorer.page
    explorer.open(text=CAT).see(CAT)
    opener = page.get_by_role("button", name="Where do they part?")
    expect(opener).to_be_hidden()
    explorer.open(text=CAT, compare="embedded:int8", list="\n".join(OWN)).see(CAT)
    opener.click()
    panel = page.get_by_role("region", name="Where do the two models part?")
    panel.get_by_label("your own sentences").check()
    panel.get_by_role("button", name="Search").click()
    expect(panel.get_by_role("status")).to_contain_text("of 3 sentences")
    expect(panel.get_by_role("status")).to_contain_text("too short or too long: 1")
    found = panel.get_by_role("list", name="Sentences").get_by_role("button")
    expect(found).to_contain_text([own.sentence.text for own in expected])
    found.first.click()
    explorer.see(expected[0].masked)
    expect(found.first).to_have_attribute("aria-current", "true")
    page.go_back()
    explorer.see(CAT)
    expect(found).to_have_count(len(expected))
    # Another unit or model: the list is of neither.
    page.get_by_role("radio", name="bits").check()
    expect(found).to_have_count(0)


def test_a_search_stops_and_goes_on(explorer):
    panel = explorer.page.get_by_role("region", name="Where do the two models part?")
    explorer.open(text=CAT, compare="embedded").see(CAT)
    explorer.page.get_by_role("button", name="Where do they part?").click()
    panel.get_by_role("button", name="Search").click()
    expect(panel).to_contain_text(" of 200 sentences")
    panel.get_by_role("button", name="Stop", exact=True).press("Enter")
    expect(panel.get_by_role("status")).to_contain_text("They never part on these")
    # The focus stays where the next key is wanted.
    expect(panel.get_by_role("button", name="Go on")).to_be_focused()
    so_far = sentences_in(panel)
    explorer.page.keyboard.press("Enter")
    expect(panel).to_contain_text(" of 200 sentences")
    panel.get_by_role("button", name="Stop", exact=True).click()
    expect(panel.get_by_role("status")).to_contain_text("They never part on these")
    assert sentences_in(panel) >= so_far


def sentences_in(panel):
    return int(re.search(r"these (\d+)", panel.get_by_role("status").inner_text()).group(1))
