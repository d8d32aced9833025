"""No part of the page breaks a rule of axe-core, best practices included, and focus is visible.

Each state is looked at on a light screen 1280 pixels wide and on a dark one of 390.
"""

import pytest
from accessibility import STILL, Known, prepare, violations
from evaluate_bench import Bench, of_texts
from playwright.sync_api import expect

from fillmask_ui.lessons import chapters

# Reviewed: made by Gradio, and out of reach of templates and styles.
KNOWN = (
    Known("image-redundant-alt", "footer", "Gradio names the icon as the button that it is in"),
)


@pytest.fixture
def page(browser, address):
    """A new visitor."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    prepare(context)
    page = context.new_page()
    page.goto(address)
    expect(page.locator("#bars .fm-bar-row").first).to_be_visible()
    yield page
    context.close()


class Audit:
    """Looks at a page state by state, and tells at the end."""

    def __init__(self, page):
        self.page, self.found = page, []

    def look(self, state, **options):
        self.found += violations(self.page, state, KNOWN, **options)

    def report(self):
        return "\n".join(map(str, self.found))


def test_explore_in_all_its_states(page):
    audit, sentence = Audit(page), page.locator("#sentence textarea")
    strip, notice = page.locator("#strip"), page.locator("#notice .fm-notice")
    audit.look("one mask")
    page.locator("#details summary").click()
    page.locator("#words textarea, #words input").first.fill("coffee, souvenir")
    expect(page.locator("#scored")).to_contain_text("souvenir")
    audit.look("candidates and details")
    page.get_by_role("tab", name="Long words").click()
    audit.look("another set of examples")
    strip.get_by_role("button", name="morning").click()
    expect(page.locator("#joint table")).to_be_visible()
    audit.look("several masks")
    sentence.fill("The cat sat on the mat.")
    expect(page.locator("#bars .fm-bar-row")).to_have_count(0)
    audit.look("no mask")
    sentence.fill("")
    expect(notice).to_contain_text("Write a sentence")
    audit.look("no sentence")
    box = page.get_by_role("combobox", name="Model")
    sentence.fill("The cat sat on the [MASK].")
    box.fill("no/such")
    box.press("Enter")
    expect(page.locator("#notice .fm-error")).to_be_visible()
    audit.look("an error")
    assert not audit.found, audit.report()


def test_the_other_ways_to_look_at_a_sentence(page):
    audit, sentence = Audit(page), page.locator("#sentence textarea")
    page.get_by_role("button", name="Which words mattered?").click()
    page.locator("#lens-table summary").click()
    expect(page.locator("#lens-table table")).to_be_visible()
    audit.look("which words mattered", within="#stage")
    page.get_by_role("tab", name="Grammar").click()
    page.get_by_role("button", name="keys and cabinet").click()
    expect(page.locator("#pair-view figure")).to_be_visible()
    audit.look("two sentences", within="#stage")
    sentence.fill("The [MASK] sat on the [MASK].")
    box = page.get_by_role("combobox", name="Compare with")
    box.fill("embedded:int8")
    box.press("Enter")
    page.locator("#versus summary").click()
    expect(page.locator("#versus table")).to_be_visible()
    expect(page.locator("#joint")).to_contain_text("both models")
    audit.look("two models", within="#stage")
    audit.look("joint fillings of two models", within="#tables")
    box.fill("")
    box.press("Enter")
    expect(page.locator("#bars")).to_be_visible()
    sentence.fill("The cat sat on the [MASK].")
    guess = page.get_by_role("button", name="Guess first")
    guess.click()
    panel = page.get_by_role("region", name="Guesses of the class")
    panel.get_by_role("textbox", name="Word", exact=True).fill("mat")
    panel.get_by_role("button", name="Add", exact=True).click()
    expect(panel.get_by_role("list", name="Guesses")).to_contain_text("mat")
    audit.look("guesses", within="#stage")
    panel.get_by_role("button", name="Reveal").click()
    expect(panel.locator("table")).to_be_visible()
    audit.look("guesses revealed", within="#stage")
    guess.click()
    sentence.fill("The children went to school by elephant.")
    expect(page.locator("#lens-story")).to_contain_text("elephant")
    audit.look("surprise", within="#stage")
    compare = page.get_by_role("combobox", name="Compare with")
    compare.fill("embedded:int8")
    compare.press("Enter")
    expect(page.locator(".fm-apart-lines svg")).to_be_visible()
    audit.look("a sentence under two models", within="#stage")
    page.get_by_role("button", name="Present").click()
    expect(page.locator("body.fm-presenting")).to_be_visible()
    audit.look("presenting")
    page.keyboard.press("Escape")
    assert not audit.found, audit.report()


def test_where_two_models_part(page, address):
    audit = Audit(page)
    page.goto(f"{address}?text=The+cat+%5BMASK%5D.&compare=embedded%3Aint8")
    page.get_by_role("button", name="Where do they part?").click()
    panel = page.get_by_role("region", name="Where do the two models part?")
    expect(panel).to_be_visible()
    audit.look("before the search", within="#parting")
    panel.get_by_role("button", name="Search").click()
    found = panel.get_by_role("list").get_by_role("button")
    expect(found.nth(4)).to_be_visible()
    panel.get_by_role("button", name="Stop", exact=True).click()
    found.first.click()
    expect(found.first).to_have_attribute("aria-current", "true")
    audit.look("sentences found", within="#parting")
    assert not audit.found, audit.report()


def test_evaluate_in_all_its_states(page, address, tmp_path):
    audit, bench = Audit(page), Bench(page, address)
    bench.open()
    audit.look("before a run")
    of_texts(bench, tmp_path, a="table")
    audit.look("more options", within="#evaluate .fm-input")
    bench.run()
    bench.finished()
    audit.look("a run", within="#evaluate")
    bench.model("Model B", "noisy")
    bench.run()
    expect(page.locator(".fm-verdict")).to_be_visible()
    bench.finished()
    for fold in ("More charts", "All figures", "All tokens"):
        bench.unfold(fold)
    expect(bench.tokens.first).to_be_visible()
    bench.list_runs()
    expect(bench.runs).to_have_count(2)
    audit.look("two models, everything unfolded")
    bench.tokens.first.locator("td.fm-number").first.click()
    expect(page.locator("#token-side .fm-sides")).to_be_visible()
    audit.look("one token", within="#evaluate-tokens")
    assert not audit.found, audit.report()


def test_the_guide_and_the_tour(page):
    audit = Audit(page)
    page.get_by_role("tab", name="Guide").click()
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    audit.look("the Guide")
    page.get_by_role("button", name="Show the tour again").click()
    tour = page.get_by_role("dialog", name="Tour of the page")
    expect(tour).to_be_visible()
    audit.look("the tour")
    tour.get_by_role("button", name="Skip").click()
    expect(tour).to_be_hidden()
    assert not audit.found, audit.report()


def test_all_chapters_and_the_projector(page):
    audit = Audit(page)
    page.get_by_role("tab", name="Learn").click()
    onward = page.get_by_role("button", name="Next →")
    for number, chapter in enumerate(chapters()):
        if number:
            onward.click()
        expect(page.get_by_role("heading", name=chapter.title, exact=True, level=2)).to_be_visible()
        for figure in page.locator(".fm-chapter:visible .fm-figure").all():
            expect(figure).to_have_attribute("aria-busy", "false")
        expect(page.locator(".fm-exercises:visible form").first).to_be_visible()
        audit.look(f"chapter {chapter.name}", within="#learn")
    page.keyboard.press("p")
    expect(page.locator(".fm-step:visible")).to_have_count(1)
    audit.look("a step on the projector")
    assert not audit.found, audit.report()


def test_unmasking(page):
    audit = Audit(page)
    page.get_by_role("tab", name="Unmask").click()
    expect(page.locator(".fm-unmasked")).to_have_count(2)
    page.get_by_text("Setting B").first.click()
    page.locator('[data-cell="A:1"]').first.click()
    expect(page.locator(".fm-cell-panel")).to_be_visible()
    audit.look("two decodings")
    page.get_by_role("button", name="To the beginning").click()
    page.get_by_label("Threshold").first.fill("-1")
    expect(page.locator(".fm-unmask .fm-error")).to_be_visible()
    audit.look("a wrong option", within="#unmask")
    assert not audit.found, audit.report()


def test_quantizing(page):
    audit = Audit(page)
    page.get_by_role("tab", name="Quantize").click()
    page.get_by_role("button", name="More options").click()
    expect(page.get_by_label("Keep in full precision")).to_be_visible()
    audit.look("before a run", within="#quantize")
    page.get_by_label("Number of texts").fill("5")
    for name in ("int8:", "int8-channel:", "fp16:"):
        page.get_by_label(name).uncheck()
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#quantize-notice .fm-error")).to_be_visible()
    audit.look("nothing ticked", within="#quantize")
    page.get_by_label("int8:").check()
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#quantize-notice .fm-error")).to_have_count(0)
    expect(page.locator("#quantize-notice .fm-notice")).to_have_count(0)
    expect(page.locator('#quantize-rows tr[data-scheme="int8"] [data-diagnose]')).to_be_visible()
    page.get_by_text("Files and weights").click()
    audit.look("two rows")
    page.locator('#quantize-rows tr[data-scheme="int8"] [data-diagnose]').click()
    panel = page.locator(".fm-diagnose")
    panel.get_by_label("Texts measured").select_option("10")
    panel.get_by_label("Parts tried in full precision").select_option("4")
    expect(panel.get_by_role("region", name="One part in full precision")).to_be_visible()
    expect(panel).to_have_attribute("aria-busy", "false")
    for summary in panel.locator("summary").all():
        summary.click()
    audit.look("the diagnosis", within="#diagnose")
    assert not audit.found, audit.report()


# How the element that has the focus is drawn, and how the one that had it before is drawn now.
_RINGS = """() => {
    const ring = (element) => {
        const style = getComputedStyle(element);
        return [style.outlineStyle, style.outlineWidth, style.outlineColor].join(" ");
    };
    const [here, before] = [document.activeElement, window.focused_before];
    window.focused_before = here;
    const box = here.getBoundingClientRect();
    return {
        name: here.outerHTML.slice(0, 120),
        page: here === document.body,
        drawn: box.width > 4 && box.height > 4 && getComputedStyle(here).opacity > 0.5,
        ring: ring(here),
        before: before && before !== here ? ring(before) : "",
    };
}"""
_ACCENT = {"light": "rgb(15, 118, 110)", "dark": "rgb(94, 234, 212)"}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("tab", ["Explore", "Evaluate", "Unmask", "Quantize", "Learn", "Guide"])
def test_whoever_moves_by_keyboard_sees_where_they_are(page, tab, theme):
    page.evaluate("dark => window.fillmask.set_theme(dark, false)", theme == "dark")
    # Whoever has many models has lists that scroll.
    page.add_style_tag(content=STILL + "[role=listbox] { max-height: 2rem !important; }")
    page.get_by_role("tab", name=tab).click()
    if tab == "Evaluate":
        page.get_by_label("Upload").check()
        page.get_by_role("button", name="More options").click()
        page.get_by_role("button", name="Stored runs").click()
        expect(page.get_by_role("button", name="Delete")).to_be_visible()
    if tab == "Explore":  # an answer that comes meanwhile replaces what has the focus
        expect(page.locator("#loss svg")).to_be_visible()
        expect(page.locator("#stage")).to_have_attribute("aria-busy", "false")
    if tab == "Unmask":
        expect(page.locator(".fm-unmasked")).to_have_count(2)
    page.locator("h1").evaluate("title => { title.tabIndex = -1; title.focus(); title.blur(); }")
    ring, seen = f"solid 2px {_ACCENT[theme]}", 0
    while True:
        page.keyboard.press("Tab")
        focus = page.evaluate(_RINGS)
        assert focus["before"] != ring, "a ring stays where the focus was"
        if focus["page"]:
            break
        assert focus["drawn"], focus
        assert focus["ring"] == ring, focus
        seen += 1
        assert seen < 300
    least = {"Explore": 40, "Evaluate": 30, "Unmask": 30, "Quantize": 15, "Learn": 25, "Guide": 7}
    assert seen >= least[tab]
