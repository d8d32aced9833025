"""The Explore tab from beginning to end: typed at, clicked on, linked, saved, gone wrong."""

import csv
import io
import json
import math
import re
from pathlib import Path

import pytest
from accessibility import accessible
from explore_page import EXPLANATIONS
from journey import Explore
from playwright.sync_api import expect

from fillmask_ui.filling import fill
from fillmask_ui.show.render import inserts
from fillmask_ui.ui.explore.examples import EXAMPLE_SETS, EXAMPLES
from fillmask_ui.ui.explore.sentence_strip import version_of

MAT = "The cat sat on the mat."
TWO = "The [MASK] sat on the [MASK]."
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>${alert(3)} {{value}} <b>bold</b>"
BACK_TO_CAT = re.compile(r"\bcat\b.* put the hidden word back")


def of_mask(mask):
    keys = ("rank", "token", "token_id", "probability", "nll_nats")
    return [[candidate[key] for key in keys] for candidate in mask["candidates"]]


def numbers(served, text, model="embedded", mask=0):
    return of_mask(fill(served.store.get(model), text, top_k=10).to_dict()["masks"][mask])


def test_a_visitor_hides_a_word_switches_the_model_and_takes_steps_back(visit, served):
    explore = Explore(page := visit(height=800)).see(EXAMPLES[0].text)
    assert explore.address() == {}
    # What can be clicked and the answer are on the first screen.
    expect(page.locator(".fm-question")).to_have_text(EXAMPLES[0].question)
    picker = page.get_by_role("combobox", name="Model")
    for part in (explore.sentence, picker, explore.strip, page.get_by_text("all other words")):
        expect(part.first).to_be_in_viewport(ratio=1)
    expect(explore.bars).to_contain_text("embedded predicts")
    expect(explore.bars).to_contain_text("The model predicts tea")
    explore.sentence.fill("")
    expect(explore.table).to_be_hidden()
    explore.sentence.press_sequentially("The capital of Italy is Rome.", delay=5)
    explore.see("The capital of Italy is Rome.")
    expect(explore.table).to_be_hidden()

    explore.word("Rome").click()
    masked = "The capital of Italy is [MASK]."
    expect(explore.sentence).to_have_value(masked)
    explore.see(masked)
    assert explore.numbers() == numbers(served, masked)
    expect(explore.stats).to_contain_text("Hidden word “Rome”")
    explore.unfold("Details")
    picker.click()
    page.get_by_role("option", name=re.compile("embedded:int8")).click()
    expect(explore.details).to_contain_text(str(served.store.get("embedded:int8").signature))
    assert explore.numbers() == numbers(served, masked, "embedded:int8")
    page.get_by_text("Model card and graph").click()
    expect(page.locator("#about-model")).to_contain_text("MatMulInteger")
    page.get_by_text("Model card", exact=True).click()
    expect(page.locator(".fm-card-text")).to_contain_text("The embedded model of fillmask-ui")

    # A bar and a row write their word; each step can be taken back.
    word = explore.rows.nth(2).get_by_role("button").inner_text()
    explore.bar.nth(2).get_by_role("button").click()
    expect(explore.sentence).to_have_value(masked.replace("[MASK]", word))
    page.keyboard.press("Control+z")
    explore.see(masked)
    page.go_back()
    expect(explore.sentence).to_have_value("The capital of Italy is Rome.")
    page.go_forward()
    explore.see(masked)
    word = explore.rows.nth(1).get_by_role("button").inner_text()
    explore.rows.nth(1).click()
    expect(explore.sentence).to_have_value(masked.replace("[MASK]", word))
    # What was typed since is undone by the text box itself.
    explore.sentence.press("End")
    explore.sentence.press_sequentially(" Yes")
    explore.sentence.press("Control+z")
    expect(explore.sentence).not_to_have_value(re.compile("Yes|MASK"))

    body = page.locator("body")
    expect(body).not_to_have_class(re.compile("dark"))
    # The theme that was chosen here wins over that of the address.
    explore.open(__theme="light", text=MAT).see(MAT)
    explore.press("dark theme")
    page.reload()
    explore.ready().see(MAT)
    expect(body).to_have_class(re.compile("dark"))
    expect(page.get_by_role("button", name="light theme")).to_be_visible()
    accessible(page)
    # The page is sent with the answer to what it opens with.
    assert version_of(EXAMPLES[0].text) in page.request.get(served.url).text()


