"""Guess first in a browser: what is hidden, what is typed, what is revealed."""

import math

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.explore_page import Explorer

TEXT = "The cat sat on the [MASK]."


class Guessing:
    """The panel through the eyes of a lecturer."""

    def __init__(self, page, served, text=TEXT, hidden='["mat"]', **more):
        self.page = page
        Explorer(page, served).open(text=text, hidden=hidden, **more)
        expect(page.locator("#loss svg")).to_be_visible(timeout=30_000)
        self.toggle = page.get_by_role("button", name="Guess first")
        self.panel = page.get_by_role("region", name="Guesses of the class")
        self.word = self.panel.get_by_role("textbox", name="Word", exact=True)
        self.many = self.panel.get_by_role("textbox", name="How many")
        self.reveal = self.panel.get_by_role("button", name="Reveal")
        self.result = page.locator(".fm-guess-result")
        self.error = self.panel.get_by_role("alert")

    def add(self, word, many=""):
        self.word.fill(word)
        self.many.fill(many)
        self.many.press("Enter")
        return self

    def see(self, *chips):
        """Wait for these chips, each a word and its number."""
        expect(self.panel.locator('[data-guess="more"]')).to_have_text(
            [f"{chip}: add one" for chip in chips]
        )
        return self

    def bars(self):
        """Word -> shares of the class and the model as the bars are drawn, in [0, 1]."""
        return self.page.evaluate(
            """() => Object.fromEntries([...document.querySelectorAll(".fm-pair")].map((pair) => {
                const share = (fill) =>
                    fill.getBoundingClientRect().width /
                    fill.parentElement.getBoundingClientRect().width;
                const fills = [...pair.querySelectorAll(".fm-pair-fill")];
                return [pair.querySelector("bdi").textContent, fills.map(share)];
            }))"""
        )


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    yield context.new_page()
    context.close()


def test_the_answer_is_absent_until_it_is_revealed(page, served):
    guessing = Guessing(page, served)
    best = page.evaluate("fillmask.explore.answer.mask.candidates[0].word")
    tree = page.locator("#stage").aria_snapshot()
    assert best in tree and "put mat back" in tree
    guessing.toggle.click()
    expect(guessing.toggle).to_have_attribute("aria-pressed", "true")
    expect(guessing.word).to_be_focused()
    tree = page.locator("main").first.aria_snapshot()
    assert (
        best not in tree and '"mat' not in tree and "loss" not in tree.lower().split("unit of")[0]
    )
    for piece in ("#bars", "#candidates", "#tables", "#stats", "#loss", ".fm-guess"):
        expect(page.locator(piece).first).to_be_hidden()
    titles = (
        "[...document.querySelectorAll('#stage [title]')]"
        ".filter((e) => e.checkVisibility()).map((e) => e.title).join()"
    )
    assert "mat" not in page.evaluate(titles)
    guessing.add("sofa").see("sofa 1").reveal.click()
    expect(page.locator("#candidates")).to_be_visible()
    assert "hides mat" in page.evaluate(titles)


def test_the_class_beside_the_model(page, served):
    guessing = Guessing(page, served)
    truth = page.evaluate("fillmask.explore.answer.truth")
    guessing.toggle.click()
    guessing.add("mat", "2").see("mat 2").add("floor, sofa, Mat").see("mat 3", "floor 1", "sofa 1")
    chip = guessing.panel.get_by_role("button").filter(has_text="floor 1")
    chip.click()
    guessing.see("mat 3", "floor 2", "sofa 1")
    expect(guessing.panel.get_by_role("status")).to_have_text("6 guesses")
    guessing.panel.get_by_role("button", name="remove sofa").click()
    guessing.see("mat 3", "floor 2").reveal.click()
    expect(guessing.result).to_be_focused()
    wanted = f"({-math.log(0.6):.3f} nats against {truth['nll_nats']:.3f})"
    expect(guessing.result).to_contain_text(f"Less surprised: the class {wanted}.")
    bars = guessing.bars()
    assert list(bars)[:2] == ["mat", "floor"]
    assert bars["mat"] == pytest.approx([0.6, truth["probability"]], abs=0.005)
    assert sum(model for _, model in bars.values()) == pytest.approx(1, abs=0.02)


