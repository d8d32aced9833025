"""Iterative unmasking: against an independent plain loop, in batches, and for any options."""

import math
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_model import TableModel

from fillmask_ui.errors import DataError, FillmaskError, OptionError, TextError
from fillmask_ui.unmasking import (
    UnmaskingConfig,
    finish,
    history_lines,
    masked_prompt,
    read_history,
    unmask,
    unmask_all,
)
from fillmask_ui.unmasking.unmask import pseudo_perplexity

pytestmark = pytest.mark.quick

TEXTS = (
    "the [MASK] sat on the [MASK].",
    "[MASK] [MASK] [MASK] on the [MASK] [MASK]",
    "the old dog [MASK] to the river and [MASK] in it [MASK] [MASK] [MASK] [MASK] .",
    "[MASK]",
)


@pytest.fixture(scope="module")
def model():
    return TableModel()


def distributions(model, ids, positions):
    """Softmax over the vocabulary at some positions, one pass for each, the plain way."""
    found = []
    for position in positions:
        logits = model.logits_at(
            np.array([ids]), np.ones((1, len(ids)), int), np.array([0]), np.array([position])
        )[0].astype(np.float64)
        weights = np.exp(logits - logits.max())
        found.append(weights / weights.sum())
    return found


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
        for position, p in zip(hidden, distributions(model, ids, hidden), strict=True):
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


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("order", ["top_prob", "prob_diff", "entropy", "left_to_right"])
@pytest.mark.parametrize("max_steps", [None, 1, 2, 3, 9])
def test_a_fixed_number_per_step_is_what_a_plain_loop_fills(model, text, order, max_steps):
    wanted, total, steps = plain_loop(model, text, order=order, max_steps=max_steps)
    result = finish(model, text, UnmaskingConfig(order=order, max_steps=max_steps))
    assert result.ids == tuple(wanted)
    assert result.log_probability_nats == pytest.approx(total, abs=1e-9)
    assert result.steps_taken == steps


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("order", ["top_prob", "prob_diff", "entropy"])
@pytest.mark.parametrize("threshold", [0.3, 1.0, 2.5])
def test_a_threshold_is_what_a_plain_loop_makes_of_it(model, text, order, threshold):
    wanted, total, steps = plain_loop(model, text, order=order, threshold=threshold)
    result = finish(model, text, UnmaskingConfig(order=order, threshold=threshold))
    assert result.ids == tuple(wanted)
    assert result.log_probability_nats == pytest.approx(total, abs=1e-9)
    assert result.steps_taken == steps


configurations = st.builds(
    UnmaskingConfig,
    max_steps=st.one_of(st.none(), st.integers(1, 9)),
    order=st.sampled_from(["none", "top_prob", "prob_diff", "entropy", "left_to_right"]),
    confidence_temperature=st.sampled_from([0.0, 0.5, 3.0]),
    temperature=st.sampled_from([0.5, 1.0, 2.0]),
    top_k=st.one_of(st.none(), st.integers(1, 60)),
    pieces=st.sampled_from(["any", "fitting"]),
    remask=st.integers(0, 3),
    seed=st.integers(0, 1000),
)


@settings(max_examples=60)
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
        for place, token_id in enumerate(step.ids):
            assert (token_id == vocabulary.mask_id) == (place in left)
            assert place in hidden or token_id == before[place]
            assert place not in hidden - left or token_id not in vocabulary.special_ids
    own = [step.log_probability_nats for step in result.steps]
    assert result.log_probability_nats == pytest.approx(math.fsum(own), abs=1e-12)
    assert result.steps[-1].total_log_probability_nats == pytest.approx(math.fsum(own), abs=1e-9)
    stands = {token.position: token for step in result.steps for token in step.filled}
    assert result.log_probability_nats == pytest.approx(
        sum(math.log(token.probability) for token in stands.values()), abs=1e-9
    )


@settings(max_examples=20)
@given(config=configurations)
def test_a_batch_gives_what_each_text_gives_alone(model, config):
    together = list(unmask_all(model, TEXTS * 2, config))
    for text, result in zip(TEXTS * 2, together, strict=True):
        alone = finish(model, text, config)
        assert result.ids == alone.ids
        assert [s.filled for s in result.steps] == [s.filled for s in alone.steps]


def test_probabilities_are_those_of_the_whole_vocabulary_at_temperature_1(model):
    config = UnmaskingConfig(temperature=2.0, top_k=3, max_steps=1)
    (step,) = unmask(model, TEXTS[0], config)
    before = model.vocabulary.encode(TEXTS[0]).ids
    wanted = distributions(model, before, [token.position for token in step.filled])
    for token, p in zip(step.filled, wanted, strict=True):
        assert token.probability == pytest.approx(p[token.token_id], rel=1e-6)