def test_two_masks_are_looked_at_filled_together_linked_and_saved(visit, served):
    explore = Explore(page := visit({"text": MAT, "words": "lion, [MASK], souvenir"})).see(MAT)
    # Two quick clicks both count.
    explore.word("mat").click(trial=True)  # waits until it stands still
    first, second = (explore.word(name).bounding_box() for name in ("cat", "mat"))
    for box in (first, second):
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    explore.see(TWO)
    assert explore.state("state.hidden") == ["cat", "mat"]
    expect(explore.notice).to_contain_text("'[MASK]' is itself a mask")
    explore.press("mask 1 – show its candidates")
    expect(explore.rows.first).to_have_attribute("data-key", re.compile(":0:"))
    expect(explore.bars.locator(".fm-hidden")).to_contain_text("cat")
    expect(explore.bars.locator(".fm-asked")).to_have_count(2)
    expect(explore.bars).to_contain_text("all other words")
    width = "row => row.querySelector('.fm-row-fill').style.getPropertyValue('--p')"
    for row in explore.bar.all():
        probability = float(row.get_attribute("data-value"))
        assert float(row.evaluate(width)) == pytest.approx(probability, abs=1e-5)
    assert explore.numbers() == numbers(served, TWO)
    explore.press("mask 2 – show its candidates")
    expect(explore.rows.first).to_have_attribute("data-key", re.compile(":1:"))
    assert explore.numbers() == numbers(served, TWO, mask=1)
    explore.unfold("Options")
    page.get_by_label("Candidate words").fill("lion, souvenir")
    expect(explore.scored).to_have_count(3)
    page.get_by_role("radio", name="10%", exact=True).check()
    expect(explore.bars).to_contain_text("Magnified: the axis ends at 10%")
    page.get_by_label("Top-k").fill("3")
    page.get_by_role("radio", name="bits").check()
    expect(explore.rows).to_have_count(3)
    expect(explore.table).to_contain_text("NLL (bits)")

    explore.unfold("Details")

    def saved(name):
        with page.expect_download() as download:
            explore.press(name, exact=True)
        return download.value.suggested_filename, Path(download.value.path()).read_text("utf-8")

    expected = fill(served.store.get("embedded"), TWO, top_k=3, candidates=["lion", "souvenir"])
    name, content = saved("JSON")
    assert (name, json.loads(content)) == ("fillmask.json", json.loads(expected.to_json()))
    name, content = saved("CSV")
    losses = [float(row["nll_nats"]) for row in csv.DictReader(io.StringIO(content))]
    assert name == "fillmask.csv"
    assert losses == [c.nll_nats for mask in expected.masks for c in mask.candidates]
    rows = list(csv.DictReader(io.StringIO(saved("CSV, all tokens")[1])))
    assert len(rows) == 2 * expected.signature.vocabulary_size

    explore.address_says("zoom")
    explore.address_says("bits")
    address = explore.address()
    assert json.loads(address["hidden"]) == ["cat", "mat"]
    assert (address["mask"], address["zoom"], address["k"]) == ("2", "10", "3")
    again = Explore(second_page := visit(address)).see(TWO)
    again.unfold("Options")
    expect(again.table).to_contain_text("NLL (bits)")
    expect(again.stats).to_contain_text("mat")
    expect(again.bars).to_contain_text("Magnified")
    assert again.numbers() == explore.numbers()
    expect(second_page.get_by_label("Candidate words")).to_have_value("lion, souvenir")
    # A link inside the page opens its tab, and what it does not name stays.
    again.tab("Guide")
    again.address_says("tab=guide")
    second_page.evaluate("window.fillmask.follow('tab=explore&text=A+link+to+[MASK].&words=home')")
    again.see("A link to [MASK].")
    expect(second_page.get_by_label("Candidate words")).to_have_value("home")
    expect(second_page.get_by_role("radio", name="bits")).to_be_checked()

    explore.press(BACK_TO_CAT)
    explore.see("The cat sat on the [MASK].")
    page.go_back()
    explore.see(TWO)
    expect(explore.joint).to_have_count(len(expected.joint))
    explore.joint.first.click()
    expect(explore.table).to_be_hidden()
    assert "[MASK]" not in explore.sentence.input_value()
    # Of many masks the file of all tokens would be too large.
    explore.write("[MASK] " * 17)
    explore.press("CSV, all tokens", exact=True)
    expect(explore.notice).to_contain_text("at most 16")
    accessible(page)


