"""A variant is diagnosed in a real browser, stopped, and mended by keeping parts of it."""

import shutil
import threading
from urllib.parse import urlencode

import onnx
import pytest
from planted import plant
from playwright.sync_api import expect

from fillmask_ui.models import load_model
from fillmask_ui.quantizing.diagnosis import Diagnosing
from fillmask_ui.ui.quantize import diagnose


@pytest.fixture
def gate(monkeypatch):
    """Holds each diagnosis before its first part is put into full precision."""
    opened, whole = threading.Event(), diagnose.diagnose

    def held(*arguments, **options):
        for step in whole(*arguments, **options):
            yield step
            if isinstance(step, Diagnosing) and step.message.endswith("in full precision"):
                assert opened.wait(60)

    monkeypatch.setattr(diagnose, "diagnose", held)
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
    return tmp_path


def test_the_part_that_hurts_is_found_and_kept_in_full_precision(page, served, source, gate):
    model = str(source)
    page.goto(f"{served.url}?{urlencode({'tab': 'quantize', 'quantize_model': model})}")
    for scheme in ("int8-channel:", "fp16:"):
        page.get_by_label(scheme).uncheck()
    page.get_by_label("Number of texts").fill("6")
    page.get_by_role("button", name="Run").click()
    rows, panel = page.locator("#quantize-rows tr.fm-variant"), page.locator(".fm-diagnose")
    expect(rows).to_have_count(2, timeout=60_000)
    button = rows.nth(1).get_by_role("button", name="Diagnose int8")
    path = button.get_attribute("data-diagnose")
    graph = onnx.load(path)
    plant(graph, "scale", 1, seed=5)
    onnx.save(graph, path)

    # What is known soon is shown while the rest is measured; that can be stopped.
    button.click()
    worst = panel.locator(".fm-diagnose-bars li").first
    expect(worst).to_contain_text("encoder.layer.1.")
    expect(worst).to_contain_text("stands out")
    expect(panel).to_contain_text("Along depth")
    panel.get_by_role("button", name="Stop").click()
    expect(panel.locator(".fm-figure-notice")).to_contain_text("Stopped")
    expect(panel).to_have_attribute("aria-busy", "false")
    expect(panel.get_by_role("region", name="One part in full precision")).to_have_count(0)

    gate.set()
    panel.get_by_label("Texts measured").select_option("10")
    panel.get_by_label("Parts tried in full precision").select_option("4")
    panel.get_by_role("slider", name="Loss that may stay").fill("0")
    tried = panel.get_by_role("region", name="One part in full precision").locator("tbody tr")
    expect(tried).to_have_count(4, timeout=60_000)
    listed = panel.get_by_role("region", name="Parts to keep in full precision, together")
    expect(listed).to_be_visible(timeout=60_000)
    expect(panel.get_by_role("button", name="Stop")).to_be_hidden()

    panel.get_by_role("button", name="Make this variant").click()
    expect(panel.locator("[data-made]")).to_contain_text("table above")
    made = rows.filter(has_text="int8 without")
    expect(made).to_have_count(1)
    expect(made.get_by_role("button", name="Diagnose")).to_be_visible(timeout=60_000)
    expect(made.locator(".fm-variant-verdict")).to_be_visible()
    expect(page.locator("#quantize-run")).to_be_enabled()
