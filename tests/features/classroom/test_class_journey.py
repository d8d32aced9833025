"""A class before its wall: one wall and three phones, one of which loses its network in between."""

import json
import math
import re

import pytest
from accessibility import accessible
from chromium import faults_of
from playwright.sync_api import expect

PLAYED = (
    ("The opposite of hot is [MASK].", "cold"),
    ("I drink a cup of [MASK] every morning.", "tea"),
    ("The bird built its nest in a [MASK].", "tree"),
)
OWN = "\n".join(text.replace("[MASK]", f"[{truth}]") for text, truth in PLAYED)
# Bytes of all that the page has loaded, as they are without compression.
LOADED = """["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind))
    .reduce((sum, own) => sum + own.decodedBodySize, 0)"""
# axe is told of the theme as on the page of the wall.
THEME = """window.fillmask = { dark: () => matchMedia("(prefers-color-scheme: dark)").matches,
    set_theme: () => {} }"""


class Phone:
    def __init__(self, browser, url):
        self.context = browser.new_context(viewport={"width": 390, "height": 844}, is_mobile=True)
        self.faults = faults_of(self.context)
        self.page = self.context.new_page()
        self.page.goto(url)
        self.said = self.page.locator("#said")
        self.word = self.page.get_by_label("Word", exact=True).first
        self.sure = self.page.get_by_label("How certain").first

    def sees(self, text):
        expect(self.page.locator("#sentence")).to_contain_text(text)
        return self

    def say(self, word, sure):
        self.word.fill(word)
        self.sure.fill(str(sure))
        self.page.get_by_role("button", name="Send").click()
        return self


class Wall:
    def __init__(self, page):
        self.page = page
        self.said = page.locator("#fm-class-said")
        self.main = page.locator("#fm-class-main")
        self.side = page.locator("#fm-class-side")
        self.sentence = page.locator(".fm-class-sentence")
        self.step = page.locator("[data-class=step]")

    def press(self, key, then=None):
        self.page.keyboard.press(key)
        if then:
            expect(self.said).to_contain_text(then)


def before(text):
    return text.partition(" [MASK]")[0]


@pytest.fixture
def phones(browser):
    made = []
    yield lambda url: made.append(Phone(browser, url)) or made[-1]
    for own in made:
        own.context.close()


