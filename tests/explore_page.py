"""The Explore tab through the eyes of who sits before it: what browser tests read and press."""

import re
from urllib.parse import urlencode

from playwright.sync_api import expect

from fillmask_ui.ui.components import answered


class Explorer:
    """Parts of the tab by their roles and labels."""

    def __init__(self, page, served):
        self.page, self.served = page, served
        self.sentence = page.get_by_role("textbox", name="Sentence").locator("visible=true").first
        self.stage = page.locator("#stage")
        self.strip = page.get_by_role("toolbar", name="Words of the sentence")
        self.notice = page.locator("#notice .fm-notice")
        self.table = page.locator("#candidates table")
        self.rows = self.table.locator("tbody tr")
        self.details = page.locator("#details")
        self.bars = page.locator("#bars .fm-bar-row")

    def open(self, **parameters):
        self.page.goto(f"{self.served.url}?{urlencode(parameters)}")
        return self

    def open_details(self):
        self.details.get_by_text("Details", exact=True).click()

    def see(self, text):
        """Wait until the strip shows just this text, then until the table does too."""
        expect(self.strip).to_have_attribute("data-version", version(text))
        if "[MASK]" in text:
            expect(self.rows.first).to_have_attribute("data-key", re.compile(version(text)))
        return self

    def numbers(self):
        """Rank, token, id, probability and NLL of every row, as the page holds them."""
        return self.page.evaluate(
            """() => [...document.querySelectorAll("#candidates tbody tr")].map((row) => {
                const cells = [...row.cells];
                const value = (i) => Number(cells[i].dataset.value);
                return [value(0), cells[2].innerText, value(3), value(4), value(5)];
            })"""
        )


def version(text):
    from fillmask_ui.ui.explore.sentence_strip import version_of

    return version_of(text)


def sent(state):
    """What `static/explore.js` asks with for the fields of its state."""
    asked = {name: own for name, own in state.items() if name not in _OF_STATE}
    if "base" in state:
        asked["draft"] = {"text": state["base"], "hidden": state.get("hidden", [])}
    if state.get("run"):
        place = {"run": state["run"], "other": state.get("run_b", "")}
        place |= {"example": int(state["example"]), "position": int(state["token"])}
        asked["run"] = place | {"side": int(state.get("side") == "B")}
    return asked | {"alone": bool(state.get("alone"))}


def asked(function, session, state):
    """What the page is told where a served function is asked with a state."""
    return answered(function, session, sent(state))


_OF_STATE = ("base", "hidden", "run", "run_b", "example", "token", "side", "alone")