def test_bad_input_is_answered_in_words_and_text_is_never_executed(visit):
    """`visit` fails on any dialog; here nothing may have become an element either."""
    text = f"The [MASK] {EVIL}."
    explore = Explore(page := visit({"text": text, "words": "<img src=x onerror=alert(2)>"}))
    explore.see(text)
    explore.word("script").first.click()
    expect(explore.scored.first).to_contain_text("<img src=x onerror=alert(2)>")
    assert page.locator("#stage :is(script, img), #strip b").count() == 0
    explore.pick("Model", EVIL)
    expect(explore.notice).to_contain_text("<script>alert(1)</script>")
    assert page.locator("#notice :is(script, img, b)").count() == 0
    explore.open(text=EXAMPLES[0].text).see(EXAMPLES[0].text)
    for text, message in (
        ("   ", "Write a sentence"),
        ("a " * 50_000 + "[MASK]", "The text has 100,006 characters"),
        ("long " * 3_000 + "[MASK]", "The text has 3,003 tokens and this model takes at most 512"),
        ("東京は日本の[MASK]です。", "knows no word of this sentence"),
    ):
        explore.sentence.fill(text)
        expect(explore.notice).to_contain_text(message)
        expect(explore.sentence).to_have_value(text)
    # An error leaves the last answer and marks it.
    explore.write("Water is [MASK].")
    explore.pick("Model", "nobody/none")
    expect(explore.notice).to_contain_text("nobody/none")
    expect(explore.notice).to_be_in_viewport()
    expect(explore.rows).to_have_count(10)
    expect(explore.stage).to_have_class(re.compile("fm-stale"))
    expect(explore.sentence).to_have_value("Water is [MASK].")
    accessible(page)


def test_slow_models_and_quick_typists(visit, served):
    first, second = "The first [MASK] is late.", "The second [MASK] is new."
    explore = Explore(page := visit({"model": "held", "text": first}, color_scheme="dark"))
    assert served.gates.asked.wait(300)
    expect(explore.notice).to_contain_text("Working")
    page.evaluate(
        """() => {
            window.seen = [];
            new MutationObserver(() => window.seen.push(
                document.querySelector("#strip [data-version]")?.dataset.version))
                .observe(document.body, {
                    subtree: true, childList: true, attributeFilter: ["data-version"] });
        }"""
    )
    explore.sentence.fill(second)
    explore.address_says("second")
    served.gates.answered.set()
    explore.see(second)
    expect(explore.notice).to_be_hidden()
    assert explore.numbers() == numbers(served, second)
    seen = page.evaluate("window.seen")
    assert version_of(first) not in seen[seen.index(version_of(second)) :]

    # Loading is shown, and another model need not wait for it.
    explore.pick("Model", "far")
    expect(explore.notice).to_have_text("fetching <b>far</b>")
    expect(page.get_by_role("progressbar")).to_have_js_property("value", 0.25)
    explore.pick("Model", "embedded")
    expect(explore.notice).to_be_hidden()
    assert not served.gates.loaded.is_set()
    served.gates.loaded.set()

    # Answers come while keys go on; each belongs to what was typed by then.
    page.evaluate(
        """() => {
            window.answered = [];
            document.addEventListener("fillmask:answer", ({ detail }) =>
                window.answered.push(detail.base));
        }"""
    )
    explore.sentence.fill("")
    typed = "The cat sat on [MASK] mat"
    explore.sentence.press_sequentially(typed, delay=220)
    explore.see(typed)
    answered = page.evaluate("window.answered")
    answered = answered[next(i for i, base in enumerate(answered) if base != second) :]
    assert len(answered) >= 4
    assert all(typed.startswith(base) for base in answered)
    expect(explore.stage).not_to_have_class(re.compile("fm-stale"))
    # Visitors share the models and nothing else.
    Explore(visit()).see(EXAMPLES[0].text)
    assert [stored.reference for stored in served.store._models].count("embedded") == 1
    accessible(page)


