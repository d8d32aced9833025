"""The lenses over the sentence in a real browser: tints, words beside them, a second sentence."""

import re

import pytest
from chromium import faults_of
from explore_page import Explorer, version
from playwright.sync_api import expect

from fillmask_ui import load_model, occlude, pair_masks, surprisal

MOON = "The cat sat on the moon."
PARIS = "Paris is the capital of [MASK]."
KING, QUEEN = (f"The {who} said that [MASK] was tired." for who in ("king", "queen"))
LONG = "The old man walked along the river and thought of his brother, who had left the town. " * 8


class Lenses(Explorer):
    """The tab with its lenses."""

    def __init__(self, page, served):
        super().__init__(page, served)
        self.tokens = self.strip.locator('button[data-action="hide"]')
        self.story = page.locator("#lens-story .fm-lens-story")
        self.beside = page.get_by_role("tooltip")
        self.words = page.locator("#lens-table tbody tr")
        self.progress = page.locator("#lens-progress")
        self.mattered = page.get_by_role("button", name="Which words mattered?")
        self.compare = page.get_by_role("button", name="Compare two sentences")
        self.other = page.get_by_label("Second sentence")
        self.hint = page.locator("#pair-hint")

    def tints(self):
        """Tint of each word of the strip, None where it has none."""
        return self.tokens.evaluate_all(
            "(all) => all.map((b) => b.style.getPropertyValue('--tint')).map((t) => t && +t)"
        )


@pytest.fixture
def lenses(browser, served):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(20_000)
    expect.set_options(timeout=20_000)
    page = context.new_page()
    faults = faults_of(page)
    yield Lenses(page, served)
    context.close()
    assert faults == []


def test_a_sentence_without_a_mask_shows_its_surprise_by_itself(lenses):
    expected = surprisal(load_model("embedded"), MOON)
    lenses.open(text=MOON).see(MOON)
    moon = expected.summary.most
    expect(lenses.story).to_have_text(
        f"The model was most surprised by “moon”: loss {moon.nll_nats:.2f} nats; "
        f"it wanted sofa ({100 * moon.wanted[0].probability:.1f}%)."
    )
    found = [min(1, own.nll_nats / 10) for own in expected.words]
    assert lenses.tints() == pytest.approx(found, abs=1e-4)
    expect(lenses.words).to_have_count(7)
    expect(lenses.mattered).to_be_hidden()
    expect(lenses.progress).to_be_hidden()
    # A click hides the word; the loss of the hidden word is the one that the tint stood for.
    lenses.tokens.nth(5).click()
    stats = lenses.page.locator("#stats")
    expect(stats).to_contain_text("Hidden word “moon”")
    shown = float(re.search(r"loss ([\d.]+)", stats.inner_text())[1])
    assert shown == pytest.approx(moon.nll_nats, abs=0.006)
    expect(lenses.story).to_have_count(0)
    assert {*lenses.tints()} == {""}
    expect(lenses.mattered).to_be_visible()


def test_what_the_model_wanted_stands_beside_a_word(lenses):
    """By pointer and by keyboard; Escape sends it away, and it can be pointed at itself."""
    moon = surprisal(load_model("embedded"), MOON).words[5]
    lenses.open(text=MOON).see(MOON)
    expect(lenses.story).to_be_visible()
    lenses.tokens.nth(5).hover()
    for own in moon.wanted:
        expect(lenses.beside).to_contain_text(own.word)
    expect(lenses.beside).to_contain_text(f"loss {moon.nll_nats:.2f} nats")
    expect(lenses.tokens.nth(5)).to_have_accessible_description(re.compile("The model wanted"))
    lenses.beside.hover()
    lenses.page.wait_for_timeout(300)
    expect(lenses.beside).to_be_visible()
    lenses.page.mouse.move(5, 5)
    expect(lenses.beside).to_be_hidden()
    lenses.sentence.focus()
    lenses.tokens.first.focus()
    lenses.page.keyboard.press("ArrowRight")
    expect(lenses.beside).to_contain_text("cat")
    lenses.page.keyboard.press("ArrowRight")
    expect(lenses.beside).to_contain_text("sat")
    lenses.page.keyboard.press("Escape")
    expect(lenses.beside).to_be_hidden()


