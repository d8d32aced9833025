"""The page in a real browser: typed at, clicked on, read back."""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from explore_page import Explorer, version
from playwright.sync_api import expect

from fillmask_ui.filling import fill
from fillmask_ui.ui.explore import examples

EXAMPLES = [example.text for example in examples.EXAMPLES]
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>${alert(3)} {{value}} <b>bold</b>"


def of_mask(mask):
    keys = ("rank", "token", "token_id", "probability", "nll_nats")
    return [[candidate[key] for key in keys] for candidate in mask["candidates"]]


def command_line(text, *options):
    command = [sys.executable, "-m", "fillmask_ui", "predict", text, "--json", *options]
    done = subprocess.run(command, capture_output=True, check=True, timeout=120)
    return json.loads(done.stdout)


def test_type_mask_fill_switch_and_read_back(explorer, page):
    """Types, masks by click, fills by click, switches model and theme; numbers as on the shell."""
    explorer.open().see(EXAMPLES[0])
    page.wait_for_function("window.fillmask.loaded")
    explorer.sentence.fill("")
    expect(explorer.table).to_be_hidden()
    explorer.sentence.press_sequentially("The capital of Italy is Rome.", delay=5)
    explorer.see("The capital of Italy is Rome.")
    expect(explorer.table).to_be_hidden()

    page.get_by_role("button", name="Rome – hide it").click()
    masked = "The capital of Italy is [MASK]."
    expect(explorer.sentence).to_have_value(masked)
    explorer.see(masked)
    assert explorer.numbers() == of_mask(command_line(masked, "--top-k", "10")["masks"][0])
    expect(page.locator("#stats")).to_contain_text("Hidden word “Rome”")

    page.get_by_role("button", name="put Rome back").click()
    expect(explorer.sentence).to_have_value("The capital of Italy is Rome.")
    page.get_by_role("button", name="Rome – hide it").click()
    explorer.see(masked)

    explorer.open_details()
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name=re.compile("embedded:int8")).click()
    expect(explorer.details).to_contain_text("embedded:int8")
    small = command_line(masked, "--top-k", "10", "--model", "embedded:int8")
    expect(explorer.details).to_contain_text(small["signature"])
    assert explorer.numbers() == of_mask(small["masks"][0])

    word = explorer.rows.nth(1).get_by_role("button").inner_text()
    explorer.rows.nth(1).click()
    expect(explorer.sentence).to_have_value(f"The capital of Italy is {word}.")

    body = page.locator("body")
    expect(body).not_to_have_class(re.compile("dark"))
    page.get_by_role("button", name="dark theme").click()
    expect(body).to_have_class(re.compile("dark"))
    page.reload()
    expect(body).to_have_class(re.compile("dark"))
    expect(page.get_by_role("button", name="dark theme")).to_have_attribute("aria-pressed", "true")


def test_a_late_answer_never_overwrites_a_newer_one(explorer, page, served):
    first, second = "The first [MASK] is late.", "The second [MASK] is new."
    explorer.open(model="held", text=first)
    assert served.gates.asked.wait(30)
    expect(explorer.notice).to_contain_text("Working")
    page.evaluate(
        """() => {
            window.seen = [];
            new MutationObserver(() => window.seen.push(
                document.querySelector("#strip [data-version]")?.dataset.version))
                .observe(document.body, {
                    subtree: true, childList: true, attributeFilter: ["data-version"] });
        }"""
    )
    explorer.sentence.fill(second)
    page.wait_for_function("text => document.location.search.includes(text)", arg="second")
    served.gates.answered.set()
    explorer.see(second)
    expect(explorer.notice).to_be_hidden()
    model = served.store.get("embedded")
    assert explorer.numbers() == of_mask(fill(model, second, top_k=10).to_dict()["masks"][0])
    seen = page.evaluate("window.seen")
    assert version(first) not in seen[seen.index(version(second)) :]


def test_loading_is_shown_and_another_model_need_not_wait(explorer, page, served):
    text = "The cat sat on the [MASK]."
    explorer.open(text=text).see(text)
    explorer.open_details()
    picker = page.get_by_role("combobox", name="Model")
    picker.fill("far")
    picker.press("Enter")
    expect(explorer.notice).to_have_text("fetching <b>far</b>")
    assert page.locator("#notice progress").evaluate("bar => bar.value") == 0.25
    picker.fill("embedded:int8")
    picker.press("Enter")
    expect(explorer.details).to_contain_text("embedded:int8")
    expect(explorer.notice).to_be_hidden()
    assert not served.gates.loaded.is_set()
    served.gates.loaded.set()