def test_another_model_answers_the_same_guesses_and_another_sentence_clears_them(page, served):
    guessing = Guessing(page, served)
    guessing.toggle.click()
    guessing.add("floor 3").see("floor 3").reveal.click()
    expect(guessing.result).to_contain_text("Nobody guessed “mat”")
    before = guessing.bars()["floor"]
    page.evaluate("fillmask.explore.change({ model: 'embedded:int8' })")
    expect(page.locator("#stage")).to_have_attribute("data-model", "embedded:int8 · int8")
    page.wait_for_function(
        "(width) => document.querySelectorAll('.fm-pair-of-guess .fm-pair-fill')[1]"
        ".style.getPropertyValue('--p') !== width",
        arg=f"{before[1]:.6f}",
    )
    assert guessing.bars()["floor"][0] == pytest.approx(1, abs=0.005)
    page.evaluate("fillmask.explore.change({ text: 'The opposite of hot is [MASK].' })")
    expect(guessing.word).to_be_visible()
    guessing.see()
    expect(page.locator("#bars")).to_be_hidden()


def test_an_unknown_word_may_be_told(page, served):
    guessing = Guessing(page, served, hidden="")
    guessing.toggle.click()
    guessing.add("floor").see("floor 1").reveal.click()
    expect(guessing.result).to_contain_text("The true word is not known")
    guessing.panel.get_by_role("button", name="Hide and guess again").click()
    guessing.panel.get_by_label("What was the word?").fill("floor")
    guessing.reveal.click()
    expect(guessing.result).to_contain_text("Less surprised: the class (0.000 nats")


def test_a_pasted_list_of_percents_and_what_is_wrong_with_one(page, served):
    guessing = Guessing(page, served)
    guessing.toggle.click()
    guessing.reveal.click()
    expect(guessing.error).to_contain_text("Nobody has guessed yet")
    guessing.panel.get_by_text("Paste a list").click()
    box = guessing.panel.get_by_label("Guesses, with counts or percents")
    box.fill("mat 60%\nfloor 30")
    guessing.panel.get_by_role("button", name="Add all").click()
    expect(guessing.error).to_contain_text("'floor' has no percent")
    expect(box).to_have_value("mat 60%\nfloor 30")
    box.fill("mat 60%, floor 30%")
    guessing.panel.get_by_role("button", name="Add all").click()
    guessing.see("mat 60%", "floor 30%")
    expect(guessing.error).to_be_hidden()
    expect(guessing.panel.get_by_role("status")).to_have_text("10% of the class made no guess.")
    guessing.reveal.click()
    expect(guessing.result).to_contain_text("no guess, all other words")
    assert guessing.bars()["no guess, all other words"][0] == pytest.approx(0.1, abs=0.005)


def test_each_mask_has_guesses_of_its_own(page, served):
    guessing = Guessing(page, served, "The [MASK] sat on the [MASK].", '["cat", "mat"]')
    guessing.toggle.click()
    choices = page.locator("#choices button")
    expect(choices).to_have_text(["1", "2"])
    guessing.add("dog").see("dog 1")
    choices.nth(1).click()
    guessing.see().add("rug").see("rug 1")
    choices.nth(0).click()
    guessing.see("dog 1")
    guessing.toggle.click()
    expect(choices).to_have_text(["1 cat", "2 mat"])


def test_markup_is_text(page, served):
    guessing = Guessing(page, served)
    guessing.toggle.click()
    guessing.add("<img src=x onerror=alert(1)>").see("<img src=x onerror=alert(1)> 1")
    guessing.reveal.click()
    expect(guessing.result).to_contain_text("<img src=x")
    assert page.locator("#guess img").count() == 0


def test_an_error_reveals_nothing(page, served):
    guessing = Guessing(page, served)
    guessing.toggle.click()
    guessing.add("floor").see("floor 1")
    page.evaluate("fillmask.explore.change({ model: '/no/such/model' })")
    expect(page.locator("#notice .fm-error")).to_be_visible()
    expect(page.locator("#bars")).to_be_hidden()
    guessing.see("floor 1")


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_of_ours(page, served, dark):
    guessing = Guessing(page, served, __theme="dark" if dark else "light")
    guessing.toggle.click()
    guessing.add("floor, 猫").see("floor 1", "猫 1")
    guessing.reveal.press("Tab")
    found = violations(page)
    guessing.reveal.click()
    expect(guessing.result).to_contain_text("The model cannot spell 猫")
    assert found + violations(page) == []


def violations(page):
    """Rules broken inside the stage, each with the elements that break it."""
    report = Axe().run(page, context="#stage").response
    return [(v["id"], [n["html"][:90] for n in v["nodes"]]) for v in report["violations"]]
