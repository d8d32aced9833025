"""The Unmask tab: what its form means, what is played, and a decoding to its end in a browser."""

import json
import re
from urllib.parse import quote

import pytest
from markupsafe import escape
from playwright.sync_api import expect
from table_model import TableModel

from fillmask_ui.errors import OptionError
from fillmask_ui.models import load_model
from fillmask_ui.options import options_of
from fillmask_ui.ui.components import answered
from fillmask_ui.ui.figure import Asked
from fillmask_ui.ui.unmask import unmask_view
from fillmask_ui.ui.unmask.unmask_view import (
    MOST_HIDDEN,
    PLAIN,
    SIDES,
    TEXT,
    config_of,
    controls,
    text_of,
)
from fillmask_ui.unmasking import UnmaskingConfig, finish, read_history


@pytest.fixture(scope="module")
def model():
    return TableModel()


def test_each_option_of_a_decoding_has_a_control_on_both_sides():
    for side in SIDES:
        names = [control.name for control in controls(side)]
        assert names == [f"{side}_{name}" for name in options_of(UnmaskingConfig)]
        values = {control.name: control.value for control in controls(side)}
        assert config_of(values, side) == PLAIN[side]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"A_max_steps": "0"}, "setting A: max steps must be at least 1"),
        ({"A_max_steps": "1.5"}, "Max steps must be a whole number"),
        ({"A_temperature": "nan"}, "finite"),
        ({"A_top_k": "3", "A_top_p": "0.5"}, "both given"),
        ({"A_order": "none", "A_threshold": "1"}, "has none"),
    ],
)
def test_choices_that_mean_nothing_are_told(values, message):
    with pytest.raises(OptionError, match=message):
        config_of(values, "A")


def test_a_text_comes_from_masks_from_a_prompt_or_from_a_length(model):
    assert text_of({"text": "a [MASK]"}, model) == "a [MASK]"
    prompt = {"source": "prompt", "prefix": "the cat", "suffix": ".", "new_tokens": "2"}
    assert text_of(prompt, model) == "the cat [MASK] [MASK] ."
    assert text_of({"source": "length", "length": "3"}, model) == "[MASK] [MASK] [MASK]"
    for bad in ("0", "-1", "x", str(MOST_HIDDEN + 1), "9" * 5000):
        with pytest.raises(OptionError, match="from 1 to"):
            text_of({"source": "length", "length": bad}, model)


def test_frames_say_what_stands_where_after_each_step(model):
    config = UnmaskingConfig(order="entropy", remask=1, max_steps=4)
    result = finish(model, "[MASK] [MASK] [MASK] on the [MASK]", config)
    width = model.signature.vocabulary_size
    frames = unmask_view.frames(result, "entropy", model.vocabulary, width)
    assert len(frames) == result.steps_taken
    for step, frame in zip(result.steps, frames, strict=True):
        assert tuple(frame) == result.hidden
        new = {token.position for token in step.filled}
        again = {token.position for token in step.remasked}
        assert {p for p, cell in frame.items() if cell.state == "new"} == new
        assert {p for p, cell in frame.items() if cell.state == "again"} == again
        for position, cell in frame.items():
            stands = step.ids[position] != model.vocabulary.mask_id
            assert stands == (cell.state in ("new", "filled"))
            assert 0 <= cell.sure <= 1
            if stands:
                assert cell.word == unmask_view.named(model.vocabulary, step.ids[position])


def test_both_sides_are_shown_with_their_figures(session):
    shown = unmask_view.FIGURE.show(Asked(session, {"both": "1"}, session.model("embedded")))
    while not hasattr(shown, "pieces"):
        shown = unmask_view.FIGURE.show(Asked(session, {"both": "1"}, session.model("embedded")))
    for side in SIDES:
        result = finish(session.model("embedded"), TEXT, PLAIN[side])
        assert f"{result.log_probability_nats:.2f} nats" in shown.pieces["sides"]
        assert str(escape(result.text)) in shown.pieces["comparison"]


