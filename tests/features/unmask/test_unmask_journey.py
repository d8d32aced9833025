"""The Unmask tab from beginning to end."""

import json
import re

from accessibility import accessible
from journey import Visitor
from playwright.sync_api import expect

from fillmask_ui.features.unmask.decoding_history import read_history
from fillmask_ui.features.unmask.unmask_texts import finish
from fillmask_ui.features.unmask.unmasking_options import UnmaskingConfig


def test_a_text_is_unmasked_step_by_step(visit, served, tmp_path):
    text = "The [MASK] [MASK] to the [MASK] and [MASK] it ."
    values = {"text": text, "A_temperature": "0.7", "A_top_k": "20", "A_seed": "3"}
    query = {"tab": "unmask", "unmask": json.dumps({"unmask": values})}
    visitor = Visitor(page := visit(query, color_scheme="dark"))
    config = UnmaskingConfig(pieces="fitting", temperature=0.7, top_k=20, seed=3)
    expected = finish(served.store.get("embedded"), text, config)
    strip = page.locator(".fm-play-strip")
    hidden = strip.locator("[data-state=hidden]")
    step = page.get_by_role("slider", name="Step")
    expect(step).to_have_value(str(expected.steps_taken))
    expect(page.get_by_role("region", name="Setting B")).to_have_count(0)
    step.press("Home")
    expect(hidden).to_have_count(4)
    page.get_by_role("combobox", name="Speed").select_option("fast")
    visitor.press("Play", exact=True)
    expect(step).to_have_value(str(expected.steps_taken))
    words = re.sub(r"\s", "", strip.inner_text())
    assert words.lower() == re.sub(r"\s", "", expected.text).lower()
    visitor.press("One step back")
    expect(hidden).to_have_count(1)
    page.locator('[data-cell="A:1"]').first.click()
    first = expected.steps[0].hidden[0].candidates[0]
    expect(page.locator(".fm-cell-panel")).to_contain_text(f"{first.nll_nats:.3f}")
    with page.expect_download() as download:
        visitor.press("History (JSONL)")
    path = tmp_path / "history.jsonl"
    download.value.save_as(path)
    assert read_history(path.read_text(encoding="utf-8").splitlines()).ids == expected.ids
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
