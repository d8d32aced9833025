"""The chapters on senses and on sentence pairs in a browser."""

import pytest
from accessibility import prepare, violations
from playwright.sync_api import expect


def opened(page, served, chapter, figures):
    page.goto(f"{served.url}?tab=learn&chapter={chapter}")
    expect(page.locator(f"#chapter-{chapter} .fm-figure")).to_have_count(figures)
    for figure in page.locator(f"#chapter-{chapter} .fm-figure").all():
        expect(figure).to_have_attribute("aria-busy", "false", timeout=60_000)
    return page


def test_one_word_goes_through_all_steps(page, served):
    opened(page, served, "senses", 4)
    figures = page.locator("#chapter-senses .fm-figure")
    figures.first.get_by_role("button", name="match").click()
    expect(figures.first).to_contain_text("Our team won the match.")
    expect(figures.nth(2)).to_contain_text("She struck a match to light the candle.")
    fresh = figures.last.get_by_label("A new sentence")
    expect(fresh).to_have_value("He needed a match to light the lamp.")
    said = figures.last.locator(".fm-senses-said")
    expect(said).to_contain_text("sense 2")
    fresh.fill("The players came late to the match.")
    expect(said).to_contain_text("sense 1")
    fresh.fill("Nobody came.")
    expect(figures.last.get_by_role("alert")).to_contain_text("does not occur")
    expect(figures.first.get_by_role("alert")).to_have_count(0)


def test_the_push_moves_one_table_alone(page, served):
    opened(page, served, "senses", 4)
    figure = page.locator("[data-figure=rogue_dimensions]")
    scored = figure.locator("[data-piece=scored]").inner_html()
    before = figure.locator("[data-piece=raw]").inner_text()
    figure.get_by_role("slider").fill("2")
    expect(figure).to_contain_text("pushed")
    assert figure.locator("[data-piece=raw]").inner_text() != before
    assert figure.locator("[data-piece=scored]").inner_html() == scored


def test_a_pair_is_typed_once(page, served):
    opened(page, served, "next-sentence", 3)
    figures = page.locator("#chapter-next-sentence .fm-figure")
    figures.first.get_by_label("Second sentence").fill("Whales sing.")
    expect(figures.first).to_contain_text("whales")
    expect(figures.nth(1).get_by_label("Second sentence")).to_have_value("Whales sing.")
    expect(figures.last).to_contain_text("Whales sing.")
    figures.nth(1).get_by_label("is from anywhere").check()
    expect(figures.nth(1)).to_contain_text("1.204 nats; were it")


@pytest.mark.parametrize(("chapter", "figures"), [("senses", 4), ("next-sentence", 3)])
def test_axe_finds_nothing(page, served, chapter, figures):
    prepare(page.context)
    opened(page, served, chapter, figures)
    found = violations(page, chapter, within=f"#chapter-{chapter}")
    assert found == [], "\n".join(map(str, found))
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
