"""Other ways to look at a sentence: surprisal, occlusion, two sentences, two models."""

import math
import re

import pytest
from accessibility import accessible, themes
from journey import Explore
from playwright.sync_api import expect

from fillmask_ui import compare, compare_sentence, occlude, pair_masks, surprisal
from fillmask_ui.comparing.divergence_search import Sentence, look
from fillmask_ui.ui.explore.attribution_view import CHANGES, LOSSES

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
    const ground = light(over(page)), tint = light(over(page, own.backgroundColor));
    const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    return [ratio(light(over(own.color)), tint), ratio(ground, tint)];
}"""


def readable_on_every_tint(explore):
    """Letters 4.5 to 1, the weakest tint 1.5 to the ground, each further from it than the last."""
    word = explore.words.first
    for _ in themes(explore.page):
        grounds = []
        for level in range(5):
            word.evaluate("(button, level) => { button.dataset.level = level; }", level)
            letters, ground = word.evaluate(CONTRAST)
            assert letters >= 4.5
            grounds.append(ground)
        assert grounds[1] >= 1.5
        assert grounds == sorted(grounds)


def test_how_surprising_each_word_is_and_which_words_the_guess_rests_on(visit, served):
    model = served.store.get("embedded")
    expected = surprisal(model, MOON)
    explore = Explore(page := visit({"text": MOON}, color_scheme="dark")).see(MOON)
    beside, moon = page.get_by_role("tooltip"), expected.summary.most
    attributed = explore.mode("What mattered")
    expect(explore.story).to_have_text(
        f"Most surprising: moon, {moon.nll_nats:.2f} nats. "
        f"The model expected sofa ({100 * moon.expected[0].probability:.1f}%)."
    )
    levels = [LOSSES.of(word.nll_nats) for word in expected.words]
    assert explore.tints() == levels and len({*levels}) > 2
    columns = page.get_by_role("region", name="Loss of each word").get_by_role("listitem")
    expect(columns).to_contain_text([f"{word.nll_nats:.1f}" for word in expected.words[4:6]])
    expect(explore.losses).to_have_count(7)
    expect(attributed).to_be_disabled()
    # What the model wanted stands beside a word, by pointer and by keyboard.
    explore.words.nth(5).hover()
    for word in moon.expected:
        expect(beside).to_contain_text(word.word)
    expect(explore.words.nth(5)).to_have_accessible_description(re.compile("The model expected"))
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
    explore.state("change({unit: 'bits'})")
    bits = expected.summary.total_nll_nats / math.log(2)
    expect(explore.found).to_contain_text(f"Total {bits:.2f} bits")
    assert explore.tints() == levels
    explore.state("change({unit: 'nats'})")
    expect(explore.story).to_contain_text("nats")
    readable_on_every_tint(explore)
    # A click hides the word; its loss is the one that the tint stood for.
    explore.words.nth(5).click()
    expect(explore.stats).to_contain_text("Hidden word “moon”")
    printed_loss = float(re.search(r"loss ([\d.]+)", explore.stats.text_content())[1])
    assert printed_loss == pytest.approx(moon.nll_nats, abs=0.006)
    expect(explore.story).to_have_count(0)
    assert {*explore.tints()} == {0}

    page.evaluate(f"fillmask.follow('tab=explore&hidden=[\"France\"]&text={PARIS}')")
    explore.see(PARIS)
    attributed.click()
    occlusion = occlude(model, PARIS, word="France")
    paris = occlusion.words[0]
    expect(explore.story).to_have_text(
        "Paris mattered most: without it, france (the hidden word) goes from "
        f"{100 * occlusion.target.probability:.1f}% to {100 * paris.probability:.1f}%."
    )
    expect(attributed).to_be_checked()
    assert explore.tints() == [CHANGES.of(word.kl_nats) for word in occlusion.words]
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

    # A long text comes as it is computed, and can be stopped.
    page.set_viewport_size({"width": 390, "height": 844})
    explore.open(text=LONG.strip()).see(LONG.strip())
    progress = page.locator("#growth")
    expect(page.get_by_role("progressbar", name="words read so far")).to_be_visible()
    expect(explore.story).to_be_visible()
    progress.get_by_role("button", name="Stop").click()
    on = progress.get_by_role("button", name="Go on")
    expect(on).to_be_visible()
    expect(progress).to_contain_text(re.compile(r"(\d+) of 152 words"))
    count = int(re.search(r"(\d+) of 152", progress.inner_text())[1])
    expect(explore.losses).to_have_count(count)
    assert 0 < count < 152
    explore.fits(390)
    accessible(page)
    on.click()
    expect(explore.losses).not_to_have_count(count)
    # Another text gives up what is left of this one.
    explore.sentence.fill(MOON)
    expect(explore.story).to_contain_text("moon")
    expect(progress).to_be_hidden()
    expect(explore.losses).to_have_count(7)


def sizes(rows):
    """The lengths of the bars of each row, as shares of its axis."""
    return rows.evaluate_all(
        """(rows) => rows.map((row) => [...row.querySelectorAll(".fm-mark")].map((bar) =>
            bar.getBoundingClientRect().width / bar.parentElement.clientWidth))"""
    )


def test_two_sentences_under_one_model(visit, served):
    explore = Explore(page := visit({"text": KING}, color_scheme="dark")).see(KING)
    second_box, hint = page.get_by_label("Second sentence"), page.locator("#found-notice")
    explore.mode("Predict").press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(explore.mode("Two sentences")).to_be_focused()
    expect(second_box).to_have_value(KING)
    expect(hint).to_have_text("Both sentences are the same: change a word in the second.")
    second_box.fill("The queen said that he was tired.")
    expect(hint).to_contain_text("The second sentence has no mask")
    second_box.fill(QUEEN)
    pair = pair_masks(served.store.get("embedded"), KING, QUEEN, top_k=10)
    he = pair.candidates[0]
    expect(explore.story).to_contain_text(
        f"he changes most: {100 * he.reference_probability:.1f}% with king, "
        f"{100 * he.candidate_probability:.1f}% with queen."
    )
    expect(hint).to_have_text("")
    rows = explore.found.get_by_role("list", name="Words").get_by_role("listitem")
    (largest,), (second,), *_ = sizes(rows)
    changes = [abs(word.difference) for word in pair.candidates]
    assert second / largest == pytest.approx(changes[1] / changes[0], abs=0.01)
    by = explore.found.get_by_role("radio", name="By probability")
    by.click()
    expect(by).to_be_checked()
    best = sorted(pair.candidates, key=lambda word: -max(word.probabilities))
    for drawn, word in zip(sizes(rows), best, strict=False):
        assert drawn == pytest.approx(word.probabilities, abs=0.01)
    expect(explore.bars).to_be_hidden()
    explore.address_says("with=The")
    explore.address_says("by=probability")
    page.reload()
    expect(second_box).to_have_value(QUEEN)
    expect(explore.story).to_contain_text("changes most")
    accessible(page)
    explore.mode("Predict").click()
    expect(second_box).to_be_hidden()
    expect(explore.bars).to_be_visible()
    assert "with" not in explore.address()


def test_two_models_at_a_mask_and_on_a_sentence(visit, served):
    text = "The [MASK] sat on the mat."
    first, second = (served.store.get(name) for name in ("embedded", "embedded:int8"))
    explore = Explore(page := visit({"text": text, "compare": "embedded:int8"})).see(text)
    panel = explore.found
    (mask,) = compare(first, second, text, top_k=10).masks
    for text in (f"{mask.kl_nats:.3f} nats", "KL, reference to candidate"):
        expect(panel).to_contain_text(text)
    expect(explore.bars).to_be_hidden()
    # The largest change first, with its sign, both probabilities and both ranks.
    rows = panel.get_by_role("list", name="Words").get_by_role("listitem")
    changed = sorted(mask.candidates, key=lambda word: -abs(word.difference))[:10]
    expect(rows).to_have_count(len(changed))
    for row, word in zip(rows.all(), changed, strict=True):
        row_text = row.inner_text().replace("−", "-")
        assert f"{word.reference_rank:,} → {word.candidate_rank:,}" in row_text
        assert f"{100 * word.difference:+.2f}" in row_text or abs(word.difference) < 5e-5
    explore.fits(1280)
    page.set_viewport_size({"width": 390, "height": 844})
    explore.fits(390)
    page.set_viewport_size({"width": 1280, "height": 800})
    panel.get_by_text("words in numbers").click()
    expect(panel.locator("tbody tr")).to_have_count(len(mask.candidates))
    accessible(page, within="#stage")

    expected = compare_sentence(first, second, MOON)
    explore.sentence.fill(MOON)
    explore.see(MOON)
    tints = panel.get_by_role("radiogroup", name="Columns and tints")
    labels = [
        f"{word.candidate_nll_nats - word.reference_nll_nats:+.2f}" for word in expected.words
    ]
    labels = ["=" if label[1:] == "0.00" else label.replace("-", "−") for label in labels]
    assert "=" in labels
    expect(explore.words.last).to_have_attribute("data-apart", labels[-1])
    assert explore.words.evaluate_all("(all) => all.map((b) => b.dataset.apart)") == labels
    expect(explore.losses).to_have_count(7)
    explore.words.nth(5).hover()
    beside, moon = page.get_by_role("tooltip"), expected.words[5]
    for part in (*moon.reference, *moon.candidate):
        expect(beside).to_contain_text(part.expected[0].word)
    expect(beside).to_contain_text(f"loss {moon.candidate_nll_nats:.3f} nats")
    tints.get_by_role("radio", name="Candidate").click()
    expect(explore.words.nth(5)).to_have_attribute("data-apart", f"{moon.candidate_nll_nats:.2f}")
    assert explore.address()["tint"] == "b"
    page.go_back()
    expect(explore.words.nth(5)).to_have_attribute("data-apart", labels[5])
    accessible(page, within="#stage")
    # A model that cannot be had leaves the sentence, and the other modes.
    explore.state("change({compare: 'no/such.onnx'})")
    alert = page.locator("#found-notice").get_by_role("alert")
    expect(alert).to_contain_text("no/such.onnx")
    explore.words.nth(5).click()
    expect(explore.sentence).to_have_value("The cat sat on the [MASK].")
    expect(alert).to_contain_text("no/such.onnx")
    explore.mode("Predict").click()
    expect(explore.bars).to_be_visible()
    expect(alert).to_have_count(0)
    page.wait_for_url(lambda url: "compare=" not in url)


def test_the_sentences_on_which_two_models_differ_most(visit, served):
    text = "The cat [MASK]."
    lines = ["The dog barked all night.", "Too short.", "She drank a cup of tea."]
    lines.append("It is a [MASK] day.")
    pair = [served.store.get(name) for name in ("embedded", "embedded:int8")]
    looked = [look(*pair, Sentence(number, 0, line)) for number, line in enumerate(lines)]
    hidden = [each for sentence in looked for each in sentence.hidden]
    # What is equal as printed is not listed.
    differing = [each for each in hidden if each.flipped or f"{each.kl_nats:.3f}" != "0.000"]
    assert len(differing) < len(hidden)
    expected = sorted(differing, key=lambda each: each.kl_nats, reverse=True)
    page = visit({"text": text, "list": "\n".join(lines)}, color_scheme="dark")
    explore = Explore(page).see(text)
    opener = page.get_by_role("button", name="Where do they differ most?")
    expect(opener).to_be_hidden()
    explore.mode("Two models").click()
    # It begins with the first click, on the page's own sentences.
    opener.click()
    panel = page.get_by_role("region", name="Where the two models differ most")
    expect(panel).to_contain_text(" of 200 sentences")
    panel.get_by_role("radio", name="Your own sentences").click()
    flips = sum(each.flipped for each in hidden)
    status = panel.get_by_role("status")
    expect(status).to_contain_text(f"{flips} of {len(hidden)} hidden words")
    expect(status).to_contain_text("95% interval")
    expect(panel).to_contain_text("1 skipped (too short or too long)")
    buttons = panel.get_by_role("list", name="Sentences").get_by_role("button")
    expect(buttons).to_contain_text([each.sentence.text for each in expected])
    # A bar of the histogram lists its own words; a second click brings all back.
    bar = panel.locator("[data-bin]").first
    bar.click()
    expect(panel).to_contain_text("show all")
    expect(buttons).to_have_count(sum(each.kl_nats < 0.001 for each in hidden))
    bar.click()
    expect(buttons).to_have_count(len(differing))
    panel.get_by_role("radio", name="Rank of the word").click()
    expect(panel.get_by_role("radio", name="Rank of the word")).to_be_checked()
    panel.get_by_role("radio", name="KL").click()
    expect(panel.get_by_role("radio", name="KL")).to_be_checked()
    expect(buttons.first).to_contain_text(expected[0].sentence.text)
    buttons.first.click()
    explore.see(expected[0].masked)
    expect(buttons.first).to_have_attribute("aria-current", "true")
    accessible(page)
    page.go_back()
    explore.see(text)
    expect(buttons).to_have_count(len(differing))
    # The search of other models is another one.
    explore.state("change({compare: 'embedded'})")
    expect(panel).to_be_hidden()
    # A search stops and goes on.
    opener.click()
    panel.get_by_role("radio", name="The page's texts").click()
    expect(panel).to_contain_text(" of 200 sentences")
    panel.get_by_role("button", name="Stop", exact=True).press("Enter")
    on = panel.get_by_role("button", name="Go on")
    expect(on).to_be_focused()
    expect(status).to_contain_text("No difference seen")
    so_far = int(re.search(r"(\d+) of 200", panel.inner_text())[1])
    on.press("Enter")
    panel.get_by_role("button", name="Stop", exact=True).click()
    expect(on).to_be_visible()
    assert int(re.search(r"(\d+) of 200", panel.inner_text())[1]) >= so_far
