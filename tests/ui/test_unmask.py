"""The Unmask tab: what its form means and what is played."""

import pytest

from fillmask_ui.models import load_model
from fillmask_ui.options import options_of
from fillmask_ui.ui.unmask.unmask_view import PLAIN, SIDES, TEXT, config_of, controls, written
from fillmask_ui.unmasking import UnmaskingConfig, finish


def test_each_option_of_a_decoding_has_a_control_on_both_sides():
    for side in SIDES:
        assert list(controls(side)) == list(options_of(UnmaskingConfig))
        values = {f"{side}_{name}": written(own) for name, own in controls(side).items()}
        assert config_of(values, side) == PLAIN[side]


@pytest.mark.parametrize("reference", ["embedded", "embedded:int8"])
def test_the_tab_opens_with_what_guessing_all_at_once_loses(reference):
    model = load_model(reference)
    a, b = (finish(model, TEXT, PLAIN[side]).pseudo_perplexity for side in SIDES)
    assert b > 5 * a
