"""The Evaluate tab in a real browser: a pytest plugin with a page of its own and its visitors."""

import re

import pytest
from chromium import faults_of
from evaluate_page import HeldModel, upload
from playwright.sync_api import expect
from serving import serving
from table_model import TableModel

from fillmask_ui.models import ModelStore, load_choice


class Bench:
    """The Evaluate tab through the eyes of who sits before it."""

    def __init__(self, page, url):
        self.page, self.url = page, url
        self.notice = page.locator("#evaluate-notice")
        self.figures = page.locator("#evaluate-figures")
        self.value = page.locator(".fm-card-value")
        self.worst = page.locator("#evaluate-worst li")
        self.tokens = page.locator("#worst-tokens tbody tr")
        self.runs = page.locator("#run-list tbody tr")

    def open(self):
        self.page.goto(f"{self.url}?tab=evaluate")
        expect(self.page.get_by_role("button", name="Run", exact=True)).to_be_visible()
        return self

    def model(self, label, reference):
        box = self.page.get_by_role("combobox", name=label)
        box.fill(reference)
        box.press("Enter")
        expect(box).to_have_value(re.compile(reference))

    def run(self):
        self.page.get_by_role("button", name="Run", exact=True).click()

    def cancel(self):
        self.page.get_by_role("button", name="Cancel").click()

    def finished(self):
        expect(self.figures.locator("[data-link]")).to_be_visible()
        expect(self.worst.first).to_be_visible()
        expect(self.page.get_by_role("button", name="Run", exact=True)).to_be_enabled()

    def unfold(self, name):
        self.page.get_by_role("button", name=re.compile(f"^{name} [▼◀]")).click()

    def list_runs(self):
        self.unfold("Stored runs")
        expect(self.page.locator("#run-list")).to_be_visible()


@pytest.fixture(scope="module")
def held():
    return HeldModel(1)


@pytest.fixture(scope="module")
def address(tmp_path_factory, held):
    """A page of its own, with runs in a folder of its own."""
    from fillmask_ui.ui.page import build_app

    known = {"table": held, "noisy": TableModel(1, noise=0.3)}

    def load(choice, **options):
        return known.get(choice.reference) or load_choice(choice, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FILLMASK_UI_RUNS", str(tmp_path_factory.mktemp("runs")))
        demo = build_app(ModelStore(loader=load))
    with serving(demo) as url:
        yield url


@pytest.fixture
def bench(browser, address):
    """A new visitor. No script error comes up."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    expect.set_options(timeout=30_000)
    faults = faults_of(page)
    yield Bench(page, address).open()
    context.close()
    assert faults == []


def of_texts(bench, tmp_path, **models):
    """Choose an upload of `TEXTS`, in their order, and models."""
    page = bench.page
    page.get_by_label("Upload").check()
    page.locator("#evaluate input[type=file]").set_input_files(upload(tmp_path))
    expect(page.locator("#evaluate")).to_contain_text(re.compile(r"texts\s*\.txt"))
    page.get_by_label("Number of texts").fill("0")
    page.get_by_role("button", name="More options").click()
    page.get_by_label("Draw the texts at random").uncheck()
    for label, reference in models.items():
        bench.model({"a": "Model A", "b": "Model B"}[label], reference)
