"""Figures say what they mean: on hover, on focus, on touch, and to screen readers."""

import re

import pytest
from playwright.sync_api import expect

from fillmask_ui.filling import fill
from fillmask_ui.quantizing.diagnosis import Diagnosis, PartNoise, Restored
from fillmask_ui.show import diagnosis
from fillmask_ui.show.render import render
from fillmask_ui.show.sentences import EXPLANATIONS
from fillmask_ui.ui.explore.explore_modes import joint
from fillmask_ui.ui.explore.explore_state import Question
from fillmask_ui.ui.explore.guess_view import guess
from fillmask_ui.ui.explore.model_contrast_view import compared
from fillmask_ui.ui.explore.prediction_view import answer
from tests.explore_page import Explorer

TEXT = "The [MASK] sat on the [MASK]."


def test_each_is_one_short_line():
    for line in EXPLANATIONS.values():
        assert line[0].isupper() and line.endswith(".") and len(line) <= 100, line


def test_each_is_used_and_stands_once_on_the_page(session):
    """The header has the lines; every name that explains itself refers to one of them."""
    header = render("page/header.html", title="")
    assert re.findall(r'id="about-(\w+)"', header) == [*EXPLANATIONS]
    question = Question.read(
        {
            "text": "the [MASK] sat on the [MASK].",
            "draft": {"text": "the [MASK] sat on the [MASK].", "hidden": ["cat", "mat"]},
            "words": "dog",
        }
    )
    pieces = answer(session, question).html
    own = guess(session, {"text": "a [MASK]", "guesses": "cat", "truth": "cat"})["html"]
    together = joint(session, {"text": question.text})["html"]
    both = compared(session, {"text": question.text, "compare": "table"})["html"]
    variants = render("page/quantize/rows.html", lines=[], stamps=[], texts=0, alarms=[])
    restored = Restored(0.1, None, 1)
    part = PartNoise("query", "product", 0, (4, 4), "int8", 1, 4, 9.0, 9.0, restored=restored)
    known = Diagnosis("small", "large", (part,))
    parts, left = diagnosis.worst_parts(known), diagnosis.left_out(known)
    noise = render("page/quantize/diagnose_parts.html", bars=[], table=parts)
    left_out = render("page/quantize/diagnose_left_out.html", table=left)
    html = "".join([*pieces.values(), own, together, both, variants, noise, left_out])
    assert set(re.findall(r'aria-describedby="about-(\w+)"', html)) == set(EXPLANATIONS)


@pytest.mark.parametrize("unit", ["nats", "bits"])
def test_numbers_have_one_format_and_details_the_unit_asked_for(session, unit):
    text = "the [MASK] sat."
    model = session.model("")
    mask = fill(model, text, top_k=1).masks[0]
    question = Question.read(
        {"text": text, "draft": {"text": text, "hidden": ["cat"]}, "unit": unit}
    )
    html = answer(session, question).html
    entropy = mask.entropy_nats if unit == "nats" else mask.entropy_nats / 0.6931471805599453
    assert f"{entropy:.3f} {unit}" in html["stats"]
    assert f"{entropy:.6f} {unit}" in html["details"]
    assert f"as unsure as among {mask.perplexity:.0f} equal words" in html["stats"]
    loss = re.search(rf"loss ([\d.]+) {unit}", html["stats"])[1]
    assert f">{loss}</td>" in html["scored"]


def opened(browser, served, **options):
    page = browser.new_context(viewport={"width": 1280, "height": 800}, **options).new_page()
    Explorer(page, served).open(text=TEXT, hidden='["cat", "mat"]')
    expect(page.locator("#stats .fm-explain").first).to_be_visible(timeout=30_000)
    return page


def test_hover_focus_and_escape(browser, served):
    page = opened(browser, served)
    tip = page.locator("#fm-tip")
    name = page.get_by_role("button", name="Entropy").first
    name.hover()
    expect(tip).to_have_text(EXPLANATIONS["entropy"])
    expect(name).to_have_accessible_description(EXPLANATIONS["entropy"])
    tip.hover()  # the line itself can be pointed at
    page.wait_for_timeout(400)
    expect(tip).to_be_visible()
    page.mouse.move(2, 2)
    expect(tip).to_be_hidden()
    name.focus()
    expect(tip).to_be_visible()
    page.keyboard.press("Tab")
    expect(tip).to_have_text(EXPLANATIONS["perplexity"])
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    expect(page.get_by_role("button", name="Perplexity").first).to_be_focused()
    page.context.close()


def test_touch_and_the_edge_of_a_narrow_screen(browser, served):
    page = opened(browser, served, has_touch=True, is_mobile=True)
    page.set_viewport_size({"width": 390, "height": 844})
    tip = page.locator("#fm-tip")
    page.locator("#candidates .fm-explain", has_text="Cumulative").tap()
    expect(tip).to_have_text(EXPLANATIONS["cumulative"])
    box = tip.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    page.locator("h1").tap()
    expect(tip).to_be_hidden()
    page.context.close()
