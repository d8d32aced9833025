"""The mode Attention: its numbers are Python's; by keyboard, as a file, on a wall, on a phone."""

import csv
import io
import re

from accessibility import accessible
from journey import Explore
from playwright.sync_api import expect
from scipy.stats import spearmanr

from fillmask_ui import mask_attention, occlude
from fillmask_ui.show.numbers import percent, signed

TEXT = "The capital of France is [MASK]."


def test_heads_of_a_sentence(visit, served):
    model = served.store.get("embedded")
    seen = mask_attention(model, TEXT)
    layers, heads = seen.shape
    explore = Explore(page := visit({"text": TEXT}, width=1280, height=900)).see(TEXT)
    explore.mode("Attention").click()
    tiles = page.locator("#found .fm-head")
    expect(tiles).to_have_count(layers * (heads + 1))
    chosen = page.locator("#found .fm-head[aria-pressed=true]")
    expect(chosen).to_have_accessible_name(re.compile(f"layer {layers}, mean of its heads"))

    # A click chooses a head; its words, their shares and the correlation are those of Python.
    tiles.nth(2 * (heads + 1) + 1).click()
    explore.address_says("head=2&layer=3")
    words = seen.words(3, 2)
    rows = page.locator("#found .fm-looks-lines li")
    expect(rows.locator("span")).to_have_text([word.text for word in words])
    expect(rows.locator("small")).to_have_text([percent(word.from_mask) for word in words])
    expect(page.locator("#found path")).to_have_count(len(words))
    most = max(words, key=lambda word: word.from_mask)
    expect(explore.story).to_contain_text(f"[MASK] looks most at {most.text}")
    weights = {word.tokens: word.from_mask for word in words}
    measured = occlude(model, TEXT).words
    correlation = spearmanr(
        [weights[occluded.word.tokens] for occluded in measured],
        [occluded.kl_nats for occluded in measured],
    ).statistic
    check = page.locator("#found .fm-looks-check")
    expect(check.locator("b")).to_have_text(signed(correlation, 2))
    expect(check).to_contain_text("Attention is no explanation")
    assert explore.tints()[1] == max(explore.tints()) > 0  # capital
    accessible(page)

    # Arrow keys move through the grid, and the focus stays on the chosen head.
    tiles.nth(2 * (heads + 1) + 1).focus()
    page.keyboard.press("ArrowDown")
    explore.address_says("head=2&layer=4")
    page.keyboard.press("ArrowRight")
    explore.address_says("head=3&layer=4")
    expect(explore.story).to_contain_text("Layer 4, head 3")
    expect(chosen).to_be_focused()

    # Who looks at the mask, without special tokens, which are told.
    explore.mode("Who looks at the mask").click()
    page.get_by_role("button", name="[CLS] and [SEP]").click()
    explore.address_says("special=out")
    words = seen.words(4, 3)
    expect(rows.locator("small")).to_have_text([percent(word.to_mask) for word in words[1:-1]])
    expect(check).to_contain_text(f"Left out: [CLS] {percent(words[0].to_mask)}")
    link = explore.address()
    assert {"mode": "attention", "layer": "4", "head": "3", "look": "to"}.items() <= link.items()

    with page.expect_download() as download:
        page.get_by_role("button", name="CSV of all heads").click()
    lines = list(csv.DictReader(io.StringIO(download.value.path().read_text("utf-8"))))
    assert len(lines) == layers * heads * len(seen.encoding)
    line = next(line for line in lines if (line["layer"], line["head"]) == ("4", "3"))
    assert float(line["to_mask"]) == float(seen.to_mask[3, 2, 0])
    explore.unfold("Details")
    expect(page.locator("#lens-table tbody tr")).to_have_count(len(words))

    # The link reproduces the view; on a wall the arrow keys walk from head to head.
    explore.open(**link)
    expect(rows.locator("small")).to_have_text([percent(word.to_mask) for word in words[1:-1]])
    page.set_viewport_size({"width": 1920, "height": 1080})
    page.locator("h1").click()
    page.keyboard.press("p")
    expect(page.locator(".fm-present-help")).to_contain_text("heads")
    page.keyboard.press("ArrowUp")
    expect(explore.story).to_contain_text("Layer 4, head 2")
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    expect(explore.story).to_contain_text(f"Layer 3, head {heads}")
    expect(check).to_be_in_viewport()
    accessible(page, both_themes=False)
    page.keyboard.press("Escape")

    page.set_viewport_size({"width": 390, "height": 844})
    explore.open(text=TEXT, mode="attention", layer="99", head="x")  # says nothing
    expect(explore.story).to_contain_text(f"Layer {layers}, mean of its heads")
    explore.fits(390)
    accessible(page)
    explore.open(text="the [MASK] sat.", mode="attention", model="noisy")
    expect(page.locator("#found-notice")).to_contain_text("does not show its attention")
