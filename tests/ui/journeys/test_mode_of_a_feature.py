"""A mode of Explore from another package: its button, view, controls, script and link."""

import sys
from importlib.metadata import EntryPoint

import pytest
from journey import Explore
from playwright.sync_api import expect
from serving import serving

from fillmask_ui import extensions
from fillmask_ui.show.render import add_templates
from fillmask_ui.ui.explore.explore_modes import served as served_functions
from fillmask_ui.ui.page import build_app

FEATURE = """
from fillmask_ui.extensions import Feature, Mode

LENGTH = Mode(
    name="length", label="Length", about="counts the tokens", masked="length", whole="length",
    views={"length": "lengths.mode:view"}, template="lengths/controls.html",
    fields={"scale": "1", "round": ""},
)
FEATURE = Feature(name="lengths", package=__package__, modes=[LENGTH])
"""
VIEW = """
from fillmask_ui.ui.explore.explore_state import LoadedQuestion

def view(session, question):
    asked = LoadedQuestion.read(session, question)
    count = len(asked.model.vocabulary.encode(asked.text)) * int(question.fields["scale"])
    return {"html": f'<p class="fm-say">{count} tokens.</p>'}
"""
SCRIPT = """
window.fillmask.explore.modes.length = {
  begin: () => ({ unit: "bits" }),
  arrows: "lengths",
  move: (by) => document.querySelector("#by").append(by),
};
"""


@pytest.fixture
def lengths(tmp_path, monkeypatch):
    """A package with the feature, found as an installed one is."""
    home = tmp_path / "lengths"
    (home / "templates").mkdir(parents=True)
    files = {"__init__.py": "", "feature.py": FEATURE, "mode.py": VIEW, "lengths.js": SCRIPT}
    for name, content in files.items():
        (home / name).write_text(content, "utf-8")
    (home / "templates" / "controls.html").write_text('<p>Moved: <b id="by"></b></p>', "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = EntryPoint("lengths", "lengths.feature:FEATURE", extensions.GROUP)
    monkeypatch.setattr(extensions.metadata, "entry_points", lambda **_: [entry])
    extensions.features.cache_clear()
    add_templates("lengths", home / "templates")  # as where the feature is there from the start
    yield home
    extensions.features.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "lengths"]:
        del sys.modules[name]


@pytest.fixture
def url(lengths, served):
    with serving(build_app(served.store, "table")) as address:
        yield address


def test_a_mode_of_another_package(url, visit, served):
    masked, whole = "the [MASK] sat.", "the old cat sat."
    encode = served.store.get("table").vocabulary.encode
    explore = Explore(page := visit({"text": masked}, url=url)).see(masked)
    controls = page.get_by_role("region", name="Length")
    expect(controls).to_be_hidden()
    explore.mode("Length").click()
    expect(explore.story).to_have_text(f"{len(encode(masked))} tokens.")
    expect(controls).to_be_visible()
    assert explore.state("state.unit") == "bits"
    # While it is presented its script has the arrow keys.
    page.locator("h1").click()
    page.keyboard.press("p")
    expect(page.locator(".fm-present-help")).to_contain_text("lengths")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    expect(controls).to_have_text("Moved: 1")
    explore.open(mode="length", text=whole)
    expect(explore.story).to_have_text(f"{len(encode(whole))} tokens.")
    expect(explore.mode("Length")).to_be_checked()
    # A field that the mode adds is in the link while the mode is shown.
    explore.state('change({ scale: "3" }, { push: true })')
    expect(explore.story).to_have_text(f"{3 * len(encode(whole))} tokens.")
    assert explore.address()["scale"] == "3"
    assert "round" not in explore.address()
    explore.mode("Predict").click()
    page.wait_for_function("!location.search.includes('scale')")
    page.go_back()
    expect(explore.story).to_have_text(f"{3 * len(encode(whole))} tokens.")
    explore.open(mode="length", text=whole, scale="2")
    expect(explore.story).to_have_text(f"{2 * len(encode(whole))} tokens.")
    explore.open(mode="width", text=whole)
    expect(explore.mode("Predict")).to_be_checked()


def test_two_modes_cannot_serve_one_name(lengths):
    source = (lengths / "feature.py").read_text("utf-8").replace('{"length"', '{"answer"')
    (lengths / "feature.py").write_text(source, "utf-8")
    with pytest.raises(ValueError, match=r"'Length' serves \['answer'\]"):
        served_functions()
