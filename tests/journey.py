"""The page through the eyes of who sits before it: what journeys read and press.

Where a part has no role of its own its id stands here, not in the journeys.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

from chromium import BUILT
from playwright.sync_api import expect

from fillmask_ui.ui.explore.sentence_strip import version_of


class Visitor:
    """What the tabs have in common.

    Attributes:
        page: of Playwright.
    """

    def __init__(self, page: Any) -> None:
        self.page = page

    def open(self, **parameters: str) -> Any:
        """Load the page anew with these parameters of the address."""
        self.page.goto(urljoin(self.page.url, "/?" + urlencode(parameters)))
        return self.ready()

    def ready(self) -> Any:
        self.page.wait_for_selector(BUILT)
        return self

    def tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name, exact=True).click()

    def press(self, name: str | re.Pattern[str], **options: Any) -> None:
        self.page.get_by_role("button", name=name, **options).click()

    def pick(self, box: str, value: str) -> None:
        """Write into a list of models, and take what was written."""
        field = self.page.get_by_role("combobox", name=box).locator("visible=true")
        field.fill(value)
        field.press("Enter")

    def address(self) -> dict[str, str]:
        return {name: value[0] for name, value in parse_qs(urlsplit(self.page.url).query).items()}

    def address_says(self, part: str) -> None:
        self.page.wait_for_function("part => location.search.includes(part)", arg=part)

    def state(self, expression: str) -> Any:
        """A value of the script of the Explore tab."""
        return self.page.evaluate(f"window.fillmask.explore.{expression}")

    def fits(self, width: int) -> None:
        """Nothing sticks out of the screen, and no word of a bar is cut."""
        assert self.page.evaluate("document.documentElement.scrollWidth") <= width
        names = "#stage :is(.fm-bars, .fm-lens-bars) .fm-bar-row .fm-row-name"
        cut = self.page.eval_on_selector_all(
            names,
            """(names) => names.filter((name) => name.scrollWidth > name.clientWidth + 1)
                .map((name) => name.textContent)""",
        )
        assert cut == []


class Explore(Visitor):
    def __init__(self, page: Any) -> None:
        super().__init__(page)
        self.sentence = page.get_by_role("textbox", name="Sentence").locator("visible=true").first
        self.stage = page.locator("#stage")
        self.strip = page.get_by_role("toolbar", name="Words of the sentence")
        self.words = self.strip.locator('button[data-action="hide"]')
        self.notice = page.locator("#notice .fm-notice")
        self.table = page.locator("#candidates table")
        self.rows = self.table.locator("tbody tr")
        self.bars = page.locator("#bars")
        self.bar = page.locator("#bars .fm-bar-row:visible")
        self.stats = page.locator("#stats")
        self.curve = page.locator("#loss")
        self.joint = page.locator("#joint tbody tr")
        self.scored = page.locator("#scored tbody tr")
        self.details = page.locator("#details")
        self.story = page.locator("#found .fm-say")
        self.losses = page.locator("#lens-table tbody tr")
        self.found = page.locator("#found")
        self.replay = page.locator("#replay")

    def mode(self, name: str) -> Any:
        """The choice of a way to look at the sentence."""
        return self.page.get_by_role("radio", name=name, exact=True)

    def unfold(self, name: str) -> None:
        """Open a part of the page that is folded."""
        self.page.get_by_role("button", name=name, expanded=False).click()

    def word(self, name: str) -> Any:
        return self.page.get_by_role("button", name=f"{name} – hide it", exact=True)

    def see(self, text: str) -> Explore:
        """Wait until the strip shows just this text, then until the table does too."""
        expect(self.strip).to_have_attribute("data-version", version_of(text))
        if "[MASK]" in text:
            expect(self.rows.first).to_have_attribute("data-key", re.compile(version_of(text)))
        expect(self.stage).to_have_attribute("aria-busy", "false")
        return self

    def write(self, text: str) -> Explore:
        self.sentence.fill(text)
        return self.see(text)

    def numbers(self) -> list[list[Any]]:
        """Rank, token, id, probability and NLL of every row, as the page holds them."""
        return self.page.evaluate(
            """() => [...document.querySelectorAll("#candidates tbody tr")].map((row) => {
                const cells = [...row.cells];
                const value = (i) => Number(cells[i].dataset.value);
                return [value(0), cells[2].innerText, value(3), value(4), value(5)];
            })"""
        )

    def tints(self) -> list[int]:
        """Number of the tint of each word of the strip, 0 where it has none."""
        return self.words.evaluate_all("(all) => all.map((b) => Number(b.dataset.level ?? 0))")


class Evaluate(Visitor):
    def __init__(self, page: Any) -> None:
        super().__init__(page)
        self.notice = page.locator("#evaluate-notice")
        self.figures = page.locator("#evaluate-figures")
        self.value = page.locator(".fm-total").first
        self.worst = page.locator("#evaluate-worst tbody tr")
        self.heading = page.locator("#evaluate-worst h2")
        self.tokens = page.locator("#worst-tokens tbody tr")
        self.caption = page.locator("#worst-tokens caption")
        self.side = page.locator(".fm-sides:visible")
        self.runs = page.locator("#run-list tbody tr")
        self.beside = page.locator("#plot-beside .js-plotly-plot")
        self.charts = page.locator(".fm-chart .js-plotly-plot:visible")
        self.main_chart = page.locator("#plot-main")
        self.run_button = page.get_by_role("button", name="Run", exact=True).locator("visible=true")

    def form(self) -> Evaluate:
        """Open the form, and what it folds."""
        change = self.page.get_by_role("button", name="Change", exact=True)
        if change.count() and change.is_visible():
            change.click()
        for name in ("More", "Advanced"):
            toggle = self.page.get_by_role("button", name=name, exact=True)
            toggle.locator("visible=true").first.wait_for()
            if toggle.locator("visible=true").first.get_attribute("aria-expanded") != "true":
                toggle.locator("visible=true").first.click()
        return self

    def texts(self, path: str, candidate: str, reference: str = "") -> Evaluate:
        """Choose an upload, in its order, and the models."""
        self.form()
        self.page.get_by_label("Upload").locator("visible=true").check()
        self.page.locator("#evaluate input[type=file]").set_input_files(path)
        expect(self.page.locator("#evaluate")).to_contain_text(re.compile(r"texts\s*\.txt"))
        self.page.get_by_label("Number of texts").locator("visible=true").fill("0")
        self.page.get_by_label("Draw the texts at random").uncheck()
        self.model("Candidate", candidate)
        return self.model("Reference", reference)

    def model(self, role: str, reference: str) -> Evaluate:
        """Pick a model; blank for no reference."""
        self.pick(role, reference)
        box = self.page.get_by_role("combobox", name=role).locator("visible=true")
        expect(box).to_have_value(re.compile(reference or "none"))
        return self

    def show(self, row: Any) -> None:
        """Show a run of the list."""
        row.locator("button.fm-pick").click()

    def run(self) -> Evaluate:
        self.run_button.click()
        return self

    def measure(self) -> Evaluate:
        """Run, until this run is shown."""
        before = self.link()
        self.run()
        self.page.wait_for_function(
            "before => { const link = document.querySelector('#evaluate-figures [data-link]');"
            " return link && link.dataset.link !== before; }",
            arg=before,
        )
        return self.finished()

    def link(self) -> str:
        """To the run that is shown, "" if none is."""
        return self.page.evaluate(
            "document.querySelector('#evaluate-figures [data-link]')?.dataset.link ?? ''"
        )

    def finished(self) -> Evaluate:
        expect(self.figures.locator("[data-link]")).to_be_visible()
        expect(self.worst.first).to_be_visible()
        expect(self.page.locator("#evaluate-run")).to_be_enabled()
        return self

    def unfold(self, name: str) -> None:
        self.press(re.compile(f"^{name}.* [▼◀]"))

    def in_view(self, selector: str) -> None:
        """Wait for the beginning of something to be where a reader looks."""
        self.page.wait_for_function(
            "(selector) => { const box = document.querySelector(selector).getBoundingClientRect();"
            " return box.width && box.top >= 0 && box.top < 0.8 * window.innerHeight; }",
            arg=selector,
        )
