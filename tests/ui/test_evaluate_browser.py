"""The Evaluate tab in a real browser: run, watched, cancelled, resumed, clicked on."""

import csv
import io
import json
import re
from pathlib import Path

from evaluate_bench import Bench, of_texts
from evaluate_page import TEXTS
from playwright.sync_api import expect
from table_model import TableModel

from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.models import load_model
from fillmask_ui.texts import TextSource, open_texts


def test_forty_embedded_texts_end_with_the_numbers_of_evaluate(bench):
    bench.page.get_by_label("Number of texts").fill("40")
    bench.run()
    bench.finished()
    config = EvaluationConfig()
    with open_texts(TextSource(samples=40)) as texts:
        rows = list(evaluate(load_model("embedded"), texts, config))
    expected = summarize(rows, config=config)
    assert bench.value.inner_text() == f"{expected.model.mean_nll_nats:.4f} nats"
    low, high = expected.model.interval.low, expected.model.interval.high
    expect(bench.figures).to_contain_text(f"95 % interval {low:.4f} to {high:.4f} nats")
    expect(bench.figures).to_contain_text(f"{expected.model.tokens:,} tokens of")
    worst = expected.worst[0]
    expect(bench.worst.first).to_contain_text(f"loss {worst.nll_nats:.3f} nats")
    expect(bench.worst).to_have_count(3)
    bench.unfold("All tokens")
    expect(bench.tokens.first).to_contain_text(worst.token)
    expect(bench.tokens.first).to_contain_text(f"{worst.nll_nats:.3f}")
    # One chart stands with the story; the others are drawn when they are unfolded.
    charts = bench.page.locator(".fm-chart .js-plotly-plot:visible")
    expect(charts).to_have_count(1)
    bench.unfold("More charts")
    expect(charts).to_have_count(8)
    expect(bench.page.locator(".fm-chart-table:visible")).to_have_count(8)
    for chart in charts.all():
        place = chart.evaluate("chart => chart.closest('.fm-chart').clientWidth")
        expect(chart.locator(".main-svg").first).to_have_attribute("width", re.compile(r"\d+"))
        drawn = chart.evaluate("chart => chart.querySelector('.main-svg').clientWidth")
        assert 0.9 * place < drawn <= place
    # The worst token opens Explore as the run saw it: the same loss, under the same model.
    bench.tokens.first.get_by_role("button").first.click()
    expect(bench.page.get_by_role("tab", name="Explore")).to_have_attribute("aria-selected", "true")
    sentence = bench.page.locator("#sentence textarea")
    expect(sentence).to_have_value(
        re.compile(re.escape(worst.text[: worst.start][-20:]) + r"\s?\[MASK\]")
    )
    expect(bench.page.locator("#candidates tbody tr").first).to_be_visible()
    expect(bench.page.locator("#strip .fm-read-line")).to_contain_text(f"{worst.nll_nats:.4f} nats")


def test_cancel_answers_while_the_model_hangs_keeps_the_rows_and_resumes(bench, held, tmp_path):
    held.free_calls = len(held.calls) + 6
    held.reached.clear()
    held.open.clear()
    of_texts(bench, tmp_path, a="table")
    bench.page.get_by_label("Pseudo-perplexity").check()
    bench.run()
    assert held.reached.wait(60)
    # What is done is told before the end.
    expect(bench.notice).to_contain_text(re.compile(rf"[1-9]\d* of {len(TEXTS)} texts"))
    expect(bench.page.get_by_role("button", name="Cancel")).to_be_enabled()
    bench.cancel()
    # The model hangs in a call, as a slow one would, for longer than is waited for here.
    expect(bench.notice).to_contain_text("Stopped after")
    held.free_calls = 10**9
    held.open.set()
    kept = int(re.search(r"after (\d+) of", bench.notice.inner_text())[1])
    assert 0 < kept < len(TEXTS)
    bench.list_runs()
    bench.page.get_by_role("button", name="Resume").click()
    config = EvaluationConfig("pseudo-perplexity")
    expected = summarize(evaluate(TableModel(1), TEXTS, config), config=config)
    expect(bench.figures).to_contain_text(f"tokens of {expected.texts} texts", timeout=90_000)
    bench.finished()
    assert bench.value.inner_text() == f"{expected.model.perplexity:,.4f}"


