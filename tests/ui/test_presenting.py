"""Presenting: what a lecture hall sees, in a real browser."""

from __future__ import annotations

import json
import re
from urllib.parse import urlencode

import pytest
from chromium import faults_of
from explore_page import version
from playwright.sync_api import expect

SENTENCES = (
    "Water freezes when it gets very [MASK].",
    "The cat sat on the [MASK].",
    "The opposite of hot is [MASK].",
)
OWN = ("The nurse said that [MASK] was tired.", "The doctor said that [MASK] was tired.")
PLAIN = "Nobody in the village had ever asked them whether that was what they wanted to do."
LONG = f"{PLAIN} {PLAIN} A [MASK] treats patients and a [MASK] teaches children."


class Lecture:
    """The page on a projector, and what of it can be seen."""

    def __init__(self, page, url):
        self.page, self.url = page, url
        self.stage, self.count = page.locator("#stage"), page.locator(".fm-present-count")
        self.own = page.get_by_label("One sentence per line")

    def open(self, query=""):
        self.page.goto(self.url + query)
        self.page.locator("#strip [data-place]").first.wait_for()
        self.page.wait_for_function("window.fillmask.loaded")
        return self

    def open_list(self):
        """With `SENTENCES` as the list and the first of them as the sentence."""
        return self.open("?" + urlencode({"text": SENTENCES[0], "list": "\n".join(SENTENCES)}))

    def start(self):
        self.page.keyboard.press("p")
        return self.see_mode(True)

    def see_mode(self, on):
        pattern = re.compile("fm-presenting")
        body = expect(self.page.locator("body"))
        (body.to_have_class if on else body.not_to_have_class)(pattern)
        return self

    def see(self, text, bars=5):
        """Wait for the answer to this text."""
        strip = self.page.locator("#strip [data-version]")
        expect(strip).to_have_attribute("data-version", version(text))
        expect(self.stage).to_have_attribute("aria-busy", "false")
        expect(self.page.locator("#bars .fm-bar-row:visible")).to_have_count(bars + 1)
        return self

    def style(self, selector, name):
        return self.page.eval_on_selector(selector, f"(e) => getComputedStyle(e)['{name}']")

    def pixels(self, selector):
        return float(self.style(selector, "fontSize").removesuffix("px"))

    def outside(self):
        """What reaches out of the window, and whether the page scrolls."""
        return self.page.evaluate(
            """() => [...document.querySelectorAll(
                    "#strip, #bars, #bars .fm-bar-row, #bars .fm-bar-value, .fm-present-count")]
                .map((e) => [e.className || e.id, e.getBoundingClientRect()])
                .filter(([, box]) => box.left < 0 || box.top < 0 || box.right > innerWidth + 0.5
                    || box.bottom > innerHeight + 0.5 || !box.width || !box.height)
                .map(([name]) => name)
                .concat(scrollX + scrollY ? ["scrolled"] : [])"""
        )

    def parameter(self, name):
        return self.page.evaluate(f"new URL(location.href).searchParams.get('{name}')")


@pytest.fixture
def open_page(browser, served):
    """A function that opens a page of a size; script errors fail the test."""
    expect.set_options(timeout=60_000)
    faults, contexts = [], []

    def make(width=1920, height=1080, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(60_000)
        contexts.append(context)
        page = context.new_page()
        faults.append(faults_of(page))
        return Lecture(page, served.url)

    yield make
    for context in contexts:
        context.close()
    assert not any(faults), faults


@pytest.mark.parametrize(("width", "height"), [(1920, 1080), (1280, 720)])
def test_a_lecture_hall_can_read_it(open_page, width, height):
    lecture = open_page(width, height).open_list().start().see(SENTENCES[0])
    page = lecture.page
    box = lecture.stage.bounding_box()
    assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, width, height)
    assert lecture.pixels("#strip .fm-token:not(.fm-special)") >= 48
    assert lecture.pixels(".fm-bar-word") >= height / 25
    assert lecture.pixels(".fm-bar-value") >= height / 25
    heights = [row.bounding_box()["height"] for row in page.locator(".fm-bar-row").all()]
    assert min(heights[:5]) > height / 20 > heights[5]
    assert lecture.outside() == []
    expect(page.locator("#strip .fm-special:visible")).to_have_count(0)
    # Neither eye nor keyboard nor screen reader meets a control of the page.
    for control in ("#sentence textarea", "#present", "#candidates", ".fm-zoom", "[role=tab]"):
        assert page.evaluate(
            """(selector) => [...document.querySelectorAll(selector)].every((e) =>
                !e.checkVisibility() || (e.closest("[inert]")
                && document.elementFromPoint(innerWidth / 2, 10).closest("#stage")))""",
            control,
        ), control
    lecture.page.keyboard.press("p")
    lecture.see_mode(False).see(SENTENCES[0], bars=10)
    expect(page.locator("[inert]")).to_have_count(0)
    expect(page.locator("#present")).to_be_focused()


