"""Iterative unmasking: against an independent plain loop, in batches, and for any options."""

import math
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_model import TableModel, log_softmax_at
from test_displays import shown

from fillmask_ui.errors import DataError, FillmaskError, OptionError, TextError
from fillmask_ui.features.unmask.decoding_history import history_lines, read_history
from fillmask_ui.features.unmask.unmask_texts import finish, masked_prompt, unmask, unmask_all
from fillmask_ui.features.unmask.unmasking_options import CONFIDENCES, ORDERS, UnmaskingConfig

TEXTS = (
    "the [MASK] sat on the [MASK].",
    "[MASK] [MASK] [MASK] on the [MASK] [MASK]",
    "the old dog [MASK] to the river and [MASK] in it [MASK] [MASK] [MASK] [MASK] .",
    "[MASK]",
)


@pytest.fixture(scope="module")
def model():
    return TableModel()


def probabilities(model, ids, position):
    """By torch's softmax, in a pass of its own."""
    return log_softmax_at(model, ids, position).exp().numpy()


def plain_loop(model, text, *, order, max_steps=None, threshold=None):
    """Deterministic unmasking, written anew from its description: token ids and log-probability."""
    vocabulary = model.vocabulary
    ids = list(vocabulary.encode(text).ids)
    hidden = [i for i, token_id in enumerate(ids) if token_id == vocabulary.mask_id]
    steps = max_steps or len(hidden)
    total = 0.0
    for number in count():
        if not hidden:
            return ids, total, number
        options = []
        for position, p in ((own, probabilities(model, ids, own)) for own in hidden):
            entropy = -sum(x * math.log(x) for x in p if x > 0)
            allowed = [(x, -i) for i, x in enumerate(p) if i not in vocabulary.special_ids]
            (first, token), (second, _) = sorted(allowed, reverse=True)[:2]
            sure = {"top_prob": first, "prob_diff": first - second, "entropy": -entropy}
            unsure = entropy / math.log(len(p)) if order == "entropy" else 1 - sure.get(order, 0)
            score = -position if order == "left_to_right" else sure[order]
            options.append((score, -position, -token, first, unsure))
        options.sort(reverse=True)
        if number == steps - 1:
            chosen = options
        elif threshold is None:
            chosen = options[: len(hidden) // (steps - number)]
        else:
            chosen, spent = [], 0.0
            for option in options:
                if spent < threshold:
                    chosen.append(option)
                spent += option[4]
        for _, minus_position, token, probability, _ in chosen:
            ids[-minus_position] = token
            hidden.remove(-minus_position)
            total += math.log(probability)
    raise AssertionError


@settings(max_examples=40)
@given(
    text=st.sampled_from(TEXTS),
    how=st.one_of(
        st.fixed_dictionaries(
            {
                "order": st.sampled_from([*CONFIDENCES, "left_to_right"]),
                "max_steps": st.none() | st.integers(1, 9),
            }
        ),
        st.fixed_dictionaries(
            {"order": st.sampled_from(CONFIDENCES), "threshold": st.floats(0.1, 4.0)}
        ),
    ),
)
def test_what_is_filled_without_draws_is_what_a_plain_loop_fills(model, text, how):
    expected, total, steps = plain_loop(model, text, **how)
    result = finish(model, text, UnmaskingConfig(**how))
    assert result.ids == tuple(expected)
    assert result.log_probability_nats == pytest.approx(total, abs=1e-9)
    assert result.steps_taken == steps


@pytest.mark.parametrize("order", ORDERS)
def test_a_step_that_fills_nothing_asks_nothing_of_the_model(order):
    """Floor(masks left / steps left), as xlm-core counts; results are those of the plain loop."""
    text, steps = "the [MASK] sat on the [MASK] .", 50
    config = UnmaskingConfig(max_steps=steps, order=order, temperature=1.0, seed=3)
    model = TableModel()
    decoding = list(unmask(model, text, config))
    assert len(model.calls) == 2
    assert [step.number for step in decoding] == [*range(1, steps + 1)]
    left = 2
    for step in decoding:
        assert len(step.filled) == left // (steps + 1 - step.number)
        assert len(step.hidden) == left
        left -= len(step.filled)
    if order in (*CONFIDENCES, "left_to_right"):
        model.calls.clear()
        plain = finish(model, text, UnmaskingConfig(max_steps=steps, order=order))
        assert plain.ids == tuple(plain_loop(model, text, order=order, max_steps=steps)[0])
    texts, model = [text, TEXTS[0], TEXTS[3]], TableModel()
    together = list(unmask_all(model, texts, config))
    assert len(model.calls) <= 2 + len(texts)  # a perplexity of each finished text
    for result, one_text in zip(together, texts, strict=True):
        assert result.ids == finish(model, one_text, config).ids


configurations = st.builds(
    UnmaskingConfig,
    max_steps=st.none() | st.integers(1, 9),
    order=st.sampled_from(ORDERS),
    confidence_temperature=st.sampled_from([0.0, 0.5, 3.0]),
    temperature=st.sampled_from([0.5, 1.0, 2.0]),
    top_k=st.none() | st.integers(1, 60),
    pieces=st.sampled_from(["any", "fitting"]),
    remask=st.integers(0, 3),
    seed=st.integers(0, 1000),
)


@settings(max_examples=30)
@given(config=configurations, text=st.sampled_from(TEXTS))
def test_whatever_the_options_a_decoding_keeps_its_promises(model, config, text):
    vocabulary = model.vocabulary
    before = vocabulary.encode(text).ids
    hidden = {i for i, token_id in enumerate(before) if token_id == vocabulary.mask_id}
    most = config.max_steps or len(hidden)
    result = finish(model, text, config)
    assert result.steps_taken <= most
    assert vocabulary.mask_id not in result.ids
    left = set(hidden)
    for step in result.steps:
        assert {state.position for state in step.hidden} == left
        assert len(step.filled) == (
            len(left) if step.number == most else len(left) // (most - step.number + 1)
        )
        filled = {token.position for token in step.filled}
        again = {token.position for token in step.remasked}
        assert filled <= left
        assert again <= hidden - left
        assert len(again) <= config.remask
        left = left - filled | again
        for position, token_id in enumerate(step.ids):
            assert (token_id == vocabulary.mask_id) == (position in left)
            assert position in hidden or token_id == before[position]
            assert position not in hidden - left or token_id not in vocabulary.special_ids
    gains = [step.log_probability_nats for step in result.steps]
    assert result.log_probability_nats == pytest.approx(math.fsum(gains), abs=1e-12)
    assert result.steps[-1].total_log_probability_nats == pytest.approx(math.fsum(gains), abs=1e-9)
    stands = {token.position: token for step in result.steps for token in step.filled}
    assert result.log_probability_nats == pytest.approx(
        sum(math.log(token.probability) for token in stands.values()), abs=1e-9
    )


@settings(max_examples=8)
@given(config=configurations)
def test_a_batch_gives_what_each_text_gives_alone(model, config):
    together = list(unmask_all(model, TEXTS * 2, config))
    for text, result in zip(TEXTS * 2, together, strict=True):
        alone = finish(model, text, config)
        assert result.ids == alone.ids
        assert [s.filled for s in result.steps] == [s.filled for s in alone.steps]


@pytest.mark.parametrize("narrow", [{}, {"top_k": 2}, {"top_p": 0.2}])
def test_draws_follow_the_distribution_of_the_most_probable_tokens(model, narrow):
    """Probabilities are told of the whole vocabulary, whatever was drawn among."""
    ids = model.vocabulary.encode("the [MASK]").ids
    p = probabilities(model, ids, 2)
    drawn = []
    for seed in range(800):
        config = UnmaskingConfig(temperature=1.0, seed=seed, **narrow)
        ((token,),) = (step.filled for step in unmask(model, "the [MASK]", config))
        assert token.probability == pytest.approx(p[token.token_id], rel=1e-6)
        drawn.append(token.token_id)
    order = [i for i in np.argsort(-p) if i not in model.vocabulary.special_ids]
    few = order[: narrow.get("top_k")]
    if "top_p" in narrow:
        sums = np.cumsum(p[order]) / p[order].sum()
        few = order[: int(np.searchsorted(sums, 0.2)) + 1]
    expected = np.zeros(len(p))
    expected[few] = p[few] / p[few].sum()
    shares = np.bincount(drawn, minlength=len(p)) / len(drawn)
    assert set(drawn) <= set(few)
    # Five standard errors of each share, and one token more.
    assert (abs(shares - expected) < 5 * np.sqrt(expected / len(drawn)) + 1 / len(drawn)).all()


def test_fitting_pieces_go_on_with_a_word(model):
    vocabulary = model.vocabulary
    for text in ("[MASK] [MASK] [MASK] [MASK]", "the [MASK] . [MASK]", "the [MASK][MASK]"):
        hidden = {i for i, one in enumerate(vocabulary.encode(text).ids) if one == 4}
        for seed in range(20):
            config = UnmaskingConfig(pieces="fitting", temperature=2.0, seed=seed)
            ids = finish(model, text, config).ids
            for place in (own for own in hidden if vocabulary.is_continuation(ids[own])):
                assert place - 1 in hidden
                assert vocabulary.word(ids[place - 1])[-1:].isalnum()


def test_a_history_is_read_back(model):
    result = finish(model, TEXTS[2], UnmaskingConfig(remask=1, max_steps=4))
    lines = "\n".join(history_lines(result)).splitlines()
    assert read_history(lines) == result
    for broken in ([], lines[:-1], ["{}"], ["no json"]):
        with pytest.raises(DataError, match="no history"):
            read_history(broken)


def test_a_prompt_is_masks_between_what_is_given(model):
    vocabulary = model.vocabulary
    assert masked_prompt(vocabulary, 2, prefix="the cat", suffix=".") == "the cat [MASK] [MASK] ."
    assert masked_prompt(vocabulary, 3) == "[MASK] [MASK] [MASK]"
    with pytest.raises(OptionError, match="at least 1"):
        masked_prompt(vocabulary, 0)


def test_one_bad_text_costs_the_others_nothing(model):
    long = masked_prompt(model.vocabulary, model.max_tokens)
    results = list(unmask_all(model, ["the cat", TEXTS[0], long, "", TEXTS[3]]))
    bad = [isinstance(result, FillmaskError) for result in results]
    assert bad == [True, False, True, True, False]
    assert results[1].ids == finish(model, TEXTS[0]).ids
    with pytest.raises(TextError, match="takes at most"):
        next(unmask(model, long))


def test_a_notebook_shows_its_steps():
    result = finish(TableModel(seed=3), "the [MASK] sat on the [MASK] .")
    assert shown(result).total_log_probability_nats.iloc[-1] == result.log_probability_nats
