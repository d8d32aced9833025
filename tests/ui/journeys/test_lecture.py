"""A lecture: a class that guesses first, sentences on the projector."""

import json
import math
import re

import pytest
from accessibility import accessible
from journey import Explore
from playwright.sync_api import expect

from fillmask_ui.ui.explore.examples import EXAMPLES

# Answers come late, as from a slow machine.
LATE = """const fetched = window.fetch;
    window.fetch = (address, ...rest) => new Promise((resolve) =>
        setTimeout(resolve, String(address).includes("ask/answer") ? 1500 : 0))
        .then(() => fetched(address, ...rest))"""
SENTENCES = (
    "Water freezes when it gets very [MASK].",
    "The cat sat on the [MASK].",
    "The opposite of hot is [MASK].",
)
CAT = "The [MASK] sat on the [MASK]."
OWN = ("The nurse said that [MASK] was tired.", "The doctor said that [MASK] was tired.")
PLAIN = "Nobody in the village had ever asked them whether that was what they wanted to do."
LONG = f"{PLAIN} {PLAIN} A [MASK] treats patients and a [MASK] teaches children."


class Guessing:
    def __init__(self, page):
        self.page, self.explore = page, Explore(page)
        self.toggle = self.explore.mode("Guess first")
        self.panel = page.get_by_role("region", name="Guesses of the class")
        self.word = self.panel.get_by_role("textbox", name="Word", exact=True)
        self.reveal = self.panel.get_by_role("button", name="Reveal")
        self.again = self.panel.get_by_role("button", name="Hide and guess again")
        self.result = page.locator(".fm-guess-result")
        self.error = self.panel.get_by_role("alert")

    def add(self, word, amount=""):
        self.word.fill(word)
        box = self.panel.get_by_role("textbox", name="How many")
        box.fill(amount)
        box.press("Enter")
        return self

    def see(self, *chips):
        """Wait for these chips, each a word and its number."""
        expect(self.panel.get_by_role("button", name=re.compile("add one guess$"))).to_have_text(
            [f"{chip}: add one guess" for chip in chips]
        )
        return self

    def bars(self):
        """Word -> shares of the class and the model as the bars are drawn, in [0, 1]."""
        return self.page.evaluate(
            """() => Object.fromEntries([...document.querySelectorAll("#guess li .fm-row")].map(
                (row) => {
                const share = (fill) =>
                    fill.getBoundingClientRect().width /
                    fill.parentElement.getBoundingClientRect().width;
                const name = row.querySelector(".fm-row-name").firstChild.textContent;
                return [name.replace("✓ ", ""), [...row.querySelectorAll(".fm-mark")].map(share)];
            }))"""
        )

    def change(self, **state):
        self.explore.state(f"change({json.dumps(state)})")


