"""A token of a run in a real browser: opened from the table, looked around in, left again."""

import re

import pytest
from accessibility import STILL
from axe_playwright_python.sync_playwright import Axe
from chromium import faults_of
from playwright.sync_api import expect
from serving import serving
from stored_runs import record
from table_model import TableModel

from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.masking import MaskRecipe
from fillmask_ui.models import ModelStore
from fillmask_ui.runs import RunStore

TEXTS = ["the cat sat on the old mat and the red dog ran to a river."]
MIXED = EvaluationConfig(recipe=MaskRecipe(0.7, 0.4, 0.3, 0.3), seed=3)
CHOICES = {"model": {"reference": "table"}, "baseline": {"reference": "noisy"}}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A run of two models whose text has masks, planted words and unchanged tokens."""
    store = RunStore(tmp_path_factory.mktemp("runs"))
    noisy = TableModel(1, noise=0.3)
    run = record(store, TableModel(1), TEXTS, MIXED, baseline=noisy, choices=CHOICES)
    return store.root, run


@pytest.fixture(scope="module")
def address(stored):
    from fillmask_ui.ui.page import build_app

    known = {"table": TableModel(1), "noisy": TableModel(1, noise=0.3)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FILLMASK_UI_RUNS", str(stored[0]))
        demo = build_app(ModelStore(loader=lambda choice, **_: known[choice.reference]), "table")
    with serving(demo) as url:
        yield url


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    expect.set_options(timeout=30_000)
    faults = faults_of(page)
    yield page
    context.close()
    assert faults == []


class Opened:
    """The Explore tab with a token of a run."""

    def __init__(self, page, address, stored):
        self.page, self.address = page, address
        self.run, self.row = stored[1], stored[1].row(0)
        self.strip = page.get_by_role("toolbar", name="The sentence as the model read it")
        self.line = page.locator(".fm-read-line")
        self.chosen = self.strip.locator('[aria-pressed="true"]')
        self.sentence = page.locator("#sentence textarea")

    def open(self, entry):
        link = f"?tab=explore&run={self.run.info.name}&example=0&token={self.row.cols[entry]}"
        self.page.goto(self.address + link)
        self.shows(entry)
        return self

    def shows(self, entry, scores=None):
        loss = (scores or self.row.scores).nll_nats[entry]
        expect(self.chosen).to_have_attribute("data-token", str(self.row.cols[entry]))
        expect(self.line).to_contain_text(f"loss {loss:.4f} nats")

    def press(self, name):
        self.page.get_by_role("button", name=name).click()


@pytest.fixture
def opened(page, address, stored):
    return Opened(page, address, stored)


def of_kind(row, kind):
    return row.kinds.tolist().index(kind)


def test_a_token_of_the_table_opens_as_the_run_saw_it(opened):
    page, row = opened.page, opened.row
    page.goto(f"{opened.address}?tab=evaluate")
    page.get_by_role("button", name="Stored runs").click()
    page.locator("#run-list tbody tr").first.click()
    page.get_by_role("button", name=re.compile(r"^All tokens \(")).click()
    tokens = page.locator("#worst-tokens tbody tr")
    shown = page.locator(".fm-sides")
    tokens.first.locator("td.fm-number").first.click()
    # Beside each other, both models read the very sentence of the run.
    expect(shown.locator("table")).to_have_count(2)
    expect(shown.locator(".fm-reading")).to_have_count(1)
    expect(shown.locator(".fm-read-mask")).to_have_count(int((row.kinds == 0).sum()))
    loss = float(tokens.first.locator("td.fm-number").first.get_attribute("data-value"))
    expect(shown).to_contain_text(f"Loss in the run: {loss:.4f} nats")
    tokens.first.get_by_role("button").first.click()
    expect(page.get_by_role("tab", name="Explore")).to_have_attribute("aria-selected", "true")
    entry = row.scores.nll_nats.tolist().index(loss)
    opened.shows(entry)
    expect(opened.sentence).to_have_value(re.compile(r"^[^\[]*\[MASK\][^\[]*$"))
    expect(page).to_have_url(re.compile(rf"run={opened.run.info.name}&.*example=0&token="))
    # Both models of the run are picked, and their candidates stand in one list.
    expect(page).to_have_url(re.compile("compare=noisy"))
    page.locator("#versus summary").click()
    both = page.locator("#versus table tbody tr").filter(has_text=row.tokens[entry])
    for nll in (loss, float(row.baseline.nll_nats[entry])):
        expect(both.locator(f'[data-value="{nll}"]').first).to_be_visible()
    # What is asked of the sentence in the box is not asked of what the run saw.
    mattered = page.get_by_role("button", name="Which words mattered?")
    expect(mattered).to_be_hidden()
    page.get_by_role("button", name="Only this one hidden").click()
    expect(mattered).to_be_visible()


def test_every_hidden_token_can_be_looked_at_by_mouse_and_keyboard(opened):
    row = opened.row
    planted, unchanged = of_kind(row, 1), of_kind(row, 2)
    opened.open(planted)
    expect(opened.page.locator("#replay")).to_contain_text("planted; the true word is")
    expect(opened.strip.get_by_role("button")).to_have_count(len(row.cols))
    button = opened.strip.locator(f'[data-token="{row.cols[unchanged]}"]')
    # What it was is told before it is chosen, and to screen readers in its name.
    button.hover()
    expect(opened.line).to_contain_text("left as it is")
    opened.page.mouse.move(5, 5)
    opened.shows(planted)
    expect(button).to_have_accessible_name(re.compile(f"loss {row.scores.nll_nats[unchanged]:.4f}"))
    button.click()
    opened.shows(unchanged)
    expect(button).to_be_focused()
    opened.page.mouse.move(5, 5)  # else the line is about what is under the pointer
    button.press("Home")
    expect(opened.line).to_contain_text(f"loss {row.scores.nll_nats[0]:.4f}")
    opened.page.keyboard.press("Enter")
    opened.shows(0)
    opened.sentence.focus()  # nor what has the focus
    # Each step can be taken back, and a reload shows the same.
    opened.page.go_back()
    opened.shows(unchanged)
    opened.page.reload()
    opened.shows(unchanged)
    opened.press("B: table-1-0.3")
    opened.shows(unchanged, row.baseline)
    expect(opened.page.get_by_role("combobox", name="Model").first).to_have_value("noisy")


def test_only_this_one_hidden_and_back(opened):
    opened.open(of_kind(opened.row, 1))
    before = opened.page.locator("#bars").inner_text()
    opened.press("Only this one hidden")
    expect(opened.page.locator("#strip .fm-mask")).to_have_count(1)
    loss = opened.row.scores.nll_nats[of_kind(opened.row, 1)]
    expect(opened.page.locator("#replay")).to_contain_text(f"in the run it was {loss:.4f} nats")
    assert opened.page.locator("#bars").inner_text() != before
    opened.page.reload()
    expect(opened.page.locator("#strip .fm-mask")).to_have_count(1)
    opened.press("As the run saw it")
    opened.shows(of_kind(opened.row, 1))
    assert opened.page.locator("#bars").inner_text() == before


def test_typing_or_writing_a_candidate_leaves_the_run(opened):
    opened.open(0)
    opened.page.locator("#bars button.fm-bar").nth(1).click()
    expect(opened.page.locator("#replay")).to_be_empty()
    expect(opened.sentence).not_to_have_value(re.compile("MASK"))
    opened.page.go_back()
    opened.shows(0)
    opened.sentence.fill("the old dog [MASK] on the mat")
    expect(opened.page.locator("#replay")).to_be_empty()
    expect(opened.page).not_to_have_url(re.compile("run="))


def test_a_run_that_is_gone_is_said_and_the_page_stays_usable(opened):
    opened.page.goto(f"{opened.address}?run=gone&example=0&token=1&text=the+%5BMASK%5D+sat")
    expect(opened.page.get_by_role("alert")).to_contain_text("Unknown run 'gone'")
    expect(opened.page.locator("#bars [data-bar]").first).to_be_visible()
    expect(opened.sentence).to_have_value("the [MASK] sat")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_screen_readers_and_contrast(opened, theme):
    opened.open(of_kind(opened.row, 1))
    dark = "document.body.classList.contains('dark')"
    opened.page.evaluate(f"window.fillmask.set_theme({str(theme == 'dark').lower()}, false)")
    assert opened.page.evaluate(dark) == (theme == "dark")
    opened.page.add_style_tag(content=STILL)
    found = Axe().run(opened.page, context="#stage").response["violations"]
    assert [(v["id"], [n["html"][:120] for n in v["nodes"]]) for v in found] == []
