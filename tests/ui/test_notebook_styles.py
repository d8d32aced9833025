"""Records among the styles of JupyterLab and nbconvert, whose rules for lists reach into them."""

import pytest
from table_model import TableModel

from fillmask_ui import compare, fill

# Of nbconvert 7.17 (jp-* of JupyterLab 4, and its own for lists of definitions), as they stand.
JUPYTER = """<style>
.jp-RenderedHTMLCommon ol:not(.list-inline) { padding-left: 2em; }
.jp-RenderedHTMLCommon ol, .jp-RenderedHTMLCommon ul { margin-bottom: 1em; }
.jp-OutputArea-output dt { font-weight: bold; float: left; width: 20%; padding: 0px; margin: 0px; }
.jp-OutputArea-output dd { float: left; width: 80%; padding: 0px; margin: 0px; }
</style>"""
TEXT = "the cat sat on the [MASK] ."
LEFTS = "(items) => items.map((item) => item.getBoundingClientRect().left)"
MIDDLES = """(items) => items.map((item) => item.getBoundingClientRect())
  .map((box) => box.left + box.width / 2)"""


@pytest.fixture
def shown(browser):
    """Shows a record as an output of a notebook; the page is returned."""
    page = browser.new_page(viewport={"width": 900, "height": 700})

    def show(record):
        output = "jp-RenderedHTMLCommon jp-OutputArea-output"
        page.set_content(f'{JUPYTER}<div class="{output}">{record._repr_html_()}</div>')
        return page

    yield show
    page.close()


def test_bars_begin_at_the_zero_of_their_axis(shown):
    page = shown(fill(TableModel(seed=3), TEXT, candidates=["walking"]))
    bars = page.locator(".fm-row-fill").evaluate_all(LEFTS)
    zero = page.locator(".fm-row-axis > span").evaluate_all(MIDDLES)[0]
    assert len(bars) > 4
    assert {round(left - zero) for left in bars} == {0}


def test_pairs_of_bars_begin_at_their_grid_and_terms_stand_in_one_line(shown):
    page = shown(compare(TableModel(seed=3), TableModel(seed=4), TEXT))
    zero = page.locator(".fm-rows-grid > i").evaluate_all(LEFTS)[0]
    assert {round(left - zero) for left in page.locator(".fm-mark").evaluate_all(LEFTS)} == {0}
    for term in page.locator(".fm-facts dt").all():
        assert term.bounding_box()["height"] < 30, term.inner_text()