def test_bits(lenses):
    lenses.open(text=MOON, unit="bits").see(MOON)
    bits = surprisal(load_model("embedded"), MOON).summary.total_nll_nats / 0.693147180559945
    expect(lenses.page.locator(".fm-lens-facts")).to_contain_text(f"{bits:.2f} bits")


def test_a_long_text_comes_as_it_is_computed_and_can_be_stopped(lenses):
    lenses.open(text=LONG.strip()).see(LONG.strip())
    bar = lenses.page.get_by_role("progressbar", name="words read so far")
    expect(bar).to_be_visible()
    expect(lenses.story).to_be_visible()
    lenses.progress.get_by_role("button", name="Stop").click()
    on = lenses.progress.get_by_role("button", name="Go on")
    expect(on).to_be_visible()
    lenses.page.wait_for_timeout(1_500)
    rows = lenses.words.count()
    assert 0 < rows < 152
    lenses.page.wait_for_timeout(500)
    assert lenses.words.count() == rows
    expect(lenses.progress).to_contain_text(f"{rows} of 152 words")
    on.click()
    expect(lenses.words).not_to_have_count(rows)
    # Another text gives up what is left of this one.
    lenses.sentence.fill(MOON)
    expect(lenses.story).to_contain_text("moon")
    expect(lenses.progress).to_be_hidden()
    expect(lenses.words).to_have_count(7)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Hello", "most surprised by “Hello”"),
        ("☃ ran over the old bridge", "cannot spell it: ☃"),
        ("<b>bold</b> words", "most surprised"),
    ],
)
def test_odd_sentences(lenses, text, says):
    lenses.open(text=text).see(text)
    expect(lenses.page.locator("#lens-story")).to_contain_text(says)


def test_a_text_that_is_too_long_says_so(lenses):
    lenses.open(text=MOON).see(MOON)
    expect(lenses.story).to_be_visible()
    lenses.sentence.fill("word " * 5000)
    expect(lenses.notice).to_contain_text("5,002 tokens and this model takes at most 512")


def test_which_words_mattered(lenses):
    """On request; it stays on when the answer changes, and in the link."""
    lenses.open(text=PARIS, hidden='["France"]').see(PARIS)
    expect(lenses.mattered).to_have_attribute("aria-pressed", "false")
    assert {*lenses.tints()} == {""}
    lenses.mattered.click()
    found = occlude(load_model("embedded"), PARIS, word="France")
    paris = found.words[0]
    expect(lenses.story).to_have_text(
        "“Paris” mattered most: without it, france (the hidden word) goes from "
        f"{100 * found.target.probability:.1f}% to {100 * paris.probability:.1f}%."
    )
    expect(lenses.mattered).to_have_attribute("aria-pressed", "true")
    expect(lenses.page.locator("#lens-story")).to_contain_text("not the attention")
    expected = [min(1, own.kl_nats) for own in found.words]
    assert lenses.tints() == pytest.approx(expected, abs=1e-4)
    lenses.tokens.first.hover()
    expect(lenses.beside).to_contain_text(f"{paris.kl_nats:.3f} nats (KL)")
    assert "lens=mattered" in lenses.page.url
    # The next answer, of another mask.
    lenses.tokens.nth(3).click()
    expect(lenses.strip.locator(".fm-mask")).to_have_count(2)
    expect(lenses.mattered).to_have_attribute("aria-pressed", "true")
    expect(lenses.story).to_contain_text("mattered most")
    lenses.mattered.click()
    expect(lenses.story).to_have_count(0)
    assert {*lenses.tints()} == {""}


