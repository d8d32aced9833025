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
        assert list(controls(side)) == list(options_of(UnmaskingConfig))
        values = {control.name: control.value for control in controls(side).values()}
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


def test_a_step_tells_which_hidden_token_it_made_surer(model):
    result = finish(model, "[MASK] [MASK] [MASK] on the [MASK]", UnmaskingConfig())
    gains = [unmask_view.grown(result, number + 1) for number in range(result.steps_taken)]
    assert any(gains) and gains[-1] is None
    for gain, before, after in zip(gains, result.steps, result.steps[1:], strict=False):
        if gain is None:
            continue
        best, probability = gain
        (position,) = (own.position for own in after.hidden if best in own.candidates[:1])
        (seen,) = (own.candidates for own in before.hidden if own.position == position)
        assert probability in [own.probability for own in seen if own.token_id == best.token_id]
        assert best.probability - probability >= 0.01


@pytest.mark.parametrize("reference", ["embedded", "embedded:int8"])
def test_the_tab_opens_with_what_guessing_all_at_once_loses(reference):
    model = load_model(reference)
    a, b = (finish(model, TEXT, PLAIN[side]).pseudo_perplexity for side in SIDES)
    assert b > 5 * a
