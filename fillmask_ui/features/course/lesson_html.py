"""The text of a lesson as HTML: Markdown, with short formulas in LaTeX between dollars."""

import re
from functools import cache

from markdown_it import MarkdownIt

_MARKDOWN = MarkdownIt("commonmark").enable("table")
_FORMULA = re.compile(r"\$([^$]+)\$([.,;:?]?)")  # with its mark, which may not begin a line
_SYMBOLS = {
    "sum": "∑",
    "infty": "∞",
    "to": "→",
    "cdot": "·",
    "mid": "|",
    "|": "‖",
    "sqrt": "√",
    "alpha": "<i>α</i>",
    "mu": "<i>μ</i>",
    "sigma": "<i>σ</i>",
    "ln": "ln",
    "log": "log",
}
_FRACTION = re.compile(r"\\frac\{(\w+)\}\{(\w+)\}")
_UPRIGHT = r"\\(?:text|mathrm)\{(?P<upright>[^}]*)\}"
_ATOM = re.compile(rf"{_UPRIGHT}|\\(?P<command>[a-z]+|\W)|(?P<letter>[A-Za-z])")
_SCRIPT = re.compile(r"(?P<sign>[_^])(?:\{(?P<group>[^{}]*)\}|(?P<atom><i>.</i>|\S))")


@cache
def to_html(markdown: str) -> str:
    r"""Markdown that is trusted, as HTML.

    >>> to_html("A **bit** is $-\\log_2 p$.")
    '<p>A <strong>bit</strong> is <span class="fm-formula">−log<sub>2</sub> <i>p</i>.</span></p>\n'
    """
    return str(_MARKDOWN.render(_FORMULA.sub(_formula_html, markdown)))


def _formula_html(formula: re.Match[str]) -> str:
    """The LaTeX of the lessons, whose spaces are kept: symbols, scripts and fractions of a line."""
    latex = _FRACTION.sub(r"^{\1}⁄_{\2}", formula[1]).replace("-", "−")
    latex = re.sub(r"\s*\\,\s*", "\u2009", latex)
    html = _ATOM.sub(_atom_html, latex)
    while _SCRIPT.search(html):  # from the innermost group outwards
        html = _SCRIPT.sub(_script_html, html)
    html = html.replace("{", "").replace("}", "")
    return f'<span class="fm-formula">{html}{formula[2]}</span>'


def _atom_html(atom: re.Match[str]) -> str:
    if atom["letter"]:
        return f"<i>{atom['letter']}</i>"
    return atom["upright"] or _SYMBOLS[atom["command"]]


def _script_html(script: re.Match[str]) -> str:
    tag = "sub" if script["sign"] == "_" else "sup"
    return f"<{tag}>{script['group'] or script['atom']}</{tag}>"