def test_draws_follow_the_distribution(model):
    text = "the [MASK]"
    ids = model.vocabulary.encode(text).ids
    (p,) = distributions(model, ids, [2])
    p = np.array([0 if i in model.vocabulary.special_ids else x for i, x in enumerate(p)])
    p /= p.sum()
    drawn = [
        finish(model, text, UnmaskingConfig(temperature=1.0, seed=seed)).ids[2]
        for seed in range(2_000)
    ]
    shares = np.bincount(drawn, minlength=len(p)) / len(drawn)
    # Five standard errors of each share, and one token more.
    assert (abs(shares - p) < 5 * np.sqrt(p / len(drawn)) + 1 / len(drawn)).all()


@pytest.mark.parametrize("narrow", [{"top_k": 2}, {"top_p": 0.2}])
def test_only_the_most_probable_tokens_are_drawn(model, narrow):
    text = "the [MASK]"
    ids = model.vocabulary.encode(text).ids
    (p,) = distributions(model, ids, [2])
    order = [i for i in np.argsort(-p) if i not in model.vocabulary.special_ids]
    if "top_k" in narrow:
        few = order[:2]
    else:
        shares = np.cumsum(p[order]) / p[order].sum()
        few = order[: int(np.searchsorted(shares, 0.2)) + 1]
    drawn = {
        finish(model, text, UnmaskingConfig(temperature=1.0, seed=seed, **narrow)).ids[2]
        for seed in range(300)
    }
    assert drawn == set(few)


def test_fitting_pieces_go_on_with_a_word(model):
    vocabulary = model.vocabulary
    for text in ("[MASK] [MASK] [MASK] [MASK]", "the [MASK] . [MASK]", "the [MASK][MASK]"):
        for seed in range(40):
            config = UnmaskingConfig(pieces="fitting", temperature=2.0, seed=seed)
            ids = finish(model, text, config).ids
            hidden = {i for i, one in enumerate(vocabulary.encode(text).ids) if one == 4}
            for place in hidden:
                if vocabulary.is_continuation(ids[place]):
                    assert place - 1 in hidden
                    assert vocabulary.word(ids[place - 1])[-1:].isalnum()


def test_the_pseudo_perplexity_is_that_of_the_evaluator(model):
    from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
    from fillmask_ui.records import Example

    text = "the old dog ran to the river and sat on a mat."
    config = EvaluationConfig(metric="pseudo-perplexity")
    measured = summarize(evaluate(model, [Example(0, text)], config=config), config=config)
    own = pseudo_perplexity(model, model.vocabulary.encode(text).ids)
    assert own == pytest.approx(measured.model.metric, rel=1e-9)


def test_a_history_is_read_back(model, tmp_path):
    result = finish(model, TEXTS[2], UnmaskingConfig(remask=1, max_steps=4))
    path = tmp_path / "history.jsonl"
    path.write_text("\n".join(history_lines(result)), encoding="utf-8")
    assert read_history(path.read_text(encoding="utf-8").splitlines()) == result
    lines = path.read_text(encoding="utf-8").splitlines()
    for broken in ([], lines[:-1], ["{}"], ["no json"]):
        with pytest.raises(DataError, match="no history"):
            read_history(broken)


def test_a_prompt_is_masks_between_what_is_given(model):
    vocabulary = model.vocabulary
    assert masked_prompt(vocabulary, 2, prefix="the cat", suffix=".") == "the cat [MASK] [MASK] ."
    assert masked_prompt(vocabulary, 3) == "[MASK] [MASK] [MASK]"
    with pytest.raises(OptionError, match="at least 1"):
        masked_prompt(vocabulary, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_steps": 0}, "max steps must be at least 1"),
        ({"top_k": 3, "top_p": 0.5}, "both given"),
        ({"order": "none", "threshold": 0.5}, "has none"),
        ({"order": "left_to_right", "threshold": 0.5}, "has none"),
        ({"threshold": 0.0}, "above 0"),
        ({"temperature": math.nan}, "finite"),
        ({"confidence_temperature": math.inf}, "finite"),
        ({"temperature": -1}, "at least 0"),
        ({"top_p": 1.5, "temperature": 1}, "at most 1"),
        ({"order": "best"}, "unknown order 'best'"),
        ({"remask": -1}, "at least 0"),
    ],
)
def test_choices_that_mean_nothing_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        UnmaskingConfig(**options)


def test_one_bad_text_costs_the_others_nothing(model):
    long = masked_prompt(model.vocabulary, model.max_tokens)
    results = list(unmask_all(model, ["the cat", TEXTS[0], long, "", TEXTS[3]]))
    bad = [isinstance(result, FillmaskError) for result in results]
    assert bad == [True, False, True, True, False]
    assert results[1] == finish_like(model, TEXTS[0], results[1])
    with pytest.raises(TextError, match="takes at most"):
        next(unmask(model, long))


def finish_like(model, text, other):
    """A result with the durations of another, which differ from run to run."""
    from dataclasses import replace

    own = finish(model, text)
    steps = [
        replace(step, duration_seconds=given.duration_seconds)
        for step, given in zip(own.steps, other.steps, strict=True)
    ]
    return replace(own, steps=tuple(steps))
