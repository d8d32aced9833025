"""The story of an evaluation in a real browser: short, in view, pasted, linked, reported."""

import re
from pathlib import Path

import pytest
from chromium import faults_of
from playwright.sync_api import expect
from serving import serving

from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.models import ModelStore, load_model
from fillmask_ui.texts import TextSource, open_texts

TEXTS = "The river freezes early this year.\nShe read the letter twice.\nNobody saw the cat."


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A page of its own, with runs in a folder of its own."""
    from fillmask_ui.ui.page import build_app

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FILLMASK_UI_RUNS", str(tmp_path_factory.mktemp("runs")))
        demo = build_app(ModelStore())
    with serving(demo) as url:
        yield url


@pytest.fixture
def page(browser, address):
    """The Evaluate tab of a new visitor, on a phone; copies may be read. No script error."""
    context = browser.new_context(viewport={"width": 390, "height": 844})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened = context.new_page()
    expect.set_options(timeout=60_000)
    faults = faults_of(opened)
    opened.goto(f"{address}?tab=evaluate")
    yield opened
    context.close()
    assert faults == []


def run(page):
    page.get_by_role("button", name="Run", exact=True).click()


def shown(page):
    expect(page.locator("#evaluate-figures [data-link]")).to_be_visible()
    expect(page.locator("#evaluate-worst li").first).to_be_visible()
    expect(page.locator("#plot-main .main-svg").first).to_be_visible()


def in_view(page, selector):
    """Waits for the beginning of something to be where a reader looks."""
    page.wait_for_function(
        "(selector) => { const box = document.querySelector(selector).getBoundingClientRect();"
        " return box.width && box.top >= 0 && box.top < 0.8 * window.innerHeight; }",
        arg=selector,
    )


def test_pasted_texts_are_measured_linked_and_reported(page, address):
    page.get_by_label("Paste").check()
    page.get_by_label("Texts to paste").fill(TEXTS)
    page.get_by_label("Pseudo-perplexity").check()
    run(page)
    shown(page)
    in_view(page, "#evaluate-figures")
    config = EvaluationConfig("pseudo-perplexity")
    expected = summarize(evaluate(load_model("embedded"), TEXTS.split("\n"), config), config=config)
    told = page.locator("#evaluate-figures").inner_text()
    assert f"On 3 texts, embedded · float16 gave the {expected.model.tokens} hidden" in told
    assert f"a loss of {expected.model.mean_nll_nats:.2f} nats" in told
    # Without the box to paste, the controls are 700 pixels high: less than 2,500 in all.
    controls = page.locator("#evaluate .fm-input").bounding_box()["height"]
    assert page.evaluate("document.documentElement.scrollHeight") - controls < 1800
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    # A click below a sentence says more of it, as a row of the table does.
    page.locator("#evaluate-worst li .fm-pick").first.click()
    expect(page.locator("#worst-side .fm-sides")).to_contain_text("Loss in the run")
    with page.expect_download() as download:
        page.get_by_role("button", name="Report").click()
    report = Path(download.value.path()).read_text("utf-8")
    assert f"{expected.model.perplexity:,.4f}" in report
    assert "pasted.txt" in report
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#run-copied")).to_contain_text("Link copied")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(f"{address}?tab=evaluate&run=")
    page.goto(link)
    shown(page)
    assert page.locator("#evaluate-figures").inner_text() == told
    # A bad choice is said in view, and what was shown stays.
    page.get_by_label("Number of texts").fill("-1")
    run(page)
    expect(page.locator("#evaluate-notice").get_by_role("alert")).to_contain_text("it was -1")
    in_view(page, "#evaluate-notice")
    assert page.locator("#evaluate-figures").inner_text() == told


def test_an_address_of_a_run_that_is_gone_says_so(page, address):
    page.goto(f"{address}?tab=evaluate&run=nowhere")
    expect(page.locator("#evaluate-notice").get_by_role("alert")).to_contain_text("nowhere")


def test_tokens_chosen_on_the_histogram_stand_below_it(page):
    page.set_viewport_size({"width": 1280, "height": 800})
    # Run is in view however many options are open.
    page.get_by_role("button", name="More options").click()
    box = page.get_by_role("button", name="Run", exact=True).bounding_box()
    assert box["y"] + box["height"] <= 800
    page.get_by_label("Number of texts").fill("20")
    run(page)
    shown(page)
    click = "chart => chart.emit('plotly_click', { points: [{ customdata: '3:6' }] })"
    page.locator("#plot-main .js-plotly-plot").evaluate(click)
    heading = page.locator("#evaluate-worst h2")
    expect(heading).to_contain_text("with a loss from 3 to 6 nats")
    in_view(page, "#evaluate-worst")
    with open_texts(TextSource(samples=20)) as texts:
        rows = [row for row in evaluate(load_model("embedded"), texts) if hasattr(row, "scores")]
    count = sum(int(((r.scores.nll_nats >= 3) & (r.scores.nll_nats < 6)).sum()) for r in rows)
    expect(heading).to_contain_text(f"of the {count} ")
    page.locator("#evaluate-worst").get_by_role("button", name="Any loss").click()
    expect(heading).not_to_contain_text("with a loss")
    page.get_by_role("button", name=re.compile("All tokens \\(")).click()
    in_view(page, "#evaluate-tokens")
    expect(page.locator("#worst-tokens tbody tr").first).to_be_visible()
    # A stored run that is shown from the end of the page brings its story into view.
    page.get_by_role("button", name=re.compile("^Stored runs")).click()
    page.locator("#run-list tbody button").first.click()
    in_view(page, "#evaluate-figures")