def test_bad_texts_are_answered_in_words_and_stay_in_the_box(explorer, page):
    explorer.open(text=EXAMPLES[0]).see(EXAMPLES[0])
    for text, said in (
        ("   ", "Write a sentence"),
        ("", "Write a sentence"),
        ("a " * 50_000 + "[MASK]", "The text has 100,006 characters"),
        ("long " * 3_000 + "[MASK]", "The text has 3,003 tokens and this model takes at most 512"),
    ):
        page.evaluate(
            """([text]) => {
                const box = document.querySelector("#sentence textarea");
                box.value = text;
                box.dispatchEvent(new Event("input", { bubbles: true }));
            }""",
            [text],
        )
        expect(explorer.notice).to_contain_text(said)
        # What was there before is marked as no longer fitting, or gone.
        if "Write" in said:
            expect(explorer.table).to_be_hidden()
        else:
            expect(explorer.stage).to_have_class(re.compile("fm-stale"))
        kind = "fm-hint" if "hidden" in said or "Write" in said else "fm-error"
        expect(explorer.notice).to_have_class(re.compile(kind))
        same = page.evaluate(
            "([text]) => document.querySelector('#sentence textarea').value === text", [text]
        )
        assert same, "the text must stay in the box"
    for text in (
        "😀 is [MASK] 👩‍👩‍👧",
        "Say שלום to [MASK] today.",
        "a null \x00 byte [MASK]",
    ):
        explorer.sentence.fill(text)
        explorer.see(text)
        expect(explorer.notice).to_be_hidden()
    picker = page.get_by_role("combobox", name="Model")
    picker.fill("nobody/none")
    picker.press("Enter")
    expect(explorer.notice).to_contain_text("nobody/none")
    expect(explorer.sentence).to_have_value("a null \x00 byte [MASK]")


def test_text_is_never_executed(explorer, page):
    """The page fixture fails on any dialog; here nothing may have become an element either."""
    text = f"The [MASK] {EVIL}."
    explorer.open(text=text, words="<img src=x onerror=alert(2)>").see(text)
    page.get_by_role("button", name="script – hide it").first.click()
    expect(page.locator("#scored")).to_contain_text("<img src=x onerror=alert(2)>")
    expect(page.locator("#stats")).to_contain_text("Hidden word")
    for part in ("#strip", "#bars", "#stats", "#candidates", "#scored", "#joint", "#details"):
        assert page.locator(f"{part} :is(script, img, b, i)").count() == 0, part
    picker = page.get_by_role("combobox", name="Model")
    picker.fill(EVIL)
    picker.press("Enter")
    expect(explorer.notice).to_contain_text("<script>alert(1)</script>")
    assert page.locator("#notice :is(script, img, b)").count() == 0


def test_a_link_reproduces_the_view(explorer, page, browser, served):
    text = "Water is [MASK] than ice."
    explorer.open().see(EXAMPLES[0])
    assert urlsplit(page.url).query == ""
    explorer.sentence.fill(text)
    page.get_by_label("Candidate words").fill("warmer, souvenir")
    page.get_by_label("number input for Top-k").fill("3")
    page.get_by_label("number input for Top-k").press("Enter")
    page.get_by_role("radio", name="bits").check()
    expect(explorer.rows).to_have_count(3)
    expect(page.locator("#scored tbody tr")).to_have_count(2)
    page.wait_for_function("() => document.location.search.includes('bits')")
    assert parse_qs(urlsplit(page.url).query) == {
        "text": [text],
        "model": ["embedded"],
        "k": ["3"],
        "words": ["warmer, souvenir"],
        "unit": ["bits"],
    }
    expect(explorer.table).to_contain_text("NLL (bits)")
    link, numbers = page.url, explorer.numbers()
    other = browser.new_context().new_page()
    again = Explorer(other, served)
    other.goto(link)
    again.see(text)
    expect(again.table).to_contain_text("NLL (bits)")
    assert again.numbers() == numbers
    expect(other.get_by_role("radio", name="bits")).to_be_checked()
    expect(other.get_by_label("Candidate words")).to_have_value("warmer, souvenir")
    other.get_by_role("tab", name="Guide").click()
    other.wait_for_function("() => document.location.search.includes('tab=guide')")
    other.reload()
    expect(other.get_by_role("heading", name="Explore: one sentence")).to_be_visible()
    other.context.close()


def test_a_link_inside_the_page_opens_its_tab_with_its_state(explorer, page):
    explorer.open(tab="guide", unit="bits")
    page.wait_for_function("window.fillmask?.loaded")
    expect(page.get_by_role("heading", name="Explore: one sentence")).to_be_visible()
    for text in ("A link to [MASK].", "Another [MASK]."):
        page.get_by_role("tab", name="Guide").click()
        link = urlencode({"tab": "explore", "text": text, "words": "home"})
        page.evaluate("link => window.fillmask.follow(link)", link)
        explorer.see(text)
        expect(explorer.sentence).to_have_value(text)
        expect(page.get_by_label("Candidate words")).to_have_value("home")
        tab = page.get_by_role("tab", name="Explore")
        expect(tab).to_have_attribute("aria-selected", "true")
    # What the link does not name stays.
    expect(page.get_by_role("radio", name="bits")).to_be_checked()


