"""The chapters on guesses and on the loss in a browser."""

import math

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect


def opened(page, served, chapter, figure, **more):
    query = "".join(f"&{name}={value}" for name, value in more.items())
    page.goto(f"{served.url}?tab=learn&chapter={chapter}{query}")
    found = page.locator(f'[data-figure="{figure}"]')
    expect(found).to_have_attribute("aria-busy", "false")
    return found


def test_the_answer_is_absent_until_the_button_is_pressed(page, served):
    figure = opened(page, served, "guess", "guess")
    figure.get_by_label("guess 1", exact=True).fill("tea")
    figure.get_by_label("percent of guess 1").fill("60")
    figure.get_by_label("percent of guess 1").press("Enter")
    expect(figure.locator(".fm-bar-value")).to_have_text(["60.0%", "40.0%"])
    expect(figure.locator(".fm-pairs")).to_have_count(0)
    assert "coffee" not in figure.inner_html()
    figure.get_by_role("button", name="Reveal").click()
    expect(figure.locator("mark")).to_contain_text("coffee")
    expect(figure).to_contain_text("Nobody guessed “coffee”")
    figure.get_by_label("a triangle").check()
    expect(figure.locator(".fm-pairs")).to_have_count(0)
    expect(figure.locator("mark")).to_contain_text("?")


def test_the_dot_moves_along_the_curve(page, served):
    page.emulate_media(reduced_motion="reduce")
    figure = opened(page, served, "loss", "loss_curve")
    expect(figure.locator("figcaption")).to_contain_text("0.357 nats")
    figure.get_by_role("slider").fill("30")
    expect(figure.locator("figcaption")).to_have_text("−ln 30.0% = 1.204 nats.")
    share, up = figure.evaluate(
        """(figure) => {
            const frame = figure.querySelector(".fm-loss-frame").getBoundingClientRect();
            const dot = figure.querySelector(".fm-loss-dot circle").getBoundingClientRect();
            const [x, y] = [dot.left + dot.width / 2, dot.top + dot.height / 2];
            return [(x - frame.left) / frame.width, (frame.bottom - y) / frame.height];
        }"""
    )
    assert share == pytest.approx(0.3, abs=0.006)
    assert up * 7 == pytest.approx(-math.log(0.3), abs=0.05)  # the axis ends at 7 nats


def test_a_sentence_is_typed_once_for_all_figures_of_a_chapter(page, served):
    table = opened(page, served, "loss", "softmax_table")
    table.get_by_label("Hidden word").fill("tea")
    heat, names = (
        page.locator(f'[data-figure="loss_{name}"]') for name in ("temperature", "units")
    )
    expect(heat.get_by_role("textbox", name="Hidden word")).to_have_value("tea")
    expect(heat.locator(".fm-hidden")).to_contain_text("tea")
    expect(names).to_contain_text("loss of “tea”")
    before = heat.locator(".fm-hidden").get_attribute("data-value")
    heat.get_by_role("slider").fill("0.5")
    expect(heat.locator(".fm-hidden")).not_to_have_attribute("data-value", before)
    assert float(heat.locator(".fm-hidden").get_attribute("data-value")) > float(before)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(page, served, theme):
    guess = opened(page, served, "guess", "guess", __theme=theme)
    guess.get_by_label("guess 1", exact=True).fill("tea")
    guess.get_by_label("percent of guess 1").fill("60")
    guess.get_by_role("button", name="Reveal").click()
    expect(guess.locator(".fm-pairs")).to_be_visible()
    page.get_by_role("button", name="Score both").click()
    expect(page.locator(".fm-lesson-table tfoot")).to_be_visible()
    found = violations(page)
    table = opened(page, served, "loss", "softmax_table", __theme=theme)
    table.get_by_label("loss", exact=True).check()
    expect(table.locator("tfoot")).to_be_visible()
    assert found + violations(page) == []


def violations(page):
    report = Axe().run(page, context="#learn-chapters").response
    return [(v["id"], [n["html"][:90] for n in v["nodes"]]) for v in report["violations"]]