def test_a_narrow_dark_screen_by_keyboard(visit):
    text = "The [MASK] of Walden Pond is so beautifully [MASK]."
    state = {"text": text, "words": "unbelievable"}
    explore = Explore(page := visit(state, width=390, height=844, color_scheme="dark")).see(text)
    expect(explore.bar.first).to_be_visible()
    explore.fits(390)
    for part in (explore.sentence, explore.strip, explore.bars):
        box = part.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 391
    ink = page.evaluate("getComputedStyle(document.querySelector('h1')).color")
    assert sum(map(int, re.findall(r"\d+", ink)[:3])) > 3 * 128

    explore.write(MAT)
    explore.sentence.focus()
    for _ in range(14):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('#strip') !== null"):
            break
    else:
        pytest.fail("14 tabs from the sentence did not reach the strip")
    explore.word("The").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    masked = "The [MASK] sat on the mat."
    explore.see(masked)
    expect(page.get_by_role("button", name=BACK_TO_CAT)).to_be_focused()
    page.keyboard.press("Enter")
    explore.see(MAT)
    expect(explore.word("cat")).to_be_focused()
    page.keyboard.press("Enter")
    explore.see(masked)
    expect(page.get_by_role("button", name=BACK_TO_CAT)).to_be_focused()
    explore.unfold("Details")
    button = explore.rows.first.get_by_role("button")
    word = button.inner_text()
    button.press("Enter")
    expect(explore.sentence).to_have_value(f"The {word} sat on the mat.")
    expect(explore.word(word)).to_be_focused()
    accessible(page)