def test_what_is_shown_can_be_saved(explorer, page, served):
    text = "The [MASK] sat on the [MASK]."
    explorer.open(text=text, words="cat").see(text)
    expected = fill(served.store.get("embedded"), text, top_k=10, candidates=["cat"])

    def saved(name):
        with page.expect_download() as download:
            page.get_by_role("button", name=name, exact=True).click()
        return download.value.suggested_filename, Path(download.value.path()).read_text("utf-8")

    name, content = saved("JSON")
    assert name == "fillmask.json"
    assert json.loads(content) == json.loads(expected.to_json())
    name, content = saved("CSV")
    rows = list(csv.DictReader(io.StringIO(content)))
    assert name == "fillmask.csv"
    assert [float(row["nll_nats"]) for row in rows] == [
        c.nll_nats for mask in expected.masks for c in mask.candidates
    ]
    name, content = saved("CSV, all tokens")
    rows = list(csv.DictReader(io.StringIO(content)))
    assert len(rows) == 2 * expected.signature.vocabulary_size
    assert sum(float(row["probability"]) for row in rows) == pytest.approx(2)
    # Of many masks that file would be too large.
    text = "[MASK] " * 17
    explorer.sentence.fill(text)
    explorer.see(text)
    page.get_by_role("button", name="CSV, all tokens", exact=True).click()
    expect(explorer.notice).to_contain_text("at most 16")


def test_several_masks_each_have_their_list_and_are_filled_together(explorer, page, served):
    text = "A [MASK] treats patients and a [MASK] teaches children."
    explorer.open(text=text).see(text)
    expected = fill(served.store.get("embedded"), text, top_k=10)
    masks = expected.to_dict()["masks"]
    assert explorer.numbers() == of_mask(masks[0])
    page.get_by_role("button", name="mask 2 – show its candidates").click()
    expect(explorer.rows.first).to_have_attribute("data-key", re.compile(":1:"))
    assert explorer.numbers() == of_mask(masks[1])
    choices = page.get_by_role("group", name="Mask shown").get_by_role("button")
    expect(choices.nth(1)).to_have_attribute("aria-pressed", "true")
    choices.nth(0).click()
    expect(explorer.rows.first).to_have_attribute("data-key", re.compile(":0:"))
    joint = page.locator("#joint tbody tr")
    expect(joint).to_have_count(len(expected.joint))
    expect(joint.first).to_contain_text(f"{expected.joint[0].nll_nats:.3f}")
    joint.first.click()
    expect(explorer.table).to_be_hidden()
    assert "[MASK]" not in explorer.sentence.input_value()


def test_a_click_on_a_bar_fills_its_word_in(explorer, page):
    text = "The opposite of hot is [MASK]."
    explorer.open(text=text).see(text)
    word = explorer.rows.nth(2).get_by_role("button").inner_text()
    explorer.bars.nth(2).get_by_role("button").click()
    expect(explorer.sentence).to_have_value(f"The opposite of hot is {word}.")
    expect(page.locator("#bars .fm-bars")).to_be_hidden()


def test_all_of_it_works_from_the_keyboard(explorer, page):
    text = "The cat sat on the mat."
    explorer.open(text=text).see(text)
    page.get_by_role("button", name="The – hide it", exact=True).focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    masked = "The [MASK] sat on the mat."
    expect(explorer.sentence).to_have_value(masked)
    explorer.see(masked)
    expect(page.get_by_role("button", name="put cat back")).to_be_focused()
    page.keyboard.press("Enter")
    expect(explorer.sentence).to_have_value(text)
    explorer.see(text)
    expect(page.get_by_role("button", name="cat – hide it")).to_be_focused()
    page.keyboard.press("Enter")
    explorer.see(masked)
    button = explorer.rows.first.get_by_role("button")
    word = button.inner_text()
    button.focus()
    page.keyboard.press("Enter")
    expect(explorer.sentence).to_have_value(f"The {word} sat on the mat.")
    expect(page.get_by_role("button", name=f"{word} – hide it", exact=True)).to_be_focused()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_narrow_screen_shows_everything_in_readable_colours(explorer, page, theme):
    text = "The [MASK] of Walden Pond is so beautifully [MASK]."
    page.set_viewport_size({"width": 390, "height": 844})
    explorer.open(text=text, words="unbelievable", __theme=theme).see(text)
    expect(explorer.bars.first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for part in (
        explorer.sentence,
        explorer.strip,
        page.locator(".fm-table-wrap").first,
        page.locator("#bars"),
    ):
        box = part.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 391
    ink = page.evaluate("getComputedStyle(document.querySelector('h1')).color")
    for label in (".fm-bar-word", ".fm-bar-value"):
        colour = page.locator(label).first.evaluate("text => getComputedStyle(text).color")
        assert colour == ink, label
    bright = sum(map(int, re.findall(r"\d+", ink)[:3])) > 3 * 128
    assert bright == (theme == "dark")


def test_visitors_share_the_model_but_not_the_text(explorer, browser, served):
    explorer.open(text="My secret is [MASK].").see("My secret is [MASK].")
    other = Explorer(browser.new_context().new_page(), served)
    other.open().see(EXAMPLES[0])
    other.page.context.close()
    held = [stored.reference for stored in served.store._models]
    assert held.count("embedded") == 1