@pytest.mark.parametrize("reference", ["embedded", "embedded:int8"])
def test_the_tab_opens_with_what_guessing_all_at_once_loses(reference):
    model = load_model(reference)
    a, b = (finish(model, TEXT, PLAIN[side]).pseudo_perplexity for side in SIDES)
    assert b > 5 * a


def test_a_cell_and_a_history_come_from_the_same_decoding(session):
    request = {"model": "embedded", "values": {"text": TEXT}, "side": "A"}
    while "text" not in (file := answered(unmask_view.history, session, request)):
        assert file["error"] == "The decoding is not finished yet"
    result = read_history(file["text"].splitlines())
    assert result.ids == finish(session.model("embedded"), TEXT, PLAIN["A"]).ids
    state = result.steps[1].hidden[0]
    html = unmask_view.cell(session, {**request, "step": 2, "position": state.position})["html"]
    for candidate in state.candidates:
        assert f"{candidate.nll_nats:.3f}" in html
    for senseless in ({"step": 99, "position": 1}, {}):
        assert unmask_view.cell(session, {**request, **senseless}) == {"html": ""}
    bad = {**request, "values": {"A_top_k": "0"}}
    assert "top k" in answered(unmask_view.cell, session, bad)["error"]
    assert "top k" in answered(unmask_view.history, session, bad)["error"]


def strip(page, side):
    return page.locator(f'.fm-unmasked[data-side="{side}"] .fm-play-strip')


def test_a_decoding_is_played_to_its_end_in_a_browser(page, served, tmp_path):
    text = "The [MASK] [MASK] to the [MASK] and [MASK] it ."
    values = {
        "unmask": {"text": text, "A_temperature": "0.7", "A_top_k": "20", "A_seed": "3", "both": ""}
    }
    page.goto(f"{served.url}?tab=unmask&unmask={quote(json.dumps(values))}")
    config = UnmaskingConfig(pieces="fitting", temperature=0.7, top_k=20, seed=3)
    wanted = finish(load_model("embedded"), text, config)
    expect(page.locator(".fm-unmask")).to_have_attribute("data-at", str(wanted.steps_taken))
    assert page.locator(".fm-unmasked").count() == 1
    page.get_by_role("button", name="To the beginning").click()
    expect(strip(page, "A").locator(".fm-play-hidden")).to_have_count(4)
    page.locator('[data-player="speed"]').select_option("fast")
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.locator(".fm-unmask")).to_have_attribute("data-at", str(wanted.steps_taken))
    words = re.sub(r"\s", "", strip(page, "A").inner_text())
    assert words.lower() == re.sub(r"\s", "", wanted.text).lower()
    page.get_by_role("button", name="One step back").click()
    expect(strip(page, "A").locator(".fm-play-hidden")).to_have_count(1)
    page.locator('.fm-unmasked [data-cell="A:1"]').first.click()
    first = wanted.steps[0].hidden[0].candidates[0]
    expect(page.locator(".fm-cell-panel")).to_contain_text(f"{first.nll_nats:.3f}")
    with page.expect_download() as download:
        page.get_by_role("button", name="History (JSONL)").click()
    path = tmp_path / "history.jsonl"
    download.value.save_as(path)
    assert read_history(path.read_text(encoding="utf-8").splitlines()).ids == wanted.ids


def test_bad_choices_are_told_in_the_page(page, served):
    page.goto(f"{served.url}?tab=unmask")
    expect(page.locator(".fm-unmasked")).to_have_count(2)
    page.get_by_label("Threshold").first.fill("-1")
    notice = page.locator(".fm-unmask .fm-error")
    expect(notice).to_contain_text("Setting A: threshold must be above 0")
    page.get_by_label("Threshold").first.fill("0.5")
    expect(notice).to_have_count(0)
