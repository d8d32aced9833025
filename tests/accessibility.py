"""What axe-core finds wrong with a page, on a wide, light screen and on a narrow, dark one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT

# Either theme and either width once: no rule asks for both at a time.
LOOKS = (("light", 1280, 800), ("dark", 390, 844))
# All that axe checks by itself, best practices too, and these that it would leave out.
MORE_RULES = (
    *("focus-order-semantics", "label-content-name-mismatch", "p-as-heading"),
    *("table-fake-caption", "target-size", "td-has-header"),
)
OPTIONS = {
    "resultTypes": ["violations"],
    "rules": {rule: {"enabled": True} for rule in MORE_RULES},
}
# Reviewed: made by Gradio, and out of reach of templates and styles. Rule -> where.
KNOWN = {"image-redundant-alt": "footer"}
# Colours in the middle of a transition are no colours to judge, and what sticks to the edge of the
# screen covers what can be scrolled free.
STILL = """
*, *::before, *::after { transition: none !important; animation: none !important; }
#evaluate-buttons { position: static !important; }
"""
# Gradio pales what it is about to replace, and the page marks what it asks anew.
_SETTLED = """() => {
    const waits = ".pending, .generating, [aria-busy=true], [aria-label='Empty value']";
    return ![...document.querySelectorAll(waits)].some((part) => part.checkVisibility());
}"""
# A drawing is judged by its description and its table, not by its thousands of strokes.
_DRAWN = "svg.main-svg > *"


@dataclass(frozen=True)
class Violation:
    """A rule that an element breaks."""

    rule: str
    target: str  # CSS selector
    html: str
    message: str
    where: str  # state of the page, theme and width

    def __str__(self) -> str:
        return f"{self.where}: {self.rule}: {self.target}\n    {self.html}\n    {self.message}"


@dataclass(frozen=True)
class Known:
    """What Gradio itself makes and this project cannot change."""

    rule: str
    within: str  # CSS selector of the element or of what it lies in
    why: str


def prepare(context: Any) -> None:
    """Bring axe into every page of a browser's context."""
    context.add_init_script(AXE_SCRIPT)


def violations(
    page: Any, state: str, known: tuple[Known, ...] = (), *, within: str = "html"
) -> list[Violation]:
    """What is wrong with a page or a part of it, but for what is known, in every look.

    The page is left as wide and in the theme as it was.
    """
    context = {"include": [[within]], "exclude": [[_DRAWN]]}
    before, dark = page.viewport_size, page.evaluate("window.fillmask.dark()")
    page.add_style_tag(content=STILL)
    for _ in range(2):  # one update can bring about another
        page.wait_for_function(_SETTLED)
        page.wait_for_timeout(300)
    page.wait_for_function(_SETTLED)
    found = []
    for theme, width, height in LOOKS:
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("dark => window.fillmask.set_theme(dark, false)", theme == "dark")
        result = page.evaluate("given => axe.run(...given)", [context, OPTIONS])
        for broken in result["violations"]:
            for node in broken["nodes"]:
                target = node["target"][-1]
                if any(is_known(page, broken["id"], target, entry) for entry in known):
                    continue
                checks = [*node["any"], *node["all"], *node["none"]]
                message = "; ".join(check["message"] for check in checks)
                where = f"{state}, {theme}, {width}"
                html = " ".join(node["html"].split())[:200]
                found.append(Violation(broken["id"], str(target), html, message, where))
    page.set_viewport_size(before)
    page.evaluate("dark => window.fillmask.set_theme(dark, false)", dark)
    return found


def is_known(page: Any, rule: str, target: str, entry: Known) -> bool:
    inside = "([target, within]) => Boolean(document.querySelector(target)?.closest(within))"
    return rule == entry.rule and page.evaluate(inside, [target, entry.within])


def accessible(page: Any, *, within: str = "html") -> None:
    """Assert that axe finds nothing wrong with a page, or the part of it at a CSS selector."""
    page.add_style_tag(content=STILL)
    for _ in range(2):  # one update can bring about another
        page.wait_for_function(_SETTLED)
        page.wait_for_timeout(300)
    page.evaluate(AXE_SCRIPT)
    context = {"include": [[within]], "exclude": [[_DRAWN]]}
    found = page.evaluate("given => axe.run(...given)", [context, OPTIONS])
    inside = "([target, within]) => Boolean(document.querySelector(target)?.closest(within))"
    broken = []
    for violation in found["violations"]:
        for node in violation["nodes"]:
            target, known = node["target"][-1], KNOWN.get(violation["id"])
            if known is None or not page.evaluate(inside, [target, known]):
                broken.append(f"{violation['id']}: {target}\n    {node['html'][:200]}")
    assert not broken, "\n".join(broken)
