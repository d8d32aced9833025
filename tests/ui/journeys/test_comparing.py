"""Other ways to look at a sentence: surprisal, occlusion, two sentences, two models."""

import math
import re

import pytest
from accessibility import accessible, themes
from journey import Explore
from playwright.sync_api import expect

from fillmask_ui import compare, compare_sentence, occlude, pair_masks, surprisal
from fillmask_ui.comparing.divergence_search import Sentence, look

MOON = "The cat sat on the moon."
PARIS = "Paris is the capital of [MASK]."
KING, QUEEN = (f"The {who} said that [MASK] was tired." for who in ("king", "queen"))
LONG = "The old man walked along the river and thought of his brother, who had left the town. " * 8
# WCAG 2.2, 1.4.3, by its own formula.
CONTRAST = """(button) => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const over = (...colours) => {
        canvas.clearRect(0, 0, 1, 1);
        for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = (rgb) => rgb.map((v) => v / 255)
        .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const own = getComputedStyle(button);
    const page = getComputedStyle(document.querySelector("gradio-app")).backgroundColor;
    const [a, b] = [light(over(own.color)), light(over(page, own.backgroundColor))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""


def readable_on_every_tint(explore):
    """4.5 to 1, and more than one tint is really there."""
    word, backgrounds = explore.words.first, set()
    for _ in themes(explore.page):
        for tint in (0, 0.25, 0.5, 0.75, 1):
            word.evaluate("(button, tint) => button.style.setProperty('--tint', tint)", tint)
            backgrounds.add(word.evaluate("(button) => getComputedStyle(button).backgroundColor"))
            assert word.evaluate(CONTRAST) >= 4.5
    assert len(backgrounds) == 9  # none at all is the same in both themes


def test_how_surprising_each_word_is_and_which_words_the_guess_rests_on(visit, served):
    model = served.store.get("embedded")
    expected = surprisal(model, MOON)
    explore = Explore(page := visit({"text": MOON}, color_scheme="dark")).see(MOON)
    beside, moon = page.get_by_role("tooltip"), expected.summary.most
    attributed = explore.mode("What mattered")
    expect(explore.story).to_have_text(
        f"The model was most surprised by “moon”: loss {moon.nll_nats:.2f} nats; "
        f"it wanted sofa ({100 * moon.wanted[0].probability:.1f}%)."
    )
    wanted = [min(1, own.nll_nats / 10) for own in expected.words]
    assert explore.tints() == pytest.approx(wanted, abs=1e-4)
    expect(explore.losses).to_have_count(7)
    expect(attributed).to_be_disabled()
    # What the model wanted stands beside a word, by pointer and by keyboard.
    explore.words.nth(5).hover()
    for own in moon.wanted:
        expect(beside).to_contain_text(own.word)
    expect(explore.words.nth(5)).to_have_accessible_description(re.compile("The model wanted"))
    beside.hover()
    expect(beside).to_be_visible()
    page.mouse.move(5, 5)
    expect(beside).to_be_hidden()
    explore.sentence.focus()
    explore.words.first.focus()
    page.keyboard.press("ArrowRight")
    expect(beside).to_contain_text("cat")
    page.keyboard.press("Escape")
    expect(beside).to_be_hidden()
    # Another unit draws the strip anew; the tints stand there again.
    explore.unfold("Options")
    page.get_by_role("radio", name="bits").check()
    bits = expected.summary.total_nll_nats / math.log(2)
    expect(page.locator(".fm-lens-facts")).to_contain_text(f"{bits:.2f} bits")
    assert explore.tints() == pytest.approx(wanted, abs=1e-4)
    page.get_by_role("radio", name="nats").check()
    expect(explore.story).to_contain_text("nats")
    readable_on_every_tint(explore)
    # A click hides the word; its loss is the one that the tint stood for.
    explore.words.nth(5).click()
    expect(explore.stats).to_contain_text("Hidden word “moon”")
    shown = float(re.search(r"loss ([\d.]+)", explore.stats.text_content())[1])
    assert shown == pytest.approx(moon.nll_nats, abs=0.006)
    expect(explore.story).to_have_count(0)
    assert {*explore.tints()} == {""}

    page.evaluate(f"fillmask.follow('tab=explore&hidden=[\"France\"]&text={PARIS}')")
    explore.see(PARIS)
    attributed.click()
    found = occlude(model, PARIS, word="France")
    paris = found.words[0]
    expect(explore.story).to_have_text(
        "“Paris” mattered most: without it, france (the hidden word) goes from "
        f"{100 * found.target.probability:.1f}% to {100 * paris.probability:.1f}%."
    )
    expect(attributed).to_be_checked()
    assert explore.tints() == pytest.approx([min(1, own.kl_nats) for own in found.words], abs=1e-4)
    explore.words.first.hover()
    expect(beside).to_contain_text(f"{paris.kl_nats:.3f} nats (KL)")
    assert explore.address()["mode"] == "mattered"
    readable_on_every_tint(explore)
    # It stays on for the next answer, of another mask.
    explore.words.nth(3).click()
    expect(page.get_by_role("button", name=re.compile("show its candidates"))).to_have_count(2)
    expect(explore.story).to_contain_text("mattered most")
    accessible(page)
    explore.mode("Predict").click()
    expect(explore.story).to_have_count(0)
    # Links of earlier versions name it otherwise.
    explore.open(text=PARIS, lens="mattered").see(PARIS)
    expect(attributed).to_be_checked()


def test_a_long_text_comes_as_it_is_computed_and_can_be_stopped(visit):
    page = visit({"text": LONG.strip()}, width=390, height=844)
    explore = Explore(page).see(LONG.strip())
    progress = page.locator("#lens-progress")
    expect(page.get_by_role("progressbar", name="words read so far")).to_be_visible()
    expect(explore.story).to_be_visible()
    progress.get_by_role("button", name="Stop").click()
    on = progress.get_by_role("button", name="Go on")
    expect(on).to_be_visible()
    expect(progress).to_contain_text(re.compile(r"(\d+) of 152 words"))
    told = int(re.search(r"(\d+) of 152", progress.inner_text())[1])
    expect(explore.losses).to_have_count(told)
    assert 0 < told < 152
    accessible(page)
    on.click()
    expect(explore.losses).not_to_have_count(told)
    # Another text gives up what is left of this one.
    explore.sentence.fill(MOON)
    expect(explore.story).to_contain_text("moon")
    expect(progress).to_be_hidden()
    expect(explore.losses).to_have_count(7)


def test_two_sentences_under_one_model(visit, served):
    explore = Explore(page := visit({"text": KING}, color_scheme="dark")).see(KING)
    other, hint = page.get_by_label("Second sentence"), page.locator("#pair-hint")
    view = page.locator("#pair-view")
    explore.mode("Predict").press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(explore.mode("Two sentences")).to_be_focused()
    expect(other).to_have_value(KING)
    expect(hint).to_have_text("Both sentences are the same: change a word in the second.")
    other.fill("The queen said that he was tired.")
    expect(hint).to_contain_text("The second sentence has no mask")
    other.fill(QUEEN)
    pair = pair_masks(served.store.get("embedded"), KING, QUEEN, top_k=10)
    first, second = pair.candidates[0].probabilities
    expect(view).to_contain_text(
        f"Largest difference: he has {100 * first:.1f}% with king and {100 * second:.1f}% with "
        "queen."
    )
    expect(hint).to_have_text("")
    drawn = view.locator(".fm-two-row").evaluate_all(
        """(rows) => rows.map((row) => [...row.querySelectorAll(".fm-two-fill")].map((fill) =>
            fill.getBoundingClientRect().width / fill.parentElement.clientWidth))"""
    )
    for widths, own in zip(drawn, pair.candidates, strict=False):
        assert widths == pytest.approx(own.probabilities, abs=0.01)
    expect(explore.bars).to_be_hidden()
    view.get_by_role("button", name="10%", exact=True).click()
    expect(view).to_contain_text("Magnified")
    explore.address_says("with=The")
    page.reload()
    expect(other).to_have_value(QUEEN)
    expect(view).to_contain_text("Largest difference")
    accessible(page)
    explore.mode("Predict").click()
    expect(other).to_be_hidden()
    expect(explore.bars).to_be_visible()
    assert "with" not in explore.address()


def test_two_models_at_a_mask_and_on_a_sentence(visit, served):
    text = "The [MASK] sat on the mat."
    first, second = (served.store.get(name) for name in ("embedded", "embedded:int8"))
    explore = Explore(page := visit({"text": text, "compare": "embedded:int8"})).see(text)
    both = explore.versus
    (mask,) = compare(first, second, text, top_k=10).masks
    expect(both.get_by_role("listitem")).to_have_count(len(mask.candidates))
    for said in (f"{mask.kl_nats:.3f} nats", "A: embedded", "B: embedded:int8"):
        expect(both).to_contain_text(said)
    expect(explore.bars).to_be_hidden()
    drawn = (
        both.locator("li")
        .first.locator(".fm-two-fill")
        .evaluate_all(
            "(all) => all.map((f) => f.getBoundingClientRect().width / f.parentElement.clientWidth)"
        )
    )
    top = mask.candidates[0]
    assert drawn == pytest.approx([top.probability, top.other_probability], abs=0.01)
    both.get_by_role("button", name="10%", exact=True).click()
    expect(both).to_contain_text("Magnified")
    both.get_by_text("words in numbers").click()
    expect(both.locator("tbody tr")).to_have_count(len(mask.candidates))
    accessible(page, within="#stage")

    expected = compare_sentence(first, second, MOON)
    explore.sentence.fill(MOON)
    explore.see(MOON)
    lines, tints = page.locator(".fm-apart-lines svg"), page.locator("#apart-tints")
    expect(lines).to_be_visible()
    labels = [
        f"{'▲' if own.difference_nats > 0 else '▼'}{abs(own.difference_nats):.2f}"
        for own in expected.words
    ]
    expect(explore.words.last).to_have_attribute("data-apart", labels[-1])
    assert explore.words.evaluate_all("(all) => all.map((b) => b.dataset.apart)") == labels
    expect(explore.losses).to_have_count(7)
    explore.words.nth(5).hover()
    beside, moon = page.get_by_role("tooltip"), expected.words[5]
    for side in (*moon.first, *moon.second):
        expect(beside).to_contain_text(side.wanted[0].word)
    expect(beside).to_contain_text(f"loss {moon.other_nll_nats:.3f} nats")
    tints.get_by_role("button", name="Loss of B").click()
    expect(explore.words.nth(5)).to_have_attribute("data-apart", f"{moon.other_nll_nats:.2f}")
    assert explore.address()["tint"] == "b"
    page.go_back()
    expect(explore.words.nth(5)).to_have_attribute("data-apart", labels[5])
    accessible(page, within="#stage")
    # A model that cannot be had leaves the first.
    explore.pick("Compare with", "no/such.onnx")
    expect(explore.notice).to_contain_text("no/such.onnx")
    expect(explore.story).to_contain_text("most surprised by")
    explore.words.nth(5).click()
    expect(explore.sentence).to_have_value("The cat sat on the [MASK].")
    expect(both.get_by_role("alert")).to_contain_text("no/such.onnx")
    expect(lines).to_have_count(0)
    explore.mode("Predict").click()
    expect(explore.bars).to_be_visible()
    page.wait_for_url(lambda url: "compare=" not in url)


def test_the_sentences_on_which_two_models_differ_most(visit, served):
    text = "The cat [MASK]."
    own = ["The dog barked all night.", "Too short.", "She drank a cup of tea."]
    own.append("It is a [MASK] day.")
    pair = [served.store.get(name) for name in ("embedded", "embedded:int8")]
    looked = [look(*pair, Sentence(number, 0, line)).found for number, line in enumerate(own)]
    expected = sorted(filter(None, looked), key=lambda found: found.order, reverse=True)
    page = visit({"text": text, "list": "\n".join(own)}, color_scheme="dark")
    explore = Explore(page).see(text)
    opener = page.get_by_role("button", name="Where do they part?")
    expect(opener).to_be_hidden()
    explore.mode("Two models").click()
    opener.click()
    panel = page.get_by_role("region", name="Where do the two models part?")
    status = panel.get_by_role("status")
    panel.get_by_label("your own sentences").check()
    panel.get_by_role("button", name="Search").click()
    expect(status).to_contain_text("of 3 sentences")
    expect(status).to_contain_text("too short or too long: 1")
    found = panel.get_by_role("list", name="Sentences").get_by_role("button")
    expect(found).to_contain_text([each.sentence.text for each in expected])
    found.first.click()
    explore.see(expected[0].masked)
    expect(found.first).to_have_attribute("aria-current", "true")
    accessible(page)
    page.go_back()
    explore.see(text)
    expect(found).to_have_count(len(expected))
    # Another unit or model: the list is of neither.
    explore.unfold("Options")
    page.get_by_role("radio", name="bits").check()
    expect(found).to_have_count(0)
    # A search of the embedded sentences stops and goes on, and the focus stays where it is wanted.
    explore.open(text=text, compare="embedded").see(text)
    opener.click()
    panel.get_by_role("button", name="Search").click()
    expect(panel).to_contain_text(" of 200 sentences")
    stop = panel.get_by_role("button", name="Stop", exact=True)
    stop.press("Enter")
    expect(status).to_contain_text("They never part on these")
    expect(panel.get_by_role("button", name="Go on")).to_be_focused()
    so_far = int(re.search(r"these (\d+)", status.inner_text())[1])
    page.keyboard.press("Enter")
    expect(panel).to_contain_text(" of 200 sentences")
    stop.click()
    expect(status).to_contain_text("They never part on these")
    assert int(re.search(r"these (\d+)", status.inner_text())[1]) >= so_far
