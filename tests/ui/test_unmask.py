"""The Unmask tab: what its form means and what is played."""

import pytest
from table_model import TableModel

from fillmask_ui.models import load_model
from fillmask_ui.options import options_of
from fillmask_ui.ui.unmask import unmask_view
from fillmask_ui.ui.unmask.unmask_view import (
    PLAIN,
    SIDES,
    TEXT,
    config_of,
    controls,
)
from fillmask_ui.unmasking import UnmaskingConfig, finish


@pytest.fixture(scope="module")
def model():
    return TableModel()


def test_each_option_of_a_decoding_has_a_control_on_both_sides():
    for side in SIDES:
        names = [control.name for control in controls(side)]
        assert names == [f"{side}_{name}" for name in options_of(UnmaskingConfig)]
        values = {control.name: control.value for control in controls(side)}
        assert config_of(values, side) == PLAIN[side]


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


@pytest.mark.parametrize("reference", ["embedded", "embedded:int8"])
def test_the_tab_opens_with_what_guessing_all_at_once_loses(reference):
    model = load_model(reference)
    a, b = (finish(model, TEXT, PLAIN[side]).pseudo_perplexity for side in SIDES)
    assert b > 5 * a
