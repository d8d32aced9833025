"""No part of the page breaks a rule of axe-core, best practices included, and focus is visible.

Each state is looked at on a light screen 1280 pixels wide and on a dark one of 390.
"""

import pytest
from accessibility import STILL, Known, prepare, violations
from evaluate_page import free_port, upload
from playwright.sync_api import expect
from table_model import TableModel

from fillmask_ui.models import ModelStore, load_choice

# Reviewed: made by Gradio, and out of reach of templates and styles.
KNOWN = (
    Known("image-redundant-alt", "footer", "Gradio names the icon as the button that it is in"),
)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A page of its own, with a small model beside the embedded one and runs of its own."""
    from fillmask_ui.ui.app import build_app, launch_options

    known = {"table": TableModel(1), "noisy": TableModel(1, noise=0.3)}

    def load(choice, **options):
        return known.get(choice.reference) or load_choice(choice, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FILLMASK_UI_RUNS", str(tmp_path_factory.mktemp("runs")))
        demo = build_app(ModelStore(loader=load))
    port = free_port()
    demo.launch(
        server_name="127.0.0.1",
        server_port=port,
        prevent_thread_lock=True,
        quiet=True,
        **launch_options(),
    )
    yield f"http://127.0.0.1:{port}/"
    demo.close(verbose=False)


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


def test_evaluate_in_all_its_states(page, tmp_path):
    audit = Audit(page)
    page.get_by_role("tab", name="Evaluate").click()
    run = page.get_by_role("button", name="Run", exact=True)
    expect(run).to_be_visible()
    audit.look("before a run")
    page.get_by_label("Upload").check()
    page.locator("#evaluate input[type=file]").set_input_files(upload(tmp_path))
    page.get_by_label("Number of texts").fill("0")
    page.get_by_role("button", name="More options").click()
    audit.look("more options", within="#evaluate .fm-input")
    choose(page, "Model A", "table")
    finished(page, run)
    audit.look("a run")
    choose(page, "Model B", "noisy")
    finished(page, run)
    expect(page.locator(".fm-verdict")).to_be_visible()
    audit.look("two models")
    page.locator("#worst-tokens tbody tr").first.locator("td.fm-number").first.click()
    expect(page.locator(".fm-sides").first).to_be_visible()
    audit.look("one token", within="#evaluate-tokens")
    page.get_by_role("button", name="Stored runs").click()
    expect(page.locator("#run-list tbody tr")).to_have_count(2)
    audit.look("stored runs", within="#runs")
    assert not audit.found, audit.report()


def choose(page, label, reference):
    box = page.get_by_role("combobox", name=label)
    box.fill(reference)
    box.press("Enter")
    expect(box).to_have_value(reference)


def finished(page, run):
    run.click()
    figures = page.locator("#evaluate-figures")
    expect(figures).to_contain_text("Signature")
    expect(page.locator("#worst-tokens tbody tr").first).to_be_visible()
    expect(run).to_be_enabled()


def test_the_guide(page):
    audit = Audit(page)
    page.get_by_role("tab", name="Guide").click()
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    audit.look("the Guide")
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
@pytest.mark.parametrize("tab", ["Explore", "Evaluate", "Guide"])
def test_whoever_moves_by_keyboard_sees_where_they_are(page, tab, theme):
    page.evaluate("dark => window.fillmask.set_theme(dark, false)", theme == "dark")
    page.add_style_tag(content=STILL)
    page.get_by_role("tab", name=tab).click()
    if tab == "Evaluate":
        page.get_by_label("Upload").check()
        page.get_by_role("button", name="More options").click()
        page.get_by_role("button", name="Stored runs").click()
        expect(page.get_by_role("button", name="Delete")).to_be_visible()
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
    assert seen >= {"Explore": 40, "Evaluate": 30, "Guide": 7}[tab]
