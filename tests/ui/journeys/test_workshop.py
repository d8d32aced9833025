"""Unmask and Quantize from beginning to end, every tab by keyboard, and a public page."""

import json
import re
import shutil
import threading

import onnx
import pytest
from accessibility import STILL, accessible
from journey import Evaluate, Explore, Visitor
from planted import plant
from playwright.sync_api import expect
from serving import serving

from fillmask_ui.features.quantize import diagnosis_view
from fillmask_ui.features.unmask.decoding_history import read_history
from fillmask_ui.features.unmask.unmask_texts import finish
from fillmask_ui.features.unmask.unmasking_options import UnmaskingConfig
from fillmask_ui.models import load_model
from fillmask_ui.records import Progress


def test_a_text_is_unmasked_step_by_step(visit, served, tmp_path):
    text = "The [MASK] [MASK] to the [MASK] and [MASK] it ."
    values = {"text": text, "A_temperature": "0.7", "A_top_k": "20", "A_seed": "3"}
    asked = {"tab": "unmask", "unmask": json.dumps({"unmask": values})}
    visitor = Visitor(page := visit(asked, color_scheme="dark"))
    config = UnmaskingConfig(pieces="fitting", temperature=0.7, top_k=20, seed=3)
    wanted = finish(served.store.get("embedded"), text, config)
    strip = page.locator(".fm-play-strip")
    hidden = strip.locator("[data-state=hidden]")
    step = page.get_by_role("slider", name="Step")
    expect(step).to_have_value(str(wanted.steps_taken))
    expect(page.get_by_role("region", name="Setting B")).to_have_count(0)
    step.press("Home")
    expect(hidden).to_have_count(4)
    page.get_by_role("combobox", name="Speed").select_option("fast")
    visitor.press("Play", exact=True)
    expect(step).to_have_value(str(wanted.steps_taken))
    words = re.sub(r"\s", "", strip.inner_text())
    assert words.lower() == re.sub(r"\s", "", wanted.text).lower()
    visitor.press("One step back")
    expect(hidden).to_have_count(1)
    page.locator('[data-cell="A:1"]').first.click()
    first = wanted.steps[0].hidden[0].candidates[0]
    expect(page.locator(".fm-cell-panel")).to_contain_text(f"{first.nll_nats:.3f}")
    with page.expect_download() as download:
        visitor.press("History (JSONL)")
    path = tmp_path / "history.jsonl"
    download.value.save_as(path)
    assert read_history(path.read_text(encoding="utf-8").splitlines()).ids == wanted.ids
    accessible(page)
    page.get_by_label("Compare with a second setting").check()
    expect(page.get_by_role("region", name="Setting B", exact=True)).to_be_visible()
    page.get_by_text("More", exact=True).locator("visible=true").first.click()
    page.get_by_label("Threshold").first.fill("-1")
    expect(page.get_by_role("alert")).to_contain_text("Setting A: threshold must be above 0")
    accessible(page, within="#unmask")
    page.get_by_label("Threshold").first.fill("0.5")
    expect(page.get_by_role("alert")).to_have_count(0)
    # A link of before, which sets something of the second setting, shows it.
    visitor.open(tab="unmask", unmask=json.dumps({"unmask": {"B_max_steps": "2"}}))
    expect(page.get_by_role("region", name="Setting B", exact=True)).to_be_visible()


@pytest.fixture
def gate(monkeypatch):
    """Holds each diagnosis before its first part is put into full precision."""
    opened, whole = threading.Event(), diagnosis_view.diagnose

    def held(*arguments, **options):
        for step in whole(*arguments, **options):
            yield step
            if isinstance(step, Progress) and step.message.endswith("in full precision"):
                assert opened.wait(60)

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
    asked = {"tab": "quantize", "quantize_model": source}
    visitor = Visitor(page := visit(asked, width=1280, color_scheme="dark"))
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
    expect(panel).to_contain_text("Along depth")
    panel.get_by_role("button", name="Stop").click()
    expect(panel).to_contain_text("Stopped")
    expect(panel).to_have_attribute("aria-busy", "false")
    whole = panel.get_by_role("region", name="One part in full precision")
    expect(whole).to_have_count(0)
    gate.set()
    panel.get_by_label("Texts measured").select_option("10")
    panel.get_by_label("Parts tried in full precision").select_option("4")
    panel.get_by_role("slider", name="Loss that may stay").fill("0")
    expect(whole.locator("tbody tr")).to_have_count(4)
    listed = panel.get_by_role("region", name="Parts to keep in full precision, together")
    expect(listed).to_be_visible()
    expect(panel.get_by_role("button", name="Stop")).to_be_hidden()
    for summary in panel.locator("summary").all():
        summary.click()
    accessible(page)
    panel.get_by_role("button", name="Make this variant").click()
    expect(panel).to_contain_text("table above")
    made = rows.filter(has_text="int8 without")
    expect(made.get_by_role("button", name="Diagnose")).to_be_visible()
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


