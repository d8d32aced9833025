"""What is typed, clicked, linked and undone in the Explore tab, in a real browser."""

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

TEXT = "The cat sat on the mat."


def word(page, name):
    return page.get_by_role("button", name=f"{name} – hide it", exact=True)


@pytest.mark.parametrize("milliseconds", [140, 220])
def test_answers_come_while_keys_go_on(explorer, page, milliseconds):
    """Each answer belongs to what was typed by then; an old one is marked as that."""
    explorer.open(text="Water is [MASK].").see("Water is [MASK].")
    page.evaluate(
        """() => {
            window.answered = [];
            document.addEventListener("fillmask:answer", ({ detail }) =>
                window.answered.push([detail.base, document.querySelector("textarea").value]));
            window.marked = 0;
            document.addEventListener("fillmask:stale", () => {
                window.marked += document.querySelector("#stage").classList.contains("fm-stale");
            });
        }"""
    )
    explorer.sentence.fill("")
    typed = "The cat sat on [MASK] mat"
    explorer.sentence.press_sequentially(typed, delay=milliseconds)
    seen = page.evaluate("window.answered")
    while seen[0][0] == "Water is [MASK].":  # asked before the first key
        seen.pop(0)
    seconds = len(typed) * milliseconds / 1000
    assert len(seen) >= 2 * seconds
    assert all(typed.startswith(base) for base, _ in seen)
    assert page.evaluate("window.marked") >= len(typed)
    explorer.see(typed)
    expect(explorer.stage).not_to_have_class(re.compile("fm-stale"))
    expect(explorer.stage).to_have_attribute("aria-busy", "false")


def test_two_quick_clicks_both_count(explorer, page):
    explorer.open(text=TEXT).see(TEXT)
    expect(word(page, "cat")).to_be_visible()
    first, second = (word(page, name).bounding_box() for name in ("cat", "mat"))
    for box in (first, second):
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(explorer.sentence).to_have_value("The [MASK] sat on the [MASK].")
    explorer.see("The [MASK] sat on the [MASK].")
    assert page.evaluate("window.fillmask.explore.state.hidden") == ["cat", "mat"]


def test_back_and_control_z_undo_a_click(explorer, page):
    explorer.open(text=TEXT).see(TEXT)
    word(page, "cat").click()
    explorer.see("The [MASK] sat on the mat.")
    word(page, "mat").click()
    explorer.see("The [MASK] sat on the [MASK].")
    page.keyboard.press("Control+z")
    expect(explorer.sentence).to_have_value("The [MASK] sat on the mat.")
    explorer.see("The [MASK] sat on the mat.")
    page.go_back()
    expect(explorer.sentence).to_have_value(TEXT)
    page.go_forward()
    expect(explorer.sentence).to_have_value("The [MASK] sat on the mat.")
    explorer.see("The [MASK] sat on the mat.")
    page.get_by_role("button", name="put cat back").click()
    expect(explorer.sentence).to_have_value(TEXT)
    # What was typed since is undone by the text box itself.
    explorer.sentence.press("End")
    explorer.sentence.press_sequentially(" Yes")
    expect(explorer.sentence).to_have_value(f"{TEXT} Yes")
    explorer.sentence.press("Control+z")
    expect(explorer.sentence).not_to_have_value(f"{TEXT} Yes")
    assert "[MASK]" not in explorer.sentence.input_value()


def test_a_link_keeps_hidden_words_and_the_chosen_mask(explorer, page, browser, served):
    explorer.open(text=TEXT, words="dog, souvenir").see(TEXT)
    word(page, "cat").click()
    explorer.see("The [MASK] sat on the mat.")
    word(page, "mat").click()
    text = "The [MASK] sat on the [MASK]."
    explorer.see(text)
    ends = page.get_by_role("group", name="End of the axis")
    ends.get_by_role("button", name="10%", exact=True).click()
    expect(page.locator("#bars")).to_contain_text("Magnified: the axis ends at 10%")
    page.wait_for_function("() => document.location.search.includes('zoom')")
    query = parse_qs(urlsplit(page.url).query)
    assert json.loads(query["hidden"][0]) == ["cat", "mat"]
    assert (query["mask"], query["zoom"], query["words"]) == (["2"], ["10"], ["dog, souvenir"])
    other = browser.new_context().new_page()
    again = type(explorer)(other, served)
    other.goto(page.url)
    again.see(text)
    expect(other.locator("#stats")).to_contain_text("mat")
    expect(other.locator("#bars")).to_contain_text("Magnified")
    assert again.numbers() == explorer.numbers()
    other.get_by_role("button", name="put cat back").click()
    expect(again.sentence).to_have_value("The cat sat on the [MASK].")
    other.context.close()