def test_the_curve_stands_at_minus_ln_p_and_figures_explain_themselves(visit):
    text = "The cat sat on the [MASK]."
    page = visit({"text": text, "hidden": '["mat"]'}, reduced_motion="reduce")
    explore = Explore(page).see(text)
    explore.unfold("Options")
    explore.unfold("Details")
    chosen = explore.curve.locator(".fm-loss-chosen")

    def dots():
        """Mask -> share of the frame from its left side, and height on the axis."""
        expect(chosen).to_be_visible()
        positions = page.evaluate(
            """() => {
                const frame = document.querySelector(".fm-loss-frame").getBoundingClientRect();
                const top = document.querySelector(".fm-loss-ticks").lastChild.textContent;
                return [...document.querySelectorAll(".fm-loss-dot")].map((dot) => {
                    const box = dot.querySelector("circle").getBoundingClientRect();
                    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
                    const up = (frame.bottom - y) / frame.height;
                    return [dot.dataset.mask, (x - frame.left) / frame.width, up * Number(top)];
                });
            }"""
        )
        return {int(mask): (x, y) for mask, x, y in positions}

    def losses():
        points = page.evaluate("async () => (await fillmask.explore.call('losses')).points")
        return {point["mask"]: point["nll_nats"] for point in points}

    def hide(words, **state):
        explore.state(f"change({json.dumps({'base': state['text'], 'hidden': words, **state})})")
        explore.see(state["text"])

    for unit, size in (("nats", 1), ("bits", math.log(2))):
        page.get_by_role("radio", name=unit).check()
        loss = losses()[0]
        expect(explore.curve).to_contain_text(f"= {loss / size:.3f} {unit}")
        x, y = dots()[0]
        assert x == pytest.approx(math.exp(-loss), abs=0.004)
        assert y == pytest.approx(loss / size, abs=0.05)
    page.get_by_role("radio", name="nats").check()
    expect(explore.curve).to_contain_text("nats")
    hide(["cat", "mat"], text=TWO, selected=1)
    expect(explore.curve).to_contain_text("The hidden word “mat”")
    expect(chosen).to_have_attribute("data-mask", "1")
    expected = losses()
    for mask, (x, _) in dots().items():
        assert x == pytest.approx(math.exp(-expected[mask]), abs=0.004)
    hide([None], text="The mat is [MASK].")
    best = explore.state("answer.mask.candidates[0]")
    expect(explore.curve).to_contain_text(f"The top word, “{best['word']}”")
    assert dots()[0][0] == pytest.approx(best["probability"], abs=0.004)
    accessible(page, within="#stage")
    explore.write("The cat sat.")
    expect(explore.curve).to_be_hidden()

    # Names of figures explain themselves on hover, on focus, on touch and to screen readers.
    explore.write(TWO)
    expect(explore.curve).to_be_visible()  # what stands below it has moved
    tip, name = page.locator("#fm-tip"), page.get_by_role("button", name="Entropy").first
    name.hover()
    expect(tip).to_have_text(EXPLANATIONS["entropy"])
    expect(name).to_have_accessible_description(EXPLANATIONS["entropy"])
    tip.hover()  # the line itself can be pointed at
    expect(tip).to_be_visible()
    page.mouse.move(2, 2)
    expect(tip).to_be_hidden()
    name.focus()
    expect(tip).to_be_visible()
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page = visit({"text": TWO}, width=390, height=844, has_touch=True, is_mobile=True)
    Explore(page).unfold("Details")
    page.locator("#candidates .fm-explain", has_text="Cumulative").tap()
    box = page.locator("#fm-tip").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390


def test_the_examples_and_the_guide(visit, served):
    explore = Explore(page := visit(height=800)).see(EXAMPLES[0].text)
    question = page.locator(".fm-question")
    explore.unfold("All 33 examples")
    page.get_by_role("tab", name="Start").press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Grammar")).to_be_focused()
    example = next(group for group in EXAMPLE_SETS if group.name == "Grammar").examples[0]
    chip = page.locator("#all-examples").get_by_role("button", name=example.name)
    chip.click()
    explore.see(example.text)
    expect(question).to_have_text(example.question)
    expect(chip).to_have_attribute("aria-pressed", "true")
    state = explore.state("state")
    assert {name: state[name] for name in example.state()} == example.state()
    # The question stays while the class works on the sentence, and goes with it.
    explore.word("table").click()
    explore.see(example.text.replace("table", "[MASK]"))
    expect(question).to_have_text(example.question)
    explore.write("Something [MASK] else.")
    expect(question).to_have_text("")
    page.go_back()
    expect(question).not_to_have_text("")
    accessible(page)
    box = page.get_by_role("region", name="Example sentences")
    page.set_viewport_size({"width": 390, "height": 844})
    for group in EXAMPLE_SETS:
        page.get_by_role("tab", name=group.name, exact=True).click()
        chips = box.get_by_role("tabpanel").get_by_role("button")
        expect(chips).to_have_count(len(group.examples))
        chips.last.click()
        expect(question).to_have_text(group.examples[-1].question)
        explore.see(group.examples[-1].text)  # an answer of another height moves the chips
        explore.fits(390)

    explore.tab("Guide")
    guide = page.get_by_role("tabpanel").filter(has=page.get_by_role("heading", name="Keys"))
    expect(guide).to_contain_text(f'Client("{served.url}")')
    headings = guide.get_by_role("heading", level=2).all_inner_texts()
    core = ["Explore: one sentence", "The numbers", "Keys", "Evaluate: many texts"]
    assert headings[: len(core)] == core
    assert headings[-1] == "From a program"
    sections_of_features = inserts("guide")
    assert len(headings) == len(core) + len(sections_of_features) + 1
    explore.fits(390)
    accessible(page)