@pytest.mark.parametrize(("width", "height"), [(1920, 1080), (1280, 720)])
def test_long_sentences_wrap_at_48_pixels_or_more(open_page, width, height):
    lecture = open_page(width, height)
    lecture.open("?text=" + LONG).start().see(LONG)
    assert lecture.pixels(".fm-strip") >= 48
    assert lecture.outside() == []
    longest = f"{PLAIN} {PLAIN} {PLAIN} {PLAIN} {LONG}"
    lecture.open(f"?text={longest}").start().see(longest)
    assert lecture.pixels(".fm-strip") >= 48  # the strip scrolls, the bars stay
    assert lecture.outside() == []


def test_it_fits_a_phone(open_page):
    lecture = open_page(390, 844, has_touch=True).open_list()
    lecture.page.get_by_role("button", name="Present").click()
    lecture.see_mode(True).see(SENTENCES[0])
    assert lecture.outside() == []
    lecture.page.get_by_role("button", name="next sentence").click()
    lecture.see(SENTENCES[1])
    lecture.page.get_by_role("button", name="leave presenting").click()
    lecture.see_mode(False)


def test_keys_go_through_the_sentences_and_clicks_hide_words(open_page):
    lecture = open_page().open_list().start().see(SENTENCES[0])
    page = lecture.page
    expect(lecture.count).to_have_text(f"1 / {len(SENTENCES)}")
    page.keyboard.press("ArrowLeft")  # there is none before the first
    page.keyboard.press("ArrowRight")
    lecture.see(SENTENCES[1])
    page.keyboard.press("PageDown")
    lecture.see(SENTENCES[2])
    page.keyboard.press("PageUp")
    lecture.see(SENTENCES[1])
    expect(lecture.count).to_have_text(f"2 / {len(SENTENCES)}")
    page.locator("#strip button", has_text="cat").click()
    lecture.see("The [MASK] sat on the [MASK].")
    page.keyboard.press("ArrowRight")  # though a word has the focus
    lecture.see(SENTENCES[2])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#strip button.fm-token", has_text="of")).to_be_focused()
    page.go_back()
    lecture.see("The [MASK] sat on the [MASK].").see_mode(True)
    assert lecture.parameter("present") == "1"
    page.keyboard.press("Escape")
    lecture.see_mode(False)
    assert lecture.parameter("present") is None


def test_p_is_a_letter_where_one_types(open_page):
    lecture = open_page().open()
    lecture.page.locator("#sentence textarea").press("p")
    lecture.see_mode(False)
    lecture.page.locator("#strip button").first.press("Control+p")
    lecture.see_mode(False)


def test_own_sentences_from_paste_stay_in_browser_and_link(open_page):
    lecture = open_page().open()
    page = lecture.page
    page.get_by_text("Your sentences").click()
    lecture.own.fill(f"  {OWN[0]}\n\n{OWN[1]}  \n")
    expect(page.locator("#fm-own-said")).to_have_text(re.compile(r"^2 sentences\."))
    assert lecture.parameter("list") == "\n".join(OWN)
    lecture.own.blur()
    lecture.start()
    expect(lecture.count).to_have_text("– / 2")
    page.keyboard.press("ArrowRight")
    lecture.see(OWN[0])
    page.reload()
    lecture.see_mode(True).see(OWN[0])
    expect(lecture.count).to_have_text("1 / 2")

    # The same browser without the link, then another one with it.
    lecture.open()
    expect(lecture.own).to_have_value("\n".join(OWN))
    other = open_page()
    other.open("?" + page.url.split("?")[1] + "&present=1").see_mode(True)
    other.page.keyboard.press("ArrowRight")
    other.see(OWN[0])
    # Another's list is not taken over.
    expect(other.open().own).to_have_value("")


