"""Take the pictures of README and docs again, from the page as it is.

PYTHONPATH=tests python tests/ui/retake_screenshots.py [NAME...]    (all, if no file is named)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode

from chromium import chromium
from PIL import Image
from serving import serving

from fillmask_ui.ui.page import build_app

ROOT = Path(__file__).parent.parent.parent
# The page shows the answer to what is asked, and nothing is still moving.
ANSWERED = """() => document.querySelector("[role=tabpanel]")
    && ![...document.querySelectorAll("#stage.fm-stale, [aria-busy=true]")]
        .some((part) => part.checkVisibility())"""


def nothing(page: Any) -> None:
    """What the address alone shows."""


def mattered(page: Any) -> None:
    page.get_by_role("radio", name="What mattered").click()
    page.locator("#lens-table table").wait_for(state="attached")


def point_at_a_word(page: Any) -> None:
    page.locator("#lens-table table").wait_for(state="attached")
    page.get_by_role("button", name="president – hide it").hover()


def guess_first(page: Any) -> None:
    page.get_by_role("radio", name="Guess first").click()
    page.get_by_text("Paste a list").click()
    page.get_by_label("Guesses, with counts").fill("mat 9, sofa 6, table 3, roof")
    page.get_by_role("button", name="Add all").click()
    page.get_by_role("button", name="Reveal").click()
    page.locator(".fm-guess-result .fm-say").wait_for()


def present(page: Any) -> None:
    page.keyboard.press("p")
    page.wait_for_timeout(6_000)  # until the help on the keys has faded


def evaluate(page: Any) -> None:
    page.get_by_role("button", name="Run", exact=True).click()
    page.locator("#evaluate-figures .fm-verdict, #evaluate-figures .fm-story").first.wait_for()
    page.locator("#evaluate-notice .fm-busy").wait_for(state="detached")
    page.wait_for_timeout(3_000)  # Plotly draws


def ledger(page: Any) -> None:
    page.get_by_role("button", name="All lines").click()
    page.get_by_role("button", name="Run the evaluator").click()
    page.locator('[data-figure="ledger"] [data-piece="evaluator"]').wait_for()
    page.wait_for_timeout(2_000)


def two_decodings(page: Any) -> None:
    page.get_by_text("Compare with a second setting").click()
    page.locator(".fm-unmasked").nth(1).wait_for()


@dataclass(frozen=True)
class Picture:
    """One file."""

    name: str  # below the repository
    state: dict[str, str] = field(default_factory=dict)  # parameters of the address
    act: Callable[[Any], None] = nothing
    width: int = 1280
    height: int = 800


MASKED = "The cat sat on the [MASK]."
PICTURES = (
    Picture("assets/explore-light.png", {"__theme": "light"}),
    Picture("assets/explore-dark.png", {"__theme": "dark"}),
    Picture(
        "docs/pictures/surprise.png",
        {"text": "The pond was so quiet that you could hear the president breathe."},
        point_at_a_word,
    ),
    Picture(
        "docs/pictures/mattered.png",
        {"text": "The doctor who treated the children was very [MASK] to them."},
        mattered,
    ),
    Picture(
        "docs/pictures/two-sentences.png",
        {
            "text": "The nurse said that [MASK] was tired.",
            "with": "The doctor said that [MASK] was tired.",
        },
    ),
    Picture("docs/pictures/guess-first.png", {"text": MASKED, "hidden": '["mat"]'}, guess_first),
    Picture("docs/pictures/presenting.png", {"text": MASKED}, present, 1920, 1080),
    Picture("docs/pictures/evaluate.png", {"tab": "evaluate"}, evaluate),
    Picture("docs/pictures/learn.png", {"tab": "learn", "chapter": "ledger"}, ledger),
    Picture("docs/pictures/unmask.png", {"tab": "unmask"}, two_decodings, 1280, 1000),
    Picture("docs/pictures/narrow.png", {"text": MASKED}, nothing, 390, 844),
)


def main(names: list[str]) -> None:
    """Serve the page, open it in chromium, write the files."""
    with serving(build_app()) as url, chromium() as browser, TemporaryDirectory() as scratch:
        for picture in PICTURES:
            if names and Path(picture.name).name not in names:
                continue
            size = {"width": picture.width, "height": picture.height}
            page = browser.new_context(viewport=size).new_page()
            page.set_default_timeout(120_000)
            page.goto(f"{url}?{urlencode(picture.state)}")
            page.wait_for_function(ANSWERED)
            picture.act(page)
            page.evaluate("document.fonts.ready")
            page.wait_for_timeout(800)  # bars move
            shot = Path(scratch) / "shot.png"
            page.screenshot(path=shot)
            page.close()
            target = ROOT / picture.name
            target.parent.mkdir(parents=True, exist_ok=True)
            # Few colours are enough, and every version of a picture stays in the history.
            Image.open(shot).convert("RGB").quantize(160).save(target, optimize=True)
            print(target, target.stat().st_size, "bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
