"""The Unmask tab: what its form means and what is played."""

import re

import gradio as gr
import pytest
from ui import test_evaluate_controls as controls

from fillmask_ui.features.unmask import tab
from fillmask_ui.features.unmask.unmask_texts import finish
from fillmask_ui.features.unmask.unmask_view import PLAIN, SETTINGS, TEXT, config_of
from fillmask_ui.features.unmask.unmasking_options import UnmaskingConfig
from fillmask_ui.models import load_model
from fillmask_ui.options import options_of
from fillmask_ui.ui.evaluate.evaluate_form import PUBLIC_TEXTS_ONE_BY_ONE


def test_each_option_of_a_decoding_has_a_control_in_both_settings(session):
    with gr.Blocks() as page:
        tab.build(session)
    (form,) = [
        block.value for block in page.blocks.values() if "<form" in str(vars(block).get("value"))
    ]
    values = dict(re.findall(r'<input type="number" name="([AB]_\w+)" value="([^"]*)"', form))
    option = r'<option value="\w+">[^<]*</option>'
    chosen = rf'<select name="([AB]_\w+)">(?:{option})*<option value="(\w+)" selected'
    values |= dict(re.findall(chosen, form))
    names = options_of(UnmaskingConfig)
    assert set(values) == {f"{setting}_{name}" for setting in SETTINGS for name in names}
    for setting in SETTINGS:
        assert config_of(values, setting) == PLAIN[setting] == config_of({}, setting)


@pytest.mark.parametrize(("reference", "times"), [("embedded", 15), ("embedded:int8", 3)])
def test_the_tab_opens_with_what_guessing_all_at_once_loses(reference, times):
    model = load_model(reference)
    a, b = (finish(model, TEXT, PLAIN[setting]).pseudo_perplexity for setting in SETTINGS)
    assert b > times * a


def test_evaluate_has_its_controls_and_a_public_page_its_limit(tmp_path):
    drawn = {"hidden_share": 0.3, "order": "entropy", "top_p": 0.9, "remask": 1}
    controls.test_what_a_run_was_made_with_asks_for_it_again(
        tmp_path, {"metric": "unmasking", **drawn}
    )
    controls.test_a_public_page_says_its_limits(
        tmp_path,
        {"metric": "unmasking", "samples": PUBLIC_TEXTS_ONE_BY_ONE + 1},
        f"at most {PUBLIC_TEXTS_ONE_BY_ONE} texts by unmasking",
    )