def test_two_models_side_by_side_and_the_brush(bench, tmp_path):
    of_texts(bench, tmp_path, a="table", b="noisy")
    bench.run()
    bench.finished()
    expect(bench.page.locator(".fm-verdict")).to_contain_text("A against B")
    for name in ("More charts", "All tokens"):
        bench.unfold(name)
    expect(bench.page.locator("#plot-scatter .js-plotly-plot")).to_be_visible()
    caption = bench.page.locator("#worst-tokens caption")
    expect(caption).to_contain_text("largest difference")
    bench.tokens.first.locator("td.fm-number").first.click()
    expect(bench.page.locator(".fm-sides table")).to_have_count(2)
    # So does the row's button, by keyboard.
    second = bench.tokens.nth(1)
    second.get_by_role("button").nth(1).press("Enter")
    loss = float(second.locator("td.fm-number").first.get_attribute("data-value"))
    expect(bench.page.locator(".fm-sides")).to_contain_text(f"{loss:.4f} nats")
    chart = bench.page.locator("#plot-loss-histogram")
    chart.scroll_into_view_if_needed()
    box = chart.locator(".nsewdrag").first.bounding_box()
    height = box["y"] + box["height"] / 2
    mouse = bench.page.mouse
    mouse.move(box["x"] + 0.2 * box["width"], height)
    mouse.down()
    mouse.move(box["x"] + 0.3 * box["width"], height, steps=4)
    mouse.move(box["x"] + 0.4 * box["width"], height, steps=4)
    mouse.up()
    expect(caption).to_contain_text("with a loss from")
    low, high = map(float, re.search(r"from ([\d.]+) to ([\d.]+)", caption.inner_text()).groups())
    losses = bench.page.eval_on_selector_all(
        "#worst-tokens tbody tr td:nth-child(2)", "cells => cells.map(c => +c.dataset.value)"
    )
    assert losses
    assert all(low <= loss < high for loss in losses)
    # The choice can be taken back; a click on a bar chooses its tokens.
    bench.page.locator("#any-loss").click()
    expect(caption).not_to_contain_text("with a loss from")
    chart.scroll_into_view_if_needed()
    box = chart.locator(".nsewdrag").first.bounding_box()
    bar = chart.locator(".barlayer .point path").nth(4).bounding_box()
    mouse.move(bar["x"] + bar["width"] / 2, box["y"] + 0.9 * box["height"])
    expect(chart.locator(".hovertext")).to_be_visible()
    mouse.click(bar["x"] + bar["width"] / 2, box["y"] + 0.9 * box["height"])
    expect(caption).to_contain_text("with a loss from")
    expect(chart.get_by_role("img", name="Histogram of the loss")).to_be_visible()
    # The last bar ends nowhere.
    click = "chart => chart.emit('plotly_click', { points: [{ customdata: '3:' }] })"
    chart.locator(".js-plotly-plot").evaluate(click)
    expect(caption).to_contain_text("with a loss from 3 to any nats")


def axis(chart):
    return chart.locator(".js-plotly-plot").evaluate("chart => chart._fullLayout.yaxis.type")


def test_the_axis_of_the_counts_is_switched_and_stays_so(bench, tmp_path):
    of_texts(bench, tmp_path, a="noisy")
    bench.run()
    bench.finished()
    chart = bench.page.locator("#plot-main")
    bench.unfold("All figures")
    assert axis(chart) == "linear"
    chart.get_by_text("log", exact=True).click()
    expect(chart).to_contain_text("tokens (log scale)")
    assert axis(chart) == "log"
    # Whatever is drawn next has it too, until it is switched back.
    for texts, wanted in ((30, "log"), (40, "linear")):
        bench.page.get_by_label("Number of texts").fill(str(texts))
        bench.run()
        expect(bench.page.locator("#evaluate-every")).to_contain_text(f"samples:{texts}|")
        bench.finished()
        expect(chart).to_contain_text("tokens (log scale)")
        if wanted == "linear":
            chart.get_by_text("linear", exact=True).click()
            expect(chart).not_to_contain_text("log scale")
        assert axis(chart) == wanted


def test_bad_input_is_said_and_nothing_is_lost(bench, tmp_path):
    of_texts(bench, tmp_path, a="noisy")
    bench.run()
    bench.finished()
    before = bench.figures.inner_text()
    bench.page.get_by_label("Mask probability").fill("2")
    bench.run()
    expect(bench.notice.get_by_role("alert")).to_contain_text("it was 2")
    assert bench.figures.inner_text() == before
    expect(bench.page.get_by_role("button", name="Run", exact=True)).to_be_enabled()


def test_stored_runs_outlive_the_browser_and_are_files(bench, tmp_path):
    of_texts(bench, tmp_path, a="noisy")
    bench.run()
    bench.finished()
    value = bench.value.inner_text()
    bench.page.close()
    bench = Bench(bench.page.context.new_page(), bench.url).open()
    bench.list_runs()
    count = bench.runs.count()
    bench.runs.first.get_by_role("button").click()
    bench.finished()
    assert bench.value.inner_text() == value
    files = {}
    for name in ("CSV", "JSON"):
        with bench.page.expect_download() as download:
            bench.page.locator(f"#run-{name.lower()}").click()
        files[name] = Path(download.value.path()).read_text("utf-8")
    losses = [float(row["nll_nats"]) for row in csv.DictReader(io.StringIO(files["CSV"]))]
    assert value == f"{sum(losses) / len(losses):.4f} nats"
    assert json.loads(files["JSON"])["summary"]["tokens"] == len(losses)
    bench.page.on("dialog", lambda dialog: dialog.accept())
    bench.page.get_by_role("button", name="Delete").click()
    expect(bench.notice).to_contain_text("was deleted")
    expect(bench.runs).to_have_count(count - 1)


def test_nothing_sticks_out_of_a_narrow_screen(bench, tmp_path):
    bench.page.set_viewport_size({"width": 390, "height": 844})
    of_texts(bench, tmp_path, a="table", b="noisy")
    bench.page.get_by_role("button", name="More options").click()
    bench.run()
    bench.finished()
    # The message of Run brought its answer into view.
    assert 0 <= bench.figures.bounding_box()["y"] < 844
    for token in bench.worst.all():
        assert token.evaluate("token => token.scrollWidth <= token.clientWidth")
    bench.list_runs()
    for name in ("More charts", "All figures", "All tokens"):
        bench.unfold(name)
    assert bench.page.evaluate("document.documentElement.scrollWidth") == 390
    for place in ("#evaluate", "#evaluate-charts", "#evaluate-every", "#evaluate-tokens", "#runs"):
        box = bench.page.locator(place).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390, place