# How the element that has the focus is drawn, and how the one that had it before is drawn now.
_RINGS = """() => {
    const ring = (element) => {
        const style = getComputedStyle(element);
        return [style.outlineStyle, style.outlineWidth, style.outlineColor].join(" ");
    };
    const [here, before] = [document.activeElement, window.focused_before];
    window.focused_before = here;
    const box = here.getBoundingClientRect();
    return {
        name: here.outerHTML.slice(0, 120),
        page: here === document.body,
        drawn: box.width > 4 && box.height > 4 && getComputedStyle(here).opacity > 0.5,
        ring: ring(here),
        before: before && before !== here ? ring(before) : "",
    };
}"""
LEAST_STOPS = {"Explore": 12, "Unmask": 30, "Learn": 25, "Evaluate": 30, "Quantize": 12, "Guide": 7}


def test_who_moves_by_keyboard_sees_where_they_are(visit):
    visitor = Visitor(page := visit(color_scheme="dark"))
    # Who has many models has lists that scroll.
    page.add_style_tag(content=STILL + "[role=listbox] { max-height: 2rem !important; }")
    expect(page.locator("#bars .fm-row").first).to_be_visible()
    for tab, least in LEAST_STOPS.items():
        visitor.tab(tab)
        if tab == "Evaluate":
            Evaluate(page).form().unfold("Stored runs")
            page.get_by_label("Upload").locator("visible=true").check()
            expect(page.get_by_role("button", name="Delete")).to_be_visible()
        # An answer that comes meanwhile replaces what has the focus.
        expect(page.locator("[aria-busy=true]").locator("visible=true")).to_have_count(0)
        if tab == "Unmask":
            expect(page.get_by_role("region", name="Setting A", exact=True)).to_be_visible()
        page.locator("h1").evaluate("title => { title.tabIndex = -1; title.focus(); title.blur() }")
        ring, seen = "solid 2px rgb(94, 234, 212)", 0
        while seen < 300:
            page.keyboard.press("Tab")
            focus = page.evaluate(_RINGS)
            assert focus["before"] != ring, "a ring stays where the focus was"
            if focus["page"]:
                break
            assert focus["drawn"], focus
            assert focus["ring"] == ring, focus
            seen += 1
        assert least <= seen < 300


def test_strangers_on_a_public_page(visit, tmp_path, monkeypatch):
    from fillmask_ui.ui.page import build_app

    monkeypatch.setenv("FILLMASK_UI_RUNS", str(tmp_path))
    with serving(build_app(public=True), public=True) as url:
        bench = Evaluate(page := visit({"tab": "evaluate"}, url=url, width=390, height=844))
        expect(page.get_by_role("tab", name="Quantize")).to_have_count(0)
        expect(page.get_by_label("Data set")).to_have_count(0)
        asked = visit({"tab": "quantize"}, url=url)
        expect(asked.get_by_text("Quantize is not offered on a public page")).to_be_visible()
        bench.form()
        page.get_by_label("Paste").check()
        page.get_by_label("Texts to paste").fill("The river freezes early this year.")
        page.get_by_label("Number of texts").fill("100000")
        bench.run()
        expect(bench.notice.get_by_role("alert")).to_contain_text("at most")
        bench.form()
        page.get_by_label("Number of texts").fill("10")
        bench.run()
        expect(bench.value).to_be_visible()
        bench.unfold("Stored runs")
        expect(bench.runs).to_have_count(1)
        accessible(page)
        link = {"tab": "evaluate", "run": bench.runs.get_attribute("data-key")}
        # Another browser finds no run, by list or by link, and no model of this machine.
        other = Evaluate(visit(link, url=url))
        expect(other.notice.get_by_role("alert")).to_contain_text("Unknown run")
        other.unfold("Stored runs")
        expect(other.runs).to_have_count(0)
        other.tab("Explore")
        explore = Explore(other.page)
        explore.pick("Model", "/etc/passwd")
        expect(explore.notice).to_contain_text("not offered on this public page")
        for opened in (page, asked, other.page):
            opened.context.close()