def test_the_theme_button_wins_over_the_address(explorer, page):
    explorer.open(text=TEXT, __theme="light").see(TEXT)
    page.get_by_role("button", name="dark theme").click()
    expect(page.locator("body")).to_have_class(re.compile("dark"))
    page.reload()
    expect(page.locator("body")).to_have_class(re.compile("dark"))


def test_the_hidden_word_and_candidates_have_bars_and_can_be_clicked(explorer, page):
    text = "The [MASK] sat on the mat."
    explorer.open(text=TEXT, words="lion, [MASK], souvenir").see(TEXT)
    word(page, "cat").click()
    explorer.see(text)
    expect(explorer.notice).to_contain_text("'[MASK]' is itself a mask")
    bars = page.locator("#bars")
    expect(bars.locator(".fm-hidden")).to_contain_text("cat")
    expect(bars.locator(".fm-asked")).to_have_count(2)
    expect(bars.locator(".fm-rest")).to_contain_text("all other words")
    width = "row => row.querySelector('.fm-bar-fill').style.getPropertyValue('--p')"
    for row in bars.locator(".fm-bar-row").all():
        probability = float(row.get_attribute("data-value"))
        assert float(row.evaluate(width)) == pytest.approx(probability, abs=1e-5)
    assert bars.locator(".fm-ticks").inner_text().split() == ["0%", "25%", "50%", "75%", "100%"]
    page.locator("#scored").get_by_role("button", name="lion").click()
    expect(explorer.sentence).to_have_value("The lion sat on the mat.")


def test_an_error_leaves_the_last_answer_and_marks_it(explorer, page):
    text = "Water is [MASK]."
    explorer.open(text=text).see(text)
    picker = page.get_by_role("combobox", name="Model")
    picker.fill("nobody/none")
    picker.press("Enter")
    expect(explorer.notice).to_contain_text("nobody/none")
    expect(explorer.notice).to_be_in_viewport()
    expect(explorer.rows).to_have_count(10)
    expect(explorer.stage).to_have_class(re.compile("fm-stale"))


def test_a_sentence_of_unknown_words_says_so(explorer, page):
    explorer.open(text="東京は日本の[MASK]です。")
    expect(explorer.notice).to_contain_text("knows no word of this sentence")
    expect(page.locator("#bars .fm-bar-row")).to_have_count(0)
    explorer.sentence.fill("The [MASK] is red.")
    explorer.see("The [MASK] is red.")
    expect(explorer.notice).to_be_hidden()


def test_what_can_be_clicked_and_the_answer_are_on_the_first_screen(explorer, page):
    page.set_viewport_size({"width": 1280, "height": 800})
    explorer.open()
    for part in (
        explorer.sentence,
        page.get_by_role("combobox", name="Model"),
        explorer.strip,
        page.locator("#strip .fm-how"),
        page.locator("#bars .fm-rest"),
        page.locator("#stats"),
    ):
        expect(part).to_be_in_viewport(ratio=1)
    expect(page.locator("#bars figcaption")).to_contain_text("embedded expects here")
    assert page.locator("button.primary").locator("visible=true").count() == 0


def test_the_strip_comes_soon_for_those_who_move_by_tab(explorer, page):
    explorer.open().see(explorer.sentence.input_value())
    explorer.sentence.focus()
    for _ in range(14):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('#strip') !== null"):
            return
    pytest.fail("14 tabs from the sentence did not reach the strip")
