"""The Quantize tab from beginning to end."""

import re
import shutil
import threading

import onnx
import pytest
from accessibility import accessible
from features.quantize.planted import plant
from journey import Explore, Visitor
from playwright.sync_api import expect

from fillmask_ui.features.quantize import diagnosis_view
from fillmask_ui.models import load_model
from fillmask_ui.records import Progress


@pytest.fixture
def gate(monkeypatch):
    """Holds each diagnosis before its first part is put into full precision."""
    opened, whole = threading.Event(), diagnosis_view.diagnose

    def held(*arguments, **options):
        for step in whole(*arguments, **options):
            yield step
            if isinstance(step, Progress) and step.message.endswith("in full precision"):
                assert opened.wait(300)

    monkeypatch.setattr(diagnosis_view, "diagnose", held)
    yield opened
    opened.set()


@pytest.fixture
def source(tmp_path):
    """The embedded model as a folder of its own, with variants of its own."""
    files = load_model("embedded").files
    (tmp_path / "onnx").mkdir()
    weights = [*files.weights, *files.folder.glob("*.safetensors")]
    for path in (*files.tokenizer.glob("*.json"), *weights):
        shutil.copy(path, tmp_path / path.relative_to(files.folder))
    return str(tmp_path)


def test_a_variant_is_made_diagnosed_mended_and_opened_in_other_tabs(visit, source, gate):
    query = {"tab": "quantize", "quantize_model": source}
    visitor = Visitor(page := visit(query, width=1280, color_scheme="dark"))
    notice = page.locator("#quantize-notice")
    run = page.get_by_role("button", name="Run").locator("visible=true")
    visitor.press(re.compile("^More"))
    expect(page.get_by_label("Keep in full precision")).to_be_visible()

    def scheme(name):
        return page.get_by_role("checkbox", name=re.compile(rf"^{name}\s"))

    for name in ("int8", "int8-channel", "fp16"):
        scheme(name).uncheck()
    number = page.get_by_label("Number of texts").locator("visible=true")
    number.fill("6")
    page.get_by_label("Keep in full precision").fill("layer:5")
    run.click()
    expect(notice.get_by_role("alert")).to_be_visible()
    accessible(page)
    scheme("int8").check()
    run.click()
    rows, panel = page.locator("#quantize-rows tr.fm-variant"), page.locator(".fm-diagnose")
    # A page that is opened anew meanwhile finds the run.
    expect(notice.get_by_role("progressbar")).to_be_visible()
    page.reload()
    visitor.ready()

    def the_form_is_that_of_the_run():
        expect(number).to_have_value("6")
        expect(scheme("int8")).to_be_checked()
        expect(scheme("fp16")).not_to_be_checked()
        expect(page.get_by_label("Keep in full precision")).to_have_value("layer:5")

    the_form_is_that_of_the_run()
    expect(rows).to_have_count(2)
    expect(run).to_be_enabled()
    # The same once the run is long over, for another visit.
    page.evaluate("sessionStorage.clear()")
    page.reload()
    visitor.ready()
    expect(rows).to_have_count(2)
    the_form_is_that_of_the_run()
    expect(rows.nth(0)).to_contain_text("tokens/s")
    expect(rows.nth(1)).not_to_contain_text("tokens/s")
    for chart in ("size", "speed"):
        expect(page.locator(f"#quantize-{chart} .js-plotly-plot .point")).to_have_count(2)
    button = rows.nth(1).get_by_role("button", name="Diagnose int8")
    path = button.get_attribute("data-diagnose")
    graph = onnx.load(path)
    plant(graph, "scale", 1, seed=5)
    onnx.save(graph, path)

    # What is known soon is shown while the rest is measured; that can be stopped.
    button.click()
    worst = panel.get_by_role("listitem").first
    expect(worst).to_contain_text("encoder.layer.1.")
    expect(worst).to_contain_text("stands out")
    expect(panel).to_contain_text("Layer by layer")
    panel.get_by_role("button", name="Stop").click()
    expect(panel).to_contain_text("Stopped")
    expect(panel).to_have_attribute("aria-busy", "false")
    whole = panel.get_by_role("region", name="One part in full precision")
    expect(whole).to_have_count(0)
    gate.set()
    panel.get_by_label("Texts measured").select_option("10")
    panel.get_by_label("Parts tried in full precision").select_option("4")
    panel.get_by_role("slider", name="Loss budget").fill("0")
    expect(whole.locator("tbody tr")).to_have_count(4)
    listed = panel.get_by_role("region", name="Parts to keep in full precision")
    expect(listed).to_be_visible()
    expect(panel.get_by_role("button", name="Stop")).to_be_hidden()
    for summary in panel.locator("summary").all():
        summary.click()
    accessible(page)
    panel.get_by_role("button", name="Make this variant").click()
    expect(panel).to_contain_text("table above")
    mended = rows.filter(has_text="int8 without")
    expect(mended.get_by_role("button", name="Diagnose")).to_be_visible()
    expect(run).to_be_enabled()

    # The menus of other tabs offer what was made.
    visitor.tab("Unmask")
    page.get_by_role("combobox", name="Model").locator("visible=true").click()
    offered = page.get_by_role("option").filter(has_text=f"int8 of {source}")
    expect(offered.locator("visible=true")).to_have_count(2)
    page.keyboard.press("Escape")
    visitor.tab("Quantize")

    # Its links open it beside the model that it was made of.
    int8 = page.locator('#quantize-rows tr[data-scheme="int8"]').first
    int8.get_by_role("link", name="Evaluate").click()
    candidate, reference = (
        page.get_by_role("combobox", name=role).locator("visible=true")
        for role in ("Candidate", "Reference")
    )
    expect(candidate).to_have_value(f"int8 of {source} · made here, without layer:5")
    expect(reference).to_have_value(source)
    visitor.tab("Quantize")
    int8.get_by_role("link", name="Explore").click()
    explore = Explore(page)
    expect(explore.mode("Two models")).to_be_checked()
    address = explore.address()
    assert (address["model"], address["compare"]) == (source, path)
