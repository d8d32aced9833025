"""evaluate with a baseline: identical masks, differences against torch, other tokenizers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from evaluated import ALL_CONFIGS, MODEL, TEXTS, all_logits, measured
from table_model import TOKENS, TableModel, TableVocabulary, letter_vocabulary
from torch.nn.functional import kl_div, log_softmax

from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.masking import MaskRecipe


@pytest.mark.parametrize("config", ALL_CONFIGS, ids=lambda config: config.signature)
def test_the_same_model_twice_differs_by_exactly_nothing(config):
    summary = summarize(evaluate(MODEL, TEXTS, config, baseline=TableModel(seed=1)), config=config)
    comparison = summary.comparison
    assert comparison.relative_change == comparison.difference_nats == 0.0
    assert comparison.interval.low == comparison.interval.high == 0.0
    assert comparison.mean_kl_nats == comparison.mean_kl_reverse_nats == 0.0
    assert comparison.mean_abs_logit_difference == comparison.max_abs_logit_difference == 0.0
    assert (comparison.agreement, comparison.flips) == (1.0, 0)
    assert comparison.verdict.label == "PASS"


def test_differences_equal_torch():
    other, config = TableModel(seed=1, noise=0.3), EvaluationConfig("uniform")
    options = {"reduction": "none", "log_target": True}
    for row in measured(evaluate(MODEL, TEXTS, config, baseline=other)).values():
        seen = row.ids.copy()
        seen[row.cols] = row.shown_ids
        a, b = (all_logits(model, seen)[row.cols - 1].double() for model in (MODEL, other))
        forward = kl_div(log_softmax(b, 1), log_softmax(a, 1), **options).sum(1)
        backward = kl_div(log_softmax(a, 1), log_softmax(b, 1), **options).sum(1)
        np.testing.assert_allclose(row.difference.kl_nats, forward, atol=1e-9)
        np.testing.assert_allclose(row.difference.kl_reverse_nats, backward, atol=1e-9)
        np.testing.assert_allclose(row.difference.mean_abs, (a - b).abs().mean(1), rtol=1e-5)
        np.testing.assert_allclose(row.difference.max_abs, (a - b).abs().amax(1), rtol=1e-5)
    # Of a model that pads its vocabulary the tokens that both have.
    wide = TableModel(seed=1, width=len(TOKENS) + 7)
    for row in measured(evaluate(MODEL, TEXTS[:5], config, baseline=wide)).values():
        assert ((row.difference.kl_nats > 0) & np.isfinite(row.difference.kl_nats)).all()


@pytest.mark.parametrize(
    "config",
    [
        EvaluationConfig("pseudo-perplexity"),
        EvaluationConfig(recipe=MaskRecipe(0.3, whole_word=True)),
    ],
    ids=lambda config: config.signature,
)
def test_other_tokenizers_are_compared_by_character(config):
    config = replace(config, max_tokens=24)
    other = TableModel(seed=2, vocabulary=letter_vocabulary())
    with pytest.raises(OptionError, match=r"different tokenizers.*pseudo-perplexity"):
        next(evaluate(MODEL, TEXTS, EvaluationConfig("uniform"), baseline=other))
    rows = list(evaluate(MODEL, TEXTS, config, baseline=other))
    summary = summarize(rows, config=config)
    found = measured(rows)
    assert len(found) > 20
    for row in found.values():
        assert row.baseline is None
        assert row.characters == row.other.characters > 0
        assert row.text == row.other.text
        assert len(row.other.ids) >= len(row.ids)
    alone = measured(evaluate(other, TEXTS, config))
    assert all(row.other.to_dict() == alone[index].to_dict() for index, row in found.items())
    comparison = summary.comparison
    assert comparison.unit == "character"
    own = math.fsum(row.scores.nll_nats.sum() for row in found.values())
    base = math.fsum(row.other.scores.nll_nats.sum() for row in found.values())
    change = own / base - 1
    if config.metric.name == "pseudo-perplexity":
        tokens = sum(len(row.other.ids) for row in found.values())
        tokens -= 2 * len(found)  # [CLS] and [SEP]
        change = math.expm1((own - base) / tokens)
    assert comparison.relative_change == pytest.approx(change, rel=1e-12)
    assert summary.model.nll_per_character_nats == pytest.approx(
        own / sum(row.characters for row in found.values()), rel=1e-12
    )
    assert comparison.agreement is None
    # Texts that one of the two had to cut are not comparable.
    assert summary.skipped["tokenizers do not cover the same characters"] > 0


def test_an_unused_token_more_changes_no_verdict_on_pseudo_perplexity():
    """Two tokenizers that split alike must give what one gives: e^ of the loss a token."""
    config = EvaluationConfig("pseudo-perplexity")
    base = TableModel(seed=1)
    worse = TableModel(seed=1, noise=0.3)
    renamed = TableModel(seed=1, noise=0.3)
    renamed.vocabulary = TableVocabulary((*TOKENS, "neverused"))
    for name in ("left", "right", "own"):
        table = np.pad(getattr(renamed, name), (0, 1), constant_values=-500)
        setattr(renamed, name, table.astype(np.float32))
    one, two = (
        summarize(evaluate(model, TEXTS, config, baseline=base), config=config)
        for model in (worse, renamed)
    )
    assert (one.comparison.unit, two.comparison.unit) == ("token", "character")
    perplexities = one.model.perplexity / one.baseline.perplexity
    assert one.comparison.relative_change == pytest.approx(perplexities - 1)
    assert two.comparison.relative_change == pytest.approx(perplexities - 1)
    assert two.comparison.interval.low == pytest.approx(one.comparison.interval.low)
    assert two.comparison.verdict == one.comparison.verdict
    assert one.compared_metric == "pseudo perplexity"
    assert two.compared_metric == "pseudo perplexity over the baseline's tokens"
