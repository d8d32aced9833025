"""The mode Slots of Explore from beginning to end."""

import csv

import pytest
from accessibility import accessible
from journey import Explore
from playwright.sync_api import expect

from fillmask_ui.features.slots.slot_examples import slot_examples
from fillmask_ui.features.slots.word_spread import slots
from fillmask_ui.show.numbers import percent

TEMPLATE = "The {cat|dog} sat on the [MASK]."


def test_a_template_becomes_many_sentences(visit, served, tmp_path):
    model = served.store.get("embedded")
    first = slots(model, slot_examples()[0].template)
    explore = Explore(page := visit({"text": "Snow is [MASK]."}))
    explore.see("Snow is [MASK].")
    explore.mode("Slots").click()
    cells = page.locator(".fm-heat-cell")
    expect(cells).to_have_text([percent(p) for word in first.words for p in word.probability])
    expect(explore.story).to_contain_text(first.words[0].word)
    template = page.get_by_role("textbox", name="Template")
    expect(page.locator(".fm-slots-scatter circle")).to_have_count(len(first.words))
    accessible(page)
    # A typed template with typed words, one of several sub-tokens.
    template.fill(TEMPLATE)
    page.get_by_role("textbox", name="Words").fill("mat, unkindness")
    table = slots(model, TEMPLATE, ("mat", "unkindness"))
    expect(cells).to_have_text([percent(p) for word in table.words for p in word.probability])
    explore.address_says("slot_words=mat")
    template.fill(TEMPLATE.replace("}", ""))
    expect(page.get_by_role("alert")).to_contain_text("opened and not closed")
    expect(cells).to_have_count(0)
    template.fill(TEMPLATE)
    # The link brings it back; arrow keys move in the heat map, and a cell opens its sentence.
    page.reload()
    expect(cells).to_have_count(4)
    with page.expect_download() as download:
        explore.press("CSV", exact=True)
    download.value.save_as(path := tmp_path / "slots.csv")
    rows = [*csv.DictReader(path.read_text("utf-8").splitlines())]
    probabilities = [p for word in table.words for p in word.probability]
    assert [float(row["probability"]) for row in rows] == pytest.approx(probabilities, rel=1e-9)
    cells.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    explore.see("The dog sat on the [MASK].")
    expect(explore.mode("Predict")).to_be_checked()
    expect(explore.scored.or_(explore.rows).filter(has_text="mat").first).to_be_attached()
    page.go_back()
    expect(cells).to_have_count(4)
    # A dot opens the sentence in which its word is more probable.
    probabilities = table.words[0].probability
    page.locator(".fm-slots-scatter circle").first.click()
    explore.see(table.sentences[probabilities.index(max(probabilities))].text)
    page.go_back()
    expect(cells).to_have_count(4)
    # Two models side by side, with the same words.
    explore.open(
        mode="slots",
        compare="embedded:int8",
        template="The {cat|dog}{| that ran} sat on the [MASK].",
    )
    maps = page.get_by_role("table", name="embedded")
    expect(maps).to_have_count(2)
    expect(page.get_by_role("columnheader", name="(nothing)")).to_have_count(4)
    assert maps.first.locator("th[scope=row]").all_inner_texts() == (
        maps.last.locator("th[scope=row]").all_inner_texts()
    )
    page.set_viewport_size({"width": 390, "height": 844})
    explore.fits(390)
    accessible(page)