def test_a_class_guesses_before_the_model(visit):
    text = SENTENCES[1]
    page = visit({"text": text, "hidden": '["mat"]'}, reduced_motion="reduce")
    guessing = Guessing(page)
    explore = guessing.explore.see(text)
    explore.unfold("Details")
    expect(explore.curve).to_be_visible()
    best, truth = explore.state("answer.mask.candidates[0].word"), explore.state("answer.truth")
    guessing.toggle.click()
    # Neither the model's words nor the hidden one are anywhere until they are revealed.
    tree = page.locator("main").first.aria_snapshot()
    assert best not in tree and '"mat' not in tree
    for part in (explore.bars, explore.table, explore.stats, explore.curve):
        expect(part).to_be_hidden()
    titles = (
        "[...document.querySelectorAll('#stage [title]')]"
        ".filter((e) => e.checkVisibility()).map((e) => e.title).join()"
    )
    assert "mat" not in page.evaluate(titles)
    guessing.reveal.click()
    expect(guessing.error).to_contain_text("Nobody has guessed yet")
    guessing.add("mat", "2").see("mat 2").add("floor, sofa, Mat").see("mat 3", "floor 1", "sofa 1")
    guessing.panel.get_by_role("button").filter(has_text="floor 1").click()
    guessing.see("mat 3", "floor 2", "sofa 1")
    expect(guessing.panel.get_by_role("status")).to_have_text("6 guesses")
    guessing.panel.get_by_role("button", name="remove sofa").click()
    accessible(page, within="#stage")
    guessing.see("mat 3", "floor 2").reveal.click()
    expect(guessing.result).to_be_focused()
    dots = guessing.result.locator("[data-losses] svg")  # both losses stand on the curve
    expect(dots.locator("circle")).to_have_count(2)
    expect(dots).to_have_attribute("aria-label", re.compile(r"class 0\.51 .*model \d"))
    losses = f"{-math.log(0.6):.3f} against {truth['nll_nats']:.3f} nats"
    expect(guessing.result).to_contain_text(f"The class wins: loss {losses}.")
    bars = guessing.bars()
    assert list(bars)[:2] == ["mat", "floor"]
    assert bars["mat"] == pytest.approx([0.6, truth["probability"]], abs=0.005)
    assert sum(model for _, model in bars.values()) == pytest.approx(1, abs=0.02)
    # A model that cannot be had reveals nothing.
    guessing.again.click()
    guessing.change(model="/no/such/model")
    expect(page.locator("#notice .fm-error")).to_be_visible()
    expect(explore.bars).to_be_hidden()
    guessing.see("mat 3", "floor 2")
    guessing.change(model="")

    # A pasted list of percents, what is wrong with one, and words that are only text.
    guessing.panel.get_by_role("button", name="remove mat").click()
    guessing.panel.get_by_role("button", name="remove floor").click()
    guessing.panel.get_by_text("Paste a list").click()
    box = guessing.panel.get_by_label("Guesses with counts or percentages")
    box.fill("mat 60%\nfloor 30")
    guessing.panel.get_by_role("button", name="Add all").click()
    expect(guessing.error).to_contain_text("'floor' has no percent")
    expect(box).to_have_value("mat 60%\nfloor 30")
    box.fill("mat 60%, <img src=x onerror=alert(1)> 20%, 猫 10%")
    guessing.panel.get_by_role("button", name="Add all").click()
    guessing.see("mat 60%", "<img src=x onerror=alert(1)> 20%", "猫 10%")
    expect(guessing.panel.get_by_role("status")).to_have_text("10% of the class made no guess.")
    guessing.reveal.click()
    expect(guessing.result).to_contain_text("The model cannot spell")
    expect(guessing.result).to_contain_text("no guess, all other words")
    assert page.locator("#guess img").count() == 0
    accessible(page)

    # Another sentence has no guesses yet; its word may be told.
    guessing.change(text=SENTENCES[2], base=SENTENCES[2], hidden=[None])
    expect(guessing.word).to_be_visible()
    guessing.see().add("cold").see("cold 1")
    guessing.panel.get_by_label("What was the word?").fill("cold")
    guessing.reveal.click()
    expect(guessing.result).to_contain_text("The class wins: loss 0.000 against")
    # Each mask has guesses of its own.
    guessing.change(text=CAT, base=CAT, hidden=["cat", "mat"])
    guessing.add("dog").see("dog 1")
    page.locator("#strip .fm-mask-number").nth(1).click()
    guessing.see()
    assert "mat" not in page.evaluate(titles)


class Lecture(Explore):
    """The page on a projector, and what of it can be seen."""

    def __init__(self, page):
        super().__init__(page)
        self.count = page.locator(".fm-present-count")
        self.sentences = page.get_by_label("One sentence per line")

    def presents(self, on=True):
        pattern = re.compile("fm-presenting")
        body = expect(self.page.locator("body"))
        (body.to_have_class if on else body.not_to_have_class)(pattern)
        return self

    def start(self):
        self.page.keyboard.press("p")
        return self.presents()

    def projected(self, text, bars=5):
        self.see(text)
        expect(self.bar).to_have_count(bars + 1)
        return self

    def pixels(self, selector):
        size = self.page.eval_on_selector(selector, "(e) => getComputedStyle(e).fontSize")
        return float(size.removesuffix("px"))

    def all_inside(self):
        """Nothing reaches out of the window, and the page does not scroll."""
        outside = self.page.evaluate(
            """() => [...document.querySelectorAll(
                    "#strip, #bars, #bars .fm-bar-row, #bars .fm-row-value, .fm-present-count")]
                .map((e) => [e.className || e.id, e.getBoundingClientRect()])
                .filter(([, box]) => box.left < 0 || box.top < 0 || box.right > innerWidth + 0.5
                    || box.bottom > innerHeight + 0.5 || !box.width || !box.height)
                .map(([name]) => name)
                .concat(scrollX + scrollY ? ["scrolled"] : [])"""
        )
        assert outside == []


