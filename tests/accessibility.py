"""What axe-core finds wrong with a page in the state and width that it is in, light and dark."""

from collections.abc import Iterator
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT

# All that axe checks by itself, best practices too, and these that it would leave out.
MORE_RULES = (
    *("focus-order-semantics", "label-content-name-mismatch", "p-as-heading"),
    *("table-fake-caption", "target-size", "td-has-header"),
)
OPTIONS = {
    "resultTypes": ["violations"],
    "rules": {rule: {"enabled": True} for rule in MORE_RULES},
}
# The rules that ask for colours.
COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
# Reviewed: made by Gradio, and out of reach of templates and styles. Rule -> where.
KNOWN = {"image-redundant-alt": "footer"}
# Colours in the middle of a transition are no colours to judge, and what sticks to the edge of the
# screen covers what can be scrolled free.
STILL = """
*, *::before, *::after { transition: none !important; animation: none !important; }
#evaluate-buttons { position: static !important; }
"""
# Gradio pales what it is about to replace, and the page marks what it asks anew; one update can
# bring about another.
_SETTLED = """() => {
    const waits = ".pending, .generating, [aria-busy=true], [aria-label='Empty value']";
    const busy = [...document.querySelectorAll(waits)].some((part) => part.checkVisibility());
    window.quietSince = busy ? null : window.quietSince ?? performance.now();
    return window.quietSince !== null && performance.now() - window.quietSince > 300;
}"""
# A drawing is judged by its description and its table, not by its thousands of strokes; a table by
# its first rows, which all others are like.
_LEFT_OUT = ("svg.main-svg > *", "tbody tr:nth-child(n + 4)")


def themes(page: Any) -> Iterator[str]:
    """The page in the one theme after the other, then in its own again."""
    is_dark = page.evaluate("window.fillmask.dark()")
    for dark in (not is_dark, is_dark):
        page.evaluate("dark => window.fillmask.set_theme(dark, false)", dark)
        yield "dark" if dark else "light"


def accessible(page: Any, *, within: str = "html", both_themes: bool = True) -> None:
    """Assert that axe finds nothing wrong with a page, or the part of it at a CSS selector.

    The colours are looked at in both themes, or in that of the page alone.
    """
    page.add_style_tag(content=STILL)
    page.evaluate("window.quietSince = null")
    page.wait_for_function(_SETTLED)
    page.evaluate(AXE_SCRIPT)
    context = {"include": [[within]], "exclude": [[part] for part in _LEFT_OUT]}
    inside = "([target, within]) => Boolean(document.querySelector(target)?.closest(within))"
    options, broken = {**OPTIONS, "runOnly": COLOURS} if both_themes else OPTIONS, []
    for theme in themes(page) if both_themes else ["its own theme"]:
        report = page.evaluate("given => axe.run(...given)", [context, options])
        options = OPTIONS
        for violation in report["violations"]:
            for node in violation["nodes"]:
                target, exempt = node["target"][-1], KNOWN.get(violation["id"])
                if exempt is None or not page.evaluate(inside, [target, exempt]):
                    fault = f"{violation['id']}, {theme}: {target}"
                    broken.append(f"{fault}\n    {node['html'][:200]}")
    assert not broken, "\n".join(broken)