def test_two_sentences(lenses):
    lenses.open(text=KING).see(KING)
    lenses.compare.click()
    expect(lenses.other).to_be_focused()
    expect(lenses.other).to_have_value(KING)
    expect(lenses.hint).to_have_text("Both sentences are the same: change a word in the second.")
    lenses.other.fill("The queen said that he was tired.")
    expect(lenses.hint).to_contain_text("The second sentence has no mask")
    lenses.other.fill(QUEEN)
    pair = pair_masks(load_model("embedded"), KING, QUEEN, top_k=10)
    first, second = pair.candidates[0].probabilities
    view = lenses.page.locator("#pair-view")
    expect(view.locator(".fm-lens-story")).to_have_text(
        f"Largest difference: he has {100 * first:.1f}% with king and {100 * second:.1f}% with "
        "queen."
    )
    expect(lenses.hint).to_have_text("")
    # Bars on the axis of the page, differences first.
    drawn = view.locator(".fm-two-row").evaluate_all(
        """(rows) => rows.map((row) => [...row.querySelectorAll(".fm-two-fill")].map((fill) =>
            fill.getBoundingClientRect().width / fill.parentElement.clientWidth))"""
    )
    for widths, own in zip(drawn, pair.candidates, strict=False):
        assert widths == pytest.approx(own.probabilities, abs=0.01)
    expect(lenses.page.locator("#bars")).to_be_hidden()
    view.get_by_role("button", name="10%", exact=True).click()
    expect(view).to_contain_text("Magnified")
    # In the link.
    lenses.page.wait_for_url(re.compile("with=The"))
    lenses.page.reload()
    expect(lenses.other).to_have_value(QUEEN)
    expect(view.locator(".fm-lens-story")).to_contain_text("Largest difference")
    lenses.compare.click()
    expect(lenses.other).to_be_hidden()
    expect(lenses.page.locator("#bars")).to_be_visible()
    assert "with=" not in lenses.page.url


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


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("lens", ["surprise", "mattered"])
def test_text_can_be_read_on_every_tint(lenses, theme, lens):
    """WCAG 2.2, 1.4.3: 4.5 to 1, by its own formula; more than one tint is really there."""
    text = MOON if lens == "surprise" else PARIS
    lenses.open(text=text, lens="mattered", __theme=theme).see(text)
    expect(lenses.story).to_be_visible()
    backgrounds = set()
    for tint in (0, 0.25, 0.5, 0.75, 1):
        word = lenses.tokens.first
        word.evaluate("(button, tint) => button.style.setProperty('--tint', tint)", tint)
        backgrounds.add(word.evaluate("(button) => getComputedStyle(button).backgroundColor"))
        assert word.evaluate(CONTRAST) >= 4.5
    assert len(backgrounds) == 5


def test_axe_finds_nothing(lenses):
    from axe_playwright_python.sync_playwright import Axe

    for values in (
        {"text": MOON},
        {"text": PARIS, "lens": "mattered"},
        {"text": KING, "with": QUEEN},
    ):
        lenses.open(**values).see(values["text"])
        expect(
            lenses.page.locator("#lens-story .fm-lens-story, #pair-view .fm-lens-story")
        ).to_be_visible()
        lenses.tokens.first.hover()
        found = Axe().run(lenses.page, context="#lens, #strip, #lens-table")
        assert found.violations_count == 0, found.generate_report()


def test_the_strip_that_is_replaced_is_the_one_that_is_tinted(lenses):
    """A new unit draws the strip anew; the tints stand there again, in the same version."""
    lenses.open(text=MOON).see(MOON)
    expect(lenses.story).to_be_visible()
    before = lenses.tints()
    lenses.page.get_by_role("radio", name="bits").check()
    expect(lenses.story).to_contain_text("bits")
    assert lenses.tints() == before
    expect(lenses.strip).to_have_attribute("data-version", version(MOON))