def test_own_sentences_from_a_file(open_page, tmp_path):
    lecture = open_page().open()
    page = lecture.page
    page.get_by_text("Your sentences").click()
    asked = []
    page.on("request", lambda request: asked.append(f"{request.url} {request.post_data}"))
    for name, encoding in (("utf8.txt", "utf-8"), ("old.txt", "windows-1252")):
        (tmp_path / name).write_bytes(f"Über [MASK] ging er.\r\n{OWN[0]}\r\n".encode(encoding))
        page.get_by_label("From a text file").set_input_files(tmp_path / name)
        expect(lecture.own).to_have_value(f"Über [MASK] ging er.\n{OWN[0]}")
        lecture.own.fill("")
    # It does not leave the browser, whatever else the page may ask for meanwhile.
    assert not [request for request in asked if "upload" in request or "ging er" in request]


def test_a_list_too_long_for_the_link_says_so(open_page):
    lecture = open_page().open()
    lecture.page.get_by_text("Your sentences").click()
    lecture.own.fill("\n".join([OWN[0]] * 100))
    said = lecture.page.locator("#fm-own-said")
    expect(said).to_have_text(re.compile(r"^100 sentences\. +Too long for the link"))
    assert lecture.parameter("list") is None
    lecture.own.fill("")
    expect(said).to_have_text("None yet: the examples are shown.")


def test_without_storage_a_list_lasts_as_long_as_the_page(open_page):
    lecture = open_page()
    lecture.page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } })"
    )
    lecture.open()
    lecture.page.get_by_text("Your sentences").click()
    lecture.own.fill(OWN[0])
    expect(lecture.page.locator("#fm-own-said")).to_contain_text("This browser keeps nothing")
    lecture.own.blur()
    lecture.start().page.keyboard.press("ArrowRight")
    lecture.see(OWN[0])


def test_answers_wait_for_space(open_page):
    lecture = open_page().open_list().start().see(SENTENCES[0])
    page = lecture.page
    answers = page.locator("#bars .fm-bar-word, #bars .fm-bar-fill, #bars .fm-bar-value, .fm-guess")
    expect(answers.locator("visible=true")).to_have_count(19)
    page.keyboard.press("h")
    expect(answers.locator("visible=true")).to_have_count(0)
    page.keyboard.press(" ")
    expect(answers.locator("visible=true")).to_have_count(19)
    page.keyboard.press("ArrowRight")
    lecture.see(SENTENCES[1])
    expect(answers.locator("visible=true")).to_have_count(0)
    # A click on a blank bar shows it and writes no word.
    page.locator("#bars .fm-bar").first.click()
    expect(answers.locator("visible=true")).to_have_count(19)
    lecture.see(SENTENCES[1])
    page.locator("#strip button", has_text="cat").click()
    lecture.see("The [MASK] sat on the [MASK].")
    expect(answers.locator("visible=true")).to_have_count(0)
    page.keyboard.press(" ")  # and does not press the word that has the focus
    expect(answers.locator("visible=true")).not_to_have_count(0)
    lecture.see("The [MASK] sat on the [MASK].")
    page.keyboard.press("Escape")
    expect(page.locator("#fm-own-hide")).to_be_checked()
    expect(answers.first).to_be_visible()


def test_full_screen_ends_with_the_mode(open_page):
    lecture = open_page().open().start()
    page = lecture.page
    page.wait_for_function("document.fullscreenElement !== null")
    page.evaluate("document.exitFullscreen()")  # as Escape does, unheard by the page
    lecture.see_mode(False)


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_bars_move_unless_the_reader_prefers_stillness(open_page, motion):
    lecture = open_page(reduced_motion=motion).open_list().start().see(SENTENCES[0])
    seconds = lecture.style("#bars .fm-bar-fill", "transitionDuration")
    help_seconds = lecture.style(".fm-present-help", "transitionDuration")
    still = motion == "reduce"
    assert (float(seconds.rstrip("s")) == 0) == still
    assert (float(help_seconds.rstrip("s")) == 0) == still


def test_the_button_presents_from_another_tab(open_page):
    lecture = open_page().open_list()
    page = lecture.page
    page.get_by_role("tab", name="Guide").click()
    page.keyboard.press("p")  # a key for what is not in sight does nothing
    lecture.see_mode(False)
    page.get_by_role("button", name="Present").click()
    lecture.see_mode(True).see(SENTENCES[0])


def test_without_a_list_the_examples_are_shown(open_page):
    lecture = open_page().open()
    examples = json.loads(lecture.page.locator(".fm-present").get_attribute("data-examples"))
    assert len(examples) > 3
    lecture.start()
    expect(lecture.count).to_have_text(f"1 / {len(examples)}")
    lecture.page.keyboard.press("ArrowRight")
    expect(lecture.count).to_have_text(f"2 / {len(examples)}")
    strip = lecture.page.locator("#strip [data-version]")
    expect(strip).to_have_attribute("data-version", version(examples[1]))