def test_a_lecture_from_a_link(visit):
    width, height = 1280, 720
    state = {"text": SENTENCES[0], "list": "\n".join(SENTENCES)}
    lecture = Lecture(page := visit(state, width=width, height=height, color_scheme="dark"))
    lecture.see(SENTENCES[0])
    lecture.sentence.press("p")  # a letter where one types
    lecture.presents(False)
    lecture.open(**state).see(SENTENCES[0])
    lecture.tab("Guide")
    page.keyboard.press("p")  # a key for what is not in sight does nothing
    lecture.presents(False)
    lecture.press("Present")
    lecture.presents().projected(SENTENCES[0])
    # A lecture hall can read it, and nothing else is there.
    box = lecture.stage.bounding_box()
    assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, width, height)
    assert lecture.pixels("#strip .fm-token:not(.fm-special)") >= 48
    assert lecture.pixels("#bars li .fm-row-name") >= height / 25
    assert lecture.pixels(".fm-row-value") >= height / 25
    lecture.all_inside()
    for control in ("#sentence textarea", "#present", "#options", "[role=tab]"):
        assert page.evaluate(
            """(selector) => [...document.querySelectorAll(selector)].every((e) =>
                !e.checkVisibility() || (e.closest("[inert]")
                && document.elementFromPoint(innerWidth / 2, 10).closest("#stage")))""",
            control,
        ), control
    accessible(page)
    # Keys go through the sentences, clicks hide words.
    expect(lecture.count).to_have_text("1 / 3")
    page.keyboard.press("ArrowLeft")  # there is none before the first
    for key, number in (("ArrowRight", 1), ("PageDown", 2), ("PageUp", 1)):
        page.keyboard.press(key)
        lecture.projected(SENTENCES[number])
    lecture.word("cat").click()
    lecture.projected(CAT)
    page.keyboard.press("ArrowRight")  # though a word has the focus
    lecture.projected(SENTENCES[2])
    page.go_back()
    lecture.projected(CAT).presents()
    assert lecture.address()["present"] == "1"
    # Answers wait for the space bar.
    answers = page.locator("#bars .fm-row-name, #bars .fm-row-fill, #bars .fm-row-value, .fm-guess")
    answers = answers.filter(has_not_text="predicts")
    visible = answers.locator("visible=true")
    expect(visible).to_have_count(0)  # where the word is known
    assert not re.search(r"\bcat\b", lecture.stage.aria_snapshot())
    accessible(page, both_themes=False)
    page.keyboard.press(" ")
    expect(visible).not_to_have_count(0)
    lecture.see(CAT)  # and no word that has the focus was pressed
    page.keyboard.press("h")
    page.keyboard.press("h")  # now also where no word is known
    expect(visible).to_have_count(0)
    page.keyboard.press("ArrowLeft")
    lecture.projected(SENTENCES[1])
    page.keyboard.press("ArrowRight")
    lecture.projected(SENTENCES[2])
    expect(visible).to_have_count(0)
    page.locator("#bars .fm-bar-row").first.click()  # shows it and writes no word
    expect(visible).not_to_have_count(0)
    lecture.see(SENTENCES[2])
    # The loss is shown word by word, on a curve that grows.
    page.keyboard.press("l")
    best = lecture.state("answer.mask.candidates[0]")
    curve = page.locator("#fm-present-loss svg")
    label = re.compile(f"{best['word']} {best['nll_nats']:.2f} nats")
    expect(curve).to_have_attribute("aria-label", label)
    page.keyboard.press("ArrowLeft")
    lecture.projected(SENTENCES[1])
    expect(curve.locator("circle")).to_have_count(0)
    page.keyboard.press(" ")
    expect(curve.locator("circle")).to_have_count(1)
    expect(visible).not_to_have_count(0)
    page.keyboard.press("l")
    expect(curve).to_be_hidden()
    # Long sentences wrap; where they are too long the strip scrolls and the bars stay.
    for text in (LONG, f"{PLAIN} {PLAIN} {PLAIN} {PLAIN} {LONG}"):
        lecture.state(f"change({json.dumps({'text': text, 'base': text, 'hidden': []})})")
        lecture.see(text)
        assert lecture.pixels(".fm-strip") >= 48
        lecture.all_inside()
    page.keyboard.press("Escape")
    lecture.presents(False)
    assert "present" not in lecture.address()
    expect(page.locator("#fm-own-hide")).to_be_checked()
    expect(page.locator("[inert]")).to_have_count(0)
    # Full screen ends with the mode, however it ends.
    lecture.sentence.blur()
    page.locator("body").press("p")
    lecture.presents()
    page.wait_for_function("document.fullscreenElement !== null")
    page.evaluate("document.exitFullscreen()")
    lecture.presents(False)