def test_three_rounds_with_a_phone_that_loses_its_network(visit, phones, served, tmp_path):
    wall = Wall(page := visit({"present": "1", "list": OWN}, ready="#stage"))
    expect(page.locator(".fm-present-count")).to_have_text("2 / 3")
    page.keyboard.press("ArrowLeft")  # the page opens at the second of them
    expect(page.locator("#strip")).to_contain_text("opposite")
    expect(page.locator(".fm-mask-word").first).to_contain_text("cold")  # what brackets hide
    page.keyboard.press("c")
    expect(wall.page.get_by_role("img", name="QR code")).to_be_hidden()  # nobody could come by it
    address = page.locator(".fm-class-address")
    expect(address).to_contain_text("/class/")
    expect(page.locator("#fm-class-join")).to_contain_text("listens on this machine only")
    expect(page.locator(".fm-class-at")).to_be_hidden()  # one address on the wall
    accessible(page, within="#fm-present-class")
    three = [phones(f"http://{address.inner_text()}") for _ in range(3)]
    for own in three:
        expect(own.said).to_contain_text("You have joined")
        assert 1_000 < own.page.evaluate(LOADED) < 30_000
    expect(wall.said).to_contain_text("3 joined")

    # One round from the question to the losses.
    wall.press("Space", "0 answered")
    for own, (word, sure) in zip(three, [("Cold", 80), ("warm", 100), (" cold ", 60)], strict=True):
        own.sees(before(PLAYED[0][0])).say(word, sure)
        expect(own.said).to_contain_text("Sent")
    expect(wall.said).to_contain_text("3 answered")
    expect(wall.main.get_by_text("cold", exact=True)).to_be_hidden()  # until h shows it
    three[0].page.add_script_tag(content=THEME)
    accessible(three[0].page)
    wall.press("h")
    expect(wall.main.get_by_text("warm", exact=True)).to_be_visible()
    three[1].say("warm", 50)
    expect(wall.main).to_contain_text("16.7%")  # of it is changed
    wall.main.get_by_role("button", name="warm").focus()
    wall.press("x")
    expect(wall.main).not_to_contain_text("warm")
    wall.press("Space", "closed with 3 answers")
    expect(three[1].said).to_contain_text("closed")
    expect(address).to_be_hidden()
    expect(page.locator(".fm-class-at")).to_be_visible()
    wall.press("Space")
    expect(wall.side).to_contain_text("The class together")
    expect(wall.sentence).to_contain_text("cold")
    size = json.loads(next(served.runs.glob("*-class/class.json")).read_text())
    vocabulary = size["model"]["vocabulary_size"]
    unplaced = (0.2 + 0.5 + 0.4) / 3
    people = -math.log(0.99 * (1.4 / 3 + unplaced / vocabulary) + 0.01 / vocabulary)
    expect(wall.side).to_contain_text(f"{people:.3f} nats")
    expect(three[0].said).to_contain_text(f"Class: {people:.2f}")
    own = -math.log(0.99 * (0.8 + 0.2 / vocabulary) + 0.01 / vocabulary)
    expect(three[0].said).to_contain_text(f"Your loss was {own:.2f} nats")
    accessible(page, within="#fm-present-class")
    accessible(three[0].page)
    curve = page.locator("#fm-class-loss svg")  # all losses stand on it
    expect(curve).to_have_attribute("aria-label", re.compile("class .*model|model .*class"))
    expect(curve.locator("circle")).to_have_count(3)
    wall.press("l")
    expect(curve).to_be_hidden()
    wall.press("l")
    expect(curve).to_be_visible()

    # The network of a phone is away while it answers, and it is reloaded later.
    wall.press("ArrowRight", "0 answered")
    three[0].sees(before(PLAYED[1][0])).say("tea", 100)
    three[1].sees(before(PLAYED[1][0])).say("coffee", 100)
    three[2].sees(before(PLAYED[1][0]))
    expect(wall.said).to_contain_text("2 answered")
    three[2].context.set_offline(True)
    three[2].say("tea", 90)
    expect(three[2].said).to_contain_text("No network")
    expect(wall.said).to_contain_text("2 answered")
    three[2].context.set_offline(False)
    expect(three[2].said).to_contain_text("Sent")
    expect(wall.said).to_contain_text("3 answered")
    three[2].page.reload()
    expect(three[2].word).to_have_value("tea")
    expect(three[2].said).to_contain_text("Sent")
    expect(wall.said).to_contain_text("3 joined")
    wall.press("Space", "closed with 3 answers")
    wall.press("Space")
    expect(wall.side).to_contain_text("over 2 sentences")

    # A wall that is reloaded leads the same class; a word in markup is a word.
    page.reload()
    expect(wall.said).to_contain_text("3 joined")
    wall.press("ArrowRight", "0 answered")
    for own, word in zip(three, ("tree", "bush", "<b>x</b>"), strict=True):
        own.sees(before(PLAYED[2][0])).say(word, 100)
        expect(own.said).to_contain_text("Sent")
    wall.press("Space", "closed with 3 answers")
    expect(wall.main).to_contain_text("<b>x</b>")
    wall.press("Space")
    expect(wall.step).to_have_text("Result")
    wall.press("Space")
    expect(wall.main.locator("tbody tr")).to_have_count(4)
    expect(wall.main).to_contain_text("over 3 sentences")
    expect(three[1].said).to_contain_text("over 3 sentences")
    accessible(page, within="#fm-present-class")
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    saved.value.save_as(path := tmp_path / "class.csv")
    assert "warm" not in path.read_text()
    assert path.read_text().count("tree") > 1
    (folder,) = served.runs.glob("*-class")
    assert len(json.loads((folder / "class.json").read_text())["rounds"]) == 3
    for width, height in ((1920, 1080), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        expect(wall.step).to_be_visible()
    # A sentence on the spot, and back to the presentation.
    page.keyboard.press("t")
    page.get_by_label("Type a sentence with its hidden word").fill("Bees make [honey].")
    page.keyboard.press("Enter")
    expect(wall.sentence).to_contain_text("Bees make")
    for own in three:
        own.sees("Bees make")
    # A word that is not known can be set once the round is closed; nothing touches there.
    page.set_viewport_size({"width": 1920, "height": 1080})
    page.keyboard.press("t")
    page.get_by_label("Type a sentence with its hidden word").fill("Cows give [MASK].")
    page.keyboard.press("Enter")
    expect(wall.sentence).to_contain_text("Cows give")
    three[0].sees("Cows give").say("milk", 100)
    expect(wall.said).to_contain_text("1 answered")
    wall.press("Space", "closed with 1 answers")
    field = page.get_by_label("The hidden word is not known").bounding_box()
    button = page.get_by_role("button", name="Set", exact=True).bounding_box()
    axis = wall.main.locator(".fm-row-axis > *").first.bounding_box()
    label = page.locator("[data-class-form=truth] label").bounding_box()
    assert abs(field["height"] - button["height"]) < 1 and abs(field["y"] - button["y"]) < 1
    assert label["y"] > axis["y"] + axis["height"]
    accessible(page, within="#fm-present-class")
    for own in three:
        assert not [fault for fault in own.faults if "ERR_INTERNET_DISCONNECTED" not in fault]
    page.keyboard.press("Escape")
    expect(page.locator("#fm-present-class")).to_be_hidden()
    expect(page.locator("#strip")).to_be_visible()
