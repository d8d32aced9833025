"""Variants made in a real browser: rows and charts appear, and lead to the other tabs."""

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect


def test_two_schemes_are_made_measured_and_opened_in_other_tabs(page, served):
    page.goto(f"{served.url}?tab=quantize")
    page.get_by_label("int8-channel:").uncheck()
    page.locator("#quantize-samples input").fill("6")
    page.get_by_role("button", name="Run").click()
    rows = page.locator("#quantize-rows tr.fm-variant")
    expect(rows).to_have_count(3, timeout=90_000)
    expect(page.locator("#quantize-size .js-plotly-plot .point")).to_have_count(3)
    expect(page.locator("#quantize-speed .js-plotly-plot .point")).to_have_count(3)
    expect(page.locator("#quantize-run")).to_be_enabled()
    int8 = page.locator('#quantize-rows tr[data-scheme="int8"]')
    path = int8.locator("[data-diagnose]").get_attribute("data-diagnose")
    # A reload finds them again.
    page.reload()
    expect(rows).to_have_count(3)
    int8.get_by_role("button", name="Diagnose").click()
    expect(page.locator("#diagnose")).not_to_have_attribute("hidden", "")
    int8.get_by_role("link", name="Evaluate").click()
    expect(page.locator("#evaluate-model input")).to_have_value(path)
    expect(page.locator("#evaluate-baseline input")).to_have_value("embedded · float16 weights")
    page.get_by_role("tab", name="Quantize").click()
    int8.get_by_role("link", name="Explore").click()
    # Both models at the mask, in place of the bars of the first.
    expect(page.locator("#versus .fm-versus-row").first).to_be_visible()
    expect(page.locator("#versus")).to_contain_text(path)
    expect(page.locator("#bars")).to_be_hidden()
    link = parse_qs(urlsplit(page.url).query)
    assert link["model"] == [path]
    assert link["compare"] == ["embedded"]