def test_a_key_while_the_page_loads_and_a_pointer_that_rests(visit):
    text, other = "The quick brown fox jumps over the lazy dog.", "The cat sat on the mat."
    asked = {"text": text, "list": f"{text}\n{other}\n{OWN[0]}"}
    page = visit(asked, script=LATE, ready="#stage", width=1920, height=1080)
    lecture = Lecture(page)
    page.keyboard.press("p")
    lecture.presents(False).presents().see(text)
    expect(page.locator("#found .fm-along-list")).to_be_visible()
    # A sign stays on the line of its word.
    word, sign = lecture.words.nth(8).bounding_box(), lecture.words.nth(9).bounding_box()
    assert abs(word["y"] - sign["y"]) < word["height"] / 2
    # A pointer that moves onto a word opens what is known of it; one that rests there does not.
    opened = page.locator("#lens-pop")
    lecture.words.nth(1).hover()
    expect(opened).to_be_visible()
    page.keyboard.press("ArrowRight")
    lecture.see(other)
    expect(page.locator("#found .fm-along-list li")).to_have_count(7)
    page.wait_for_timeout(500)
    expect(opened).to_be_hidden()
    assert page.locator("#strip [title], #bars [title]").count() == 0
    box = lecture.words.nth(1).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2 + 3, box["y"] + box["height"] / 2)
    expect(opened).to_be_visible()


def test_a_long_text_brings_its_mask_into_view(visit):
    page = visit({"text": f"{PLAIN} {PLAIN} {PLAIN} {LONG}"}, width=390, height=844)
    lecture = Lecture(page).see(f"{PLAIN} {PLAIN} {PLAIN} {LONG}")
    expect(page.locator(".fm-mask-word").first).to_be_in_viewport(ratio=1)
    assert lecture.strip.evaluate("(e) => e.parentElement.clientHeight") < 400
    lecture.write("They [MASK] us.")
    lecture.state("change({ words: 'incomprehensibly' })")
    expect(lecture.bars.get_by_text("incomprehensibly")).to_be_visible()
    lecture.fits(390)
    above = lecture.bars.locator(".fm-above .fm-row-name").first
    bar = lecture.bars.locator(".fm-above .fm-row-fill").first
    assert above.bounding_box()["y"] < bar.bounding_box()["y"]
    accessible(page)


def test_a_lecturers_own_sentences(visit, tmp_path):
    lecture = Lecture(page := visit(width=390, height=844, has_touch=True))
    examples = [example.text for example in EXAMPLES]
    # Without a list the examples are shown.
    lecture.see(examples[0])
    page.locator("body").press("p")
    lecture.presents()
    expect(lecture.count).to_have_text(re.compile(r"^1 / \d+$"))
    # Its word is known, and waits; so are those of all sentences that a class is asked.
    expect(page.locator("#fm-present-wait")).to_be_visible()
    first, *others = page.evaluate("fillmask.presenting.for_class()")
    assert first["text"] == examples[0]
    assert len(others) > 10 and all(own["truth"] for own in (first, *others))
    lecture.press("next sentence")
    lecture.projected(examples[1])
    lecture.all_inside()
    lecture.press("leave presenting")
    lecture.presents(False)

    Explore(page).unfold("All 33 examples")
    page.get_by_text("Your sentences").click()
    status = page.locator("#fm-own-said")
    requests = []
    page.on("request", lambda request: requests.append(f"{request.url} {request.post_data}"))
    for name, encoding in (("utf8.txt", "utf-8"), ("old.txt", "windows-1252")):
        (tmp_path / name).write_bytes(f"Über [MASK] ging er.\r\n{OWN[0]}\r\n".encode(encoding))
        page.get_by_label("From a text file").set_input_files(tmp_path / name)
        expect(lecture.sentences).to_have_value(f"Über [MASK] ging er.\n{OWN[0]}")
        lecture.sentences.fill("")
    # It does not leave the browser, whatever else the page may ask for meanwhile.
    assert not [request for request in requests if "upload" in request or "ging er" in request]
    lecture.sentences.fill("\n".join([OWN[0]] * 100))
    expect(status).to_have_text(re.compile(r"^100 sentences\. +Too long for the link"))
    assert "list" not in lecture.address()
    lecture.sentences.fill("")
    expect(status).to_have_text("None yet: the examples are shown.")
    lecture.sentences.fill(f"  {OWN[0]}\n\n{OWN[1]}  \n")
    expect(status).to_have_text(re.compile(r"^2 sentences\."))
    assert lecture.address()["list"] == "\n".join(OWN)
    accessible(page)
    lecture.sentences.blur()
    lecture.start()
    expect(lecture.count).to_have_text("– / 2")
    page.keyboard.press("ArrowRight")
    lecture.projected(OWN[0])
    link = lecture.address()
    page.reload()
    lecture.presents().projected(OWN[0])
    expect(lecture.count).to_have_text("1 / 2")
    # The same browser without the link, then another one with it, which keeps no list of others.
    lecture.open()
    expect(lecture.sentences).to_have_value("\n".join(OWN))
    second_lecture = Lecture(visit(link | {"present": "1"}, ready="#stage"))
    second_lecture.presents().page.keyboard.press("ArrowRight")
    second_lecture.projected(OWN[1])
    expect(second_lecture.open().sentences).to_have_value("")
