"""The Evaluate tab in a real browser: reloaded, opened twice, a stored run opened."""

import re

import pytest
from evaluate_bench import Bench, of_texts
from evaluate_page import TEXTS
from playwright.sync_api import expect
from table_model import TableModel

from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize


@pytest.fixture
def hang(held):
    """The model `table` hangs after so many further calls, until the test has ended."""

    def after(calls):
        held.free_calls = len(held.calls) + calls
        held.reached.clear()
        held.open.clear()

    yield after
    held.free_calls = 10**9
    held.open.set()


def go_on(held):
    held.free_calls = 10**9
    held.open.set()


def begin(bench, held, hang, tmp_path):
    """A run that hangs on its way."""
    of_texts(bench, tmp_path, a="table")
    bench.page.get_by_role("radio", name="Pseudo-perplexity").check()
    hang(6)
    bench.run()
    assert held.reached.wait(60)
    expect(bench.notice).to_contain_text(re.compile(rf"[1-9]\d* of {len(TEXTS)} texts"))


def test_a_reloaded_page_goes_on_with_its_run(bench, held, hang, tmp_path):
    begin(bench, held, hang, tmp_path)
    bench.page.reload()
    expect(bench.notice).to_contain_text(re.compile(rf"[1-9]\d* of {len(TEXTS)} texts"))
    expect(bench.page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    # The controls say what is measured.
    expect(bench.page.get_by_role("radio", name="Pseudo-perplexity")).to_be_checked()
    expect(bench.page.get_by_role("combobox", name="Model A")).to_have_value("table")
    expect(bench.page.locator("#evaluate")).to_contain_text(re.compile(r"texts\s*\.txt"))
    go_on(held)
    bench.finished()
    config = EvaluationConfig("pseudo-perplexity")
    expected = summarize(evaluate(TableModel(1), TEXTS, config), config=config)
    assert bench.value.inner_text() == f"{expected.model.perplexity:,.4f}"


def test_a_reloaded_page_can_stop_its_run_and_all_that_it_shows_agrees(bench, held, hang, tmp_path):
    begin(bench, held, hang, tmp_path)
    bench.page.reload()
    expect(bench.notice).to_contain_text(re.compile(rf"[1-9]\d* of {len(TEXTS)} texts"))
    bench.cancel()
    # The model still hangs: what is said is what is stored.
    expect(bench.notice).to_contain_text("Stopped after")
    bench.finished()
    texts = int(re.search(r"after (\d+) of", bench.notice.inner_text())[1])
    tokens = int(re.search(r"(\d+) tokens? of", bench.figures.inner_text())[1])
    expect(bench.figures).to_contain_text(f"{tokens} tokens of {texts} texts")
    bench.unfold("All tokens")
    caption = bench.page.locator("#worst-tokens caption")
    expect(caption).to_contain_text(f"of {tokens}." if tokens > 100 else "Tokens with")
    bench.list_runs()
    cells = bench.runs.first.locator("td")
    expect(cells.nth(4)).to_have_text(str(texts))
    expect(cells.last).to_have_text("stopped")
    # Another look at it says the same.
    go_on(held)
    bench.runs.first.get_by_role("button").click()
    expect(bench.notice).to_contain_text("was stopped")
    expect(bench.figures).to_contain_text(f"{tokens} tokens of {texts} texts")


def test_a_second_page_of_the_browser_leaves_the_run_alone(bench, held, hang, tmp_path):
    begin(bench, held, hang, tmp_path)
    other = Bench(bench.page.context.new_page(), bench.url).open()
    expect(other.page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
    other.model("Model A", "noisy")
    other.page.get_by_label("Number of texts").fill("20")
    go_on(held)
    bench.finished()
    other.run()
    other.finished()
    expect(bench.figures).to_contain_text(f"tokens of {len(TEXTS)} texts")


def test_an_opened_run_sets_the_controls_and_run_repeats_it(bench, tmp_path):
    of_texts(bench, tmp_path, a="noisy")
    page = bench.page
    page.get_by_role("radio", name="End of the text").check()
    page.get_by_label("Number of texts").fill("30")
    page.get_by_label("Seed").fill("7")
    page.get_by_label("tokens at the end").fill("3")
    bench.run()
    bench.finished()
    value = bench.value.inner_text()
    bench.unfold("All figures")
    signature = page.locator(".fm-signature").text_content()
    page.reload()
    bench.list_runs()
    bench.runs.first.get_by_role("button").click()
    expect(bench.notice).to_contain_text("Run repeats it")
    bench.unfold("All figures")
    expect(page.get_by_role("radio", name="End of the text")).to_be_checked()
    expect(page.get_by_label("Number of texts")).to_have_value("30")
    expect(page.locator("#evaluate")).to_contain_text(re.compile(r"texts\s*\.txt"))
    count = bench.runs.count()
    bench.run()
    expect(bench.runs).to_have_count(count + 1)
    bench.finished()
    assert bench.value.inner_text() == value
    assert page.locator(".fm-signature").text_content() == signature


def test_tokens_are_chosen_by_what_the_model_saw(bench):
    bench.model("Model A", "embedded")
    bench.page.get_by_label("Number of texts").fill("20")
    bench.run()
    bench.finished()
    bench.unfold("All tokens")
    bench.page.get_by_role("radio", name="left unchanged").check()
    caption = bench.page.locator("#worst-tokens caption")
    expect(caption).to_contain_text("largest loss, left unchanged")
    saw = bench.page.locator("#worst-tokens tbody td:nth-child(5)")
    assert set(saw.all_inner_texts()) == {"left unchanged"}
    bench.page.get_by_role("radio", name="all", exact=True).check()
    expect(caption).not_to_contain_text("unchanged")
    # Where every token was hidden alike there is nothing to choose.
    bench.page.get_by_role("radio", name="End of the text").check()
    bench.run()
    expect(bench.figures).to_contain_text("end hidden")
    expect(bench.page.locator("#token-saw")).to_be_hidden()
