"""How a guess forms: its numbers are Python's; the grid by keyboard, on a projector, a phone."""

import re

from accessibility import accessible
from journey import Explore
from playwright.sync_api import expect

from fillmask_ui.filling import layers
from fillmask_ui.show.numbers import percent


def test_how_a_guess_forms_layer_by_layer(visit, served):
    text, model = "He went to the [MASK] to borrow money.", served.store.get("embedded")
    (mask,) = layers(model, text, word="bank").positions
    names = [guess.candidates[0].word for guess in mask.layers]
    explore = Explore(page := visit({"text": text, "hidden": '["bank"]'}, width=1280, height=720))
    explore.see(text)
    explore.mode("Guess first").focus()
    page.keyboard.press("ArrowRight")  # the next mode
    explore.address_says("mode=layers")
    rows = page.locator("#found tbody tr")
    expect(rows).to_have_count(len(names))
    words = rows.locator(".fm-layer > span")
    expect(words).to_have_text([re.compile(f"{name}$") for name in reversed(names)])
    shares = [percent(guess.true.probability) for guess in reversed(mask.layers)]
    expect(rows.locator(".fm-depth > span")).to_have_text(shares)
    leads = re.search(r"is the top word from layer (\d) up", explore.story.inner_text())
    assert names[int(leads[1]) - 1] != "bank" and set(names[int(leads[1]) :]) == {"bank"}
    # Tab stops once at the grid, and arrow keys move in it.
    page.keyboard.press("Tab")
    while not page.evaluate("document.activeElement.matches('.fm-layer')"):
        page.keyboard.press("Tab")
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    bars = page.locator("#found .fm-lens-bars")
    third = mask.layers[-3]
    expect(bars.locator("figcaption")).to_have_text(f"Layer {third.layer}")
    best = [word.word for word in third.candidates]
    expect(bars.locator(".fm-row-name")).to_have_text([re.compile(f"{word}$") for word in best])
    expect(bars.locator(".fm-row-value").first).to_have_text(
        percent(third.candidates[0].probability)
    )
    rows.last.locator("button").hover()
    expect(bars.locator("figcaption")).to_have_text("The embeddings")
    accessible(page)
    # On a projector each arrow up uncovers one more layer, and no word is told before its turn.
    visible = words.locator("visible=true")
    page.locator("h1").click()
    page.keyboard.press("p")
    answer = page.locator("#strip .fm-guess")
    told = page.locator(".fm-lens-true")
    expect(explore.stage.locator("#lens *").locator("visible=true")).to_have_count(0)
    page.keyboard.press(" ")
    for count in range(1, len(names) + 1):
        expect(visible).to_have_count(count)
        layer = f"Layer {count - 1}" if count > 1 else "The embeddings"
        expect(bars.locator("figcaption")).to_have_text(layer)
        if count < len(names):
            # What is covered is covered: the answer, the name of the word, ticks, the line's stub.
            expect(answer).to_be_hidden()
            expect(told).to_be_hidden()
            signs = page.evaluate(
                """[...document.querySelectorAll("#found :is(.fm-layer > span, .fm-row-name)")]
                    .map((own) => getComputedStyle(own, "::before").content)"""
            )
            assert set(signs) == {"none"}
            clip = page.locator("tr.fm-out + tr:not(.fm-out) .fm-depth > svg")
            expect(clip).to_have_css("clip-path", re.compile("inset"))
            expect(explore.story).to_be_hidden()
            page.keyboard.press("ArrowUp" if count % 2 else " ")
    expect(explore.story).to_be_visible()
    expect(answer).to_be_visible()
    expect(told).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(visible).to_have_count(len(names) - 1)
    accessible(page, both_themes=False)
    explore.state("change({ mode: 'mattered' })")  # the story of another mode is told
    expect(explore.story).to_be_visible()
    explore.state("change({ mode: 'layers' })")
    expect(visible).to_have_count(len(names) - 1)
    page.keyboard.press("Escape")
    expect(visible).to_have_count(len(names))
    # A sentence without a mask has a column for each token, special ones left out.
    page.set_viewport_size({"width": 390, "height": 844})
    explore.write("The cat sat.")
    expect(page.locator("#found thead th")).to_have_text(["layer", "the", "cat", "sat", "."])
    explore.fits(390)
    rows.last.locator("button").first.focus()
    page.keyboard.press("ArrowRight")
    expect(bars).to_be_visible()
    expect(bars.locator("figcaption")).to_have_text("The embeddings at “cat”")
    accessible(page)
    explore.pick("Model", "noisy")  # it has no layers
    expect(page.locator("#found-notice")).to_contain_text("does not show its layers")
