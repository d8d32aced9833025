"""The Evaluate tab from beginning to end: run, watched, cut off, resumed, shared, looked into."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from accessibility import accessible
from evaluate_page import TEXTS, upload
from journey import Evaluate, Explore
from playwright.sync_api import expect
from table_model import TableModel

from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.show.slice_tables import slice_tables
from fillmask_ui.texts import TextSource, open_texts

PSEUDO = EvaluationConfig("pseudo-perplexity")


@pytest.fixture
def hang(served):
    """The model `table` hangs after so many further calls, until it may go on."""

    def after(calls):
        served.table.free_calls = len(served.table.calls) + calls
        served.table.reached.clear()
        served.table.open.clear()

    yield after
    go_on(served)


def go_on(served):
    served.table.free_calls = 10**9
    served.table.open.set()


def perplexity():
    """Of the uploaded texts under the model `table`, by pseudo-perplexity."""
    summary = summarize(evaluate(TableModel(1), TEXTS, PSEUDO), config=PSEUDO)
    return f"{summary.model.perplexity:,.4f}"


# A chart is as wide as its place, or soon will be.
_FILLS = """async (chart) => {
  const place = chart.closest(".fm-chart");
  const share = () => chart.querySelector(".main-svg").clientWidth / place.clientWidth;
  while (!(share() > 0.9 && share() <= 1)) await new Promise(requestAnimationFrame);
}"""


def test_an_engineer_measures_the_embedded_texts(visit, served):
    bench = Evaluate(page := visit({"tab": "evaluate"}, height=800))
    bench.form().model("Candidate", "embedded · float16").model("Reference", "")
    page.get_by_label("Number of texts").fill("40")
    page.get_by_label("Group column").fill("kind")
    bench.measure()
    config = EvaluationConfig()
    with open_texts(TextSource(samples=40, group_column="kind")) as texts:
        rows = list(evaluate(served.store.get("embedded"), texts, config))
    expected = summarize(rows, config=config)
    assert bench.value.inner_text() == f"{expected.model.mean_nll_nats:.4f} nats"
    low, high = expected.model.interval.low, expected.model.interval.high
    expect(bench.figures).to_contain_text(f"95% interval {low:.4f} to {high:.4f} nats")
    expect(bench.figures).to_contain_text(f"{expected.model.tokens:,}")
    worst = expected.worst[0]
    expect(bench.worst).to_have_count(6)
    expect(bench.worst.first).to_contain_text(f"{worst.nll_nats:.2f}")
    # One chart stands with the story, and that of the groups with their tables, the worst first.
    expect(bench.charts).to_have_count(2)
    expect(page.locator("#plot-figure-by-group .js-plotly-plot")).to_be_visible()
    for table in slice_tables(expected, "kind"):
        shown = page.get_by_role("table", name=table.title).locator("tbody tr")
        expect(shown).to_have_count(len(table.rows))
        expect(shown.first.locator("td")).to_have_text(table.texts()[0])
    # The others are drawn when they are unfolded.
    bench.unfold("More charts")
    expect(bench.charts).to_have_count(9)
    expect(page.locator(".fm-chart-table:visible")).to_have_count(8)
    for chart in bench.charts.all():
        expect(chart.locator(".main-svg").first).to_be_visible()
        chart.evaluate(_FILLS)
    # Tokens chosen on the histogram stand below it; the last bar ends nowhere.
    scores = [row.scores for row in rows if hasattr(row, "scores")]
    for data, limits, high in (("3:6", "3 to 6", 6), ("3:", "3 to any", float("inf"))):
        click = f"chart => chart.emit('plotly_click', {{ points: [{{ customdata: '{data}' }}] }})"
        bench.main_chart.locator(".js-plotly-plot").evaluate(click)
        expect(bench.heading).to_contain_text(f"with a loss from {limits} nats")
        count = sum(
            int(((score.nll_nats >= 3) & (score.nll_nats < high)).sum()) for score in scores
        )
        expect(bench.heading).to_contain_text(f"of the {count} ")
    page.locator("#evaluate-worst").get_by_role("button", name="Any loss").click()
    expect(bench.heading).not_to_contain_text("with a loss")
    bench.unfold(f"All {expected.model.tokens:,} tokens")
    expect(bench.tokens.first).to_contain_text(worst.token)
    expect(bench.tokens.first).to_contain_text(f"{worst.nll_nats:.3f}")
    page.get_by_role("radio", name="left unchanged").check()
    expect(bench.caption).to_contain_text("largest loss, left unchanged")
    saw = page.locator("#worst-tokens tbody td:nth-child(5)")
    assert set(saw.all_inner_texts()) == {"left unchanged"}
    page.get_by_role("radio", name="all", exact=True).check()
    expect(bench.caption).not_to_contain_text("unchanged")
    accessible(page)
    # The worst token opens Explore as the run saw it: the same loss, under the same model.
    bench.tokens.first.get_by_role("button").first.click()
    expect(page.get_by_role("tab", name="Explore")).to_have_attribute("aria-selected", "true")
    expect(Explore(page).sentence).to_have_value(
        re.compile(re.escape(worst.text[: worst.start][-20:]) + r"\s?\[MASK\]")
    )
    expect(page.locator(".fm-read-line")).to_contain_text(f"{worst.nll_nats:.4f} nats")
    # Where every token was hidden alike there is nothing to choose.
    bench.tab("Evaluate")
    bench.form()
    page.get_by_role("radio", name="End of the text").check()
    bench.measure()
    expect(bench.figures).to_contain_text("End of the text")
    expect(page.get_by_role("radio", name="left unchanged")).to_be_hidden()


def axis(chart):
    return chart.locator(".js-plotly-plot").evaluate("chart => chart._fullLayout.yaxis.type")


def test_two_models_side_by_side_and_the_stored_runs(visit, served, tmp_path):
    bench = Evaluate(page := visit({"tab": "evaluate"}, color_scheme="dark"))
    bench.texts(upload(tmp_path), "noisy", "table").measure()
    expect(page.locator(".fm-conclusion")).to_contain_text(
        re.compile("candidate|difference|worse|better|needed", re.I)
    )
    # First come the two distributions on one axis, and the changes beside them.
    expect(bench.charts).to_have_count(2)
    chart, changes = bench.main_chart, page.locator("#plot-changes")
    names = chart.locator(".js-plotly-plot").evaluate("chart => chart.data.map(bars => bars.name)")
    assert [name.split(":")[0] for name in names] == ["reference", "candidate"]
    expect(changes.get_by_role("img", name="Histogram of the difference")).to_be_visible()
    left, right = chart.bounding_box(), changes.bounding_box()
    assert left["x"] + left["width"] <= right["x"]
    assert abs(left["y"] - right["y"]) < 60
    for name in ("More charts", "All figures", "All [0-9,]+ tokens", "Slices"):
        bench.unfold(name)
    expect(page.locator("#plot-scatter .js-plotly-plot")).to_be_visible()
    # Without groups, the changes by length of the text.
    expect(page.locator("#plot-change-by-group .js-plotly-plot")).to_be_visible()
    expect(page.locator("#plot-figure-by-group")).to_be_hidden()
    expect(bench.caption).to_contain_text("largest difference")
    bench.tokens.first.locator("td.fm-number").first.click()
    expect(bench.side.locator("table")).to_have_count(2)
    # So does the row's button, by keyboard.
    second = bench.tokens.nth(1)
    second.get_by_role("button").nth(1).press("Enter")
    loss = float(second.locator("td.fm-number").first.get_attribute("data-value"))
    expect(bench.side).to_contain_text(f"{loss:.4f} nats")
    # Tokens are chosen by drawing over the histogram, or by a click on a bar.
    mouse = page.mouse
    chart.scroll_into_view_if_needed()
    box = chart.locator(".nsewdrag").first.bounding_box()
    height = box["y"] + box["height"] / 2
    mouse.move(box["x"] + 0.2 * box["width"], height)
    mouse.down()
    mouse.move(box["x"] + 0.3 * box["width"], height, steps=4)
    mouse.move(box["x"] + 0.4 * box["width"], height, steps=4)
    mouse.up()
    expect(bench.caption).to_contain_text("with a loss from")
    numbers = re.search(r"from ([\d.]+) to ([\d.]+)", bench.caption.inner_text())
    low, high = map(float, numbers.groups())
    losses = page.eval_on_selector_all(
        "#worst-tokens tbody tr td:nth-child(3)", "cells => cells.map(c => +c.dataset.value)"
    )
    assert losses
    assert all(low <= loss < high for loss in losses)
    page.locator("#any-loss").click()
    expect(bench.caption).not_to_contain_text("with a loss from")
    chart.scroll_into_view_if_needed()
    box = chart.locator(".nsewdrag").first.bounding_box()
    bar = chart.locator(".barlayer .point path").nth(4).bounding_box()
    mouse.move(bar["x"] + bar["width"] / 2, box["y"] + 0.9 * box["height"])
    expect(chart.locator(".hovertext")).to_be_visible()
    mouse.click(bar["x"] + bar["width"] / 2, box["y"] + 0.9 * box["height"])
    expect(bench.caption).to_contain_text("with a loss from")
    expect(chart.get_by_role("img", name="Histogram of the loss")).to_be_visible()
    mouse.move(5, 5)
    accessible(page)

    # One model: the axis of the counts is switched, and stays so for what is drawn next.
    bench.form().model("Candidate", "table").model("Reference", "").measure()
    chart = bench.main_chart
    assert axis(chart) == "linear"
    chart.get_by_text("log", exact=True).click()
    expect(chart).to_contain_text("tokens (log scale)")
    bench.form()
    page.get_by_label("Number of texts").fill("30")
    bench.measure()
    expect(chart).to_contain_text("tokens (log scale)")
    assert axis(chart) == "log"
    chart.get_by_text("linear", exact=True).click()
    expect(chart).not_to_contain_text("log scale")

    # Runs outlive the page, set its controls, and are files.
    bench.form()
    page.get_by_role("radio", name="End of the text").check()
    page.get_by_label("Seed").fill("7")
    page.get_by_label("tokens at the end").fill("3")
    bench.measure()
    value, signature = bench.value.inner_text(), page.locator(".fm-signature").text_content()
    context = page.context
    page.close()
    bench = Evaluate(page := context.new_page())
    page.goto(f"{served.url}?tab=evaluate")
    bench.ready().unfold("Stored runs")
    bench.show(bench.runs.first)
    bench.finished()
    bench.form()
    expect(page.get_by_role("radio", name="End of the text")).to_be_checked()
    expect(page.get_by_label("Number of texts")).to_have_value("30")
    expect(page.locator("#evaluate")).to_contain_text(re.compile(r"texts\s*\.txt"))
    count = bench.runs.count()
    bench.measure()
    expect(bench.runs).to_have_count(count + 1)
    bench.unfold("All figures")
    assert bench.value.inner_text() == value
    assert page.locator(".fm-signature").text_content() == signature
    files = {}
    for name in ("CSV", "JSON"):
        with page.expect_download() as download:
            page.locator(f"#run-{name.lower()}").click()
        files[name] = Path(download.value.path()).read_text("utf-8")
    losses = [float(row["nll_nats"]) for row in csv.DictReader(io.StringIO(files["CSV"]))]
    assert value == f"{sum(losses) / len(losses):.4f} nats"
    assert json.loads(files["JSON"])["summary"]["tokens"] == len(losses)
    with page.expect_download() as download:
        bench.press("Report")
    assert value.split()[0] in Path(download.value.path()).read_text("utf-8")
    # A bad choice is said in view, and what was shown stays; a link opens it anew.
    bench.form()
    page.get_by_label("Number of texts").fill("-1")
    bench.run()
    expect(bench.notice.get_by_role("alert")).to_contain_text("it was -1")
    bench.in_view("#evaluate-notice")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    bench.press("Copy link")
    expect(page.locator("#run-copied")).to_contain_text("Link copied")
    page.goto(page.evaluate("navigator.clipboard.readText()"))
    bench.ready().finished().unfold("Stored runs")
    assert bench.value.inner_text() == value
    # A run has a name and an address of its own.
    page.evaluate("window.prompt = () => 'The last of them'")
    bench.runs.first.get_by_role("button", name="Rename").click()
    expect(bench.runs.first).to_contain_text("The last of them")
    page.goto(bench.runs.first.get_by_role("link", name="Link").evaluate("link => link.href"))
    assert [*bench.address()] == ["run"]
    bench.ready().finished().unfold("Stored runs")
    assert bench.value.inner_text() == value
    # Runs over the same texts stand on one chart, the first chosen as the reference.
    same = bench.runs.filter(has_text="suffix")
    for number in (1, 0):
        same.nth(number).get_by_role("checkbox").check()
    expect(page.locator("#runs-chosen")).to_contain_text("2 chosen; the reference is 20")
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(bench.beside).to_be_visible()
    expect(page.locator(".fm-conclusion")).to_contain_text("the reference is the candidate itself")
    rows = page.locator("#box-beside .fm-chart-table tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.last).to_contain_text("The last of them")
    accessible(page)
    page.evaluate("window.confirm = () => true")
    bench.runs.first.get_by_role("button", name="Delete").click()
    expect(bench.notice).to_contain_text("was deleted")
    expect(bench.runs).to_have_count(count)
    accessible(page)


# Whether the start card was ever seen since the page was loaded.
WATCH_START = """(function look() {
    const card = document.querySelector("#evaluate-hero");
    window.start_card_seen ||= Boolean(card?.checkVisibility());
    requestAnimationFrame(look);
})();"""


def test_a_run_is_reloaded_left_alone_cancelled_and_resumed(visit, served, hang, tmp_path):
    bench = Evaluate(page := visit({"tab": "evaluate"}, width=390, height=844))
    bench.texts(upload(tmp_path), "table")
    page.get_by_role("radio", name="Pseudo-perplexity").check()
    progress = re.compile(rf"[1-9]\d* of {len(TEXTS)} texts")
    hang(6)
    bench.run()
    assert served.table.reached.wait(300)
    expect(bench.notice).to_contain_text(progress)
    page.add_init_script(WATCH_START)
    page.reload()
    bench.ready()
    expect(bench.notice).to_contain_text(progress)
    assert page.evaluate("!window.start_card_seen")
    expect(page.locator("#evaluate-run")).to_be_disabled()
    # The controls say what is measured.
    expect(page.locator("#evaluate-metric :checked")).to_have_value("pseudo-perplexity")
    expect(page.locator("#evaluate-model input")).to_have_value("table")
    # A second page of the browser measures something else meanwhile.
    second_bench = Evaluate(page.context.new_page())
    second_bench.page.goto(f"{served.url}?tab=evaluate")
    second_bench.ready()
    expect(second_bench.run_button).to_be_enabled()
    second_bench.form().model("Candidate", "noisy").model("Reference", "")
    second_bench.page.get_by_label("Number of texts").fill("20")
    second_bench.measure().page.close()
    go_on(served)
    bench.finished()
    assert bench.value.inner_text() == perplexity()
    # The answer is in view, and nothing sticks out of the narrow screen.
    bench.in_view("#evaluate-figures")
    for token in bench.worst.all():
        assert token.evaluate("token => token.scrollWidth <= token.clientWidth")

    # It is cancelled while its model hangs: what is said is what is stored.
    hang(6)
    bench.press("Run again")
    assert served.table.reached.wait(300)
    expect(bench.notice).to_contain_text(progress)
    bench.press("Cancel")
    expect(bench.notice).to_contain_text("Stopped after")
    bench.finished()
    texts = int(re.search(r"after (\d+) of", bench.notice.inner_text())[1])
    assert 0 < texts < len(TEXTS)
    expect(bench.figures).to_contain_text(f"hidden tokens of {texts} text")
    for name in ("More charts", "All figures", "All [0-9,]+ tokens", "Stored runs"):
        bench.unfold(name)
    cells = bench.runs.first.locator("td")
    expect(cells.nth(6)).to_have_text(str(texts))
    expect(cells.nth(10)).to_have_text("stopped")
    bench.fits(390)
    accessible(page)
    go_on(served)
    bench.show(bench.runs.first)
    expect(bench.notice).to_contain_text("was stopped")
    expect(bench.figures).to_contain_text(f"hidden tokens of {texts} text")
    bench.press("Resume")
    expect(bench.figures).to_contain_text(f"hidden tokens of {len(TEXTS)} texts")
    bench.finished()
    assert bench.value.inner_text() == perplexity()


def test_an_empty_page_measures_one_model_or_two_by_a_click(visit, served):
    bench = Evaluate(page := visit({"tab": "evaluate"}, width=390, height=844))
    card = page.locator("#evaluate-hero")
    expect(card.get_by_role("button")).to_have_count(2)
    expect(card.get_by_role("button", name="int8 against full precision")).to_be_visible()
    accessible(page)
    card.get_by_role("button", name="Measure this model").click()
    bench.finished()
    expect(card).to_be_hidden()
    expect(bench.figures).to_contain_text("embedded:int8")
    expect(bench.figures).to_contain_text("98 texts, 2 skipped: no token was chosen")
    expect(bench.charts).to_have_count(1)
    expect(bench.main_chart.get_by_role("img", name="Histogram of the loss")).to_be_visible()
    assert bench.main_chart.bounding_box()["y"] < bench.worst.first.bounding_box()["y"]
    bench.form()
    expect(page.get_by_role("combobox", name="Reference").locator("visible=true")).to_have_value(
        "none"
    )
