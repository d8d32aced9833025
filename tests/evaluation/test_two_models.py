"""evaluate with a baseline: differences against torch, other tokenizers; figures by hand."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from evaluated import ALL_CONFIGS, MODEL, TEXTS, all_logits, measured
from table_model import TOKENS, TableModel, TableVocabulary, letter_vocabulary
from torch.nn.functional import kl_div, log_softmax

from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.intervals import ratio_interval
from fillmask_ui.masking import MaskRecipe
from fillmask_ui.show.sentences import change_text


@pytest.mark.parametrize("config", ALL_CONFIGS, ids=lambda config: config.signature)
def test_the_same_model_twice_differs_by_exactly_nothing(config):
    summary = summarize(evaluate(TableModel(seed=1), TEXTS, config, candidate=MODEL), config=config)
    comparison = summary.comparison
    assert comparison.relative_change == comparison.difference_nats == 0.0
    assert comparison.interval.low == comparison.interval.high == 0.0
    assert comparison.mean_kl_nats == comparison.mean_kl_reverse_nats == 0.0
    assert comparison.mean_abs_logit_difference == comparison.max_abs_logit_difference == 0.0
    assert (comparison.agreement, comparison.flips) == (1.0, 0)
    assert comparison.verdict.label == "PASS"


def test_differences_equal_torch():
    noisy, config = TableModel(seed=1, noise=0.3), EvaluationConfig("uniform")
    options = {"reduction": "none", "log_target": True}
    for row in measured(evaluate(noisy, TEXTS, config, candidate=MODEL)).values():
        seen = row.ids.copy()
        seen[row.cols] = row.shown_ids
        a, b = (all_logits(model, seen)[row.cols - 1].double() for model in (MODEL, noisy))
        forward = kl_div(log_softmax(b, 1), log_softmax(a, 1), **options).sum(1)
        backward = kl_div(log_softmax(a, 1), log_softmax(b, 1), **options).sum(1)
        np.testing.assert_allclose(row.difference.kl_nats, forward, atol=1e-9)
        np.testing.assert_allclose(row.difference.kl_reverse_nats, backward, atol=1e-9)
        np.testing.assert_allclose(row.difference.mean_abs, (a - b).abs().mean(1), rtol=1e-5)
        np.testing.assert_allclose(row.difference.max_abs, (a - b).abs().amax(1), rtol=1e-5)
    # Of a model that pads its vocabulary the tokens that both have.
    wide = TableModel(seed=1, width=len(TOKENS) + 7)
    for row in measured(evaluate(wide, TEXTS[:5], config, candidate=MODEL)).values():
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
    letters = TableModel(seed=2, vocabulary=letter_vocabulary())
    with pytest.raises(OptionError, match=r"different tokenizers.*pseudo-perplexity"):
        next(evaluate(letters, TEXTS, EvaluationConfig("uniform"), candidate=MODEL))
    rows = list(evaluate(letters, TEXTS, config, candidate=MODEL))
    summary = summarize(rows, config=config)
    rows_by_id = measured(rows)
    assert len(rows_by_id) > 20
    for row in rows_by_id.values():
        assert row.reference is None
        assert row.characters == row.reference_text.characters > 0
        assert row.text == row.reference_text.text
        assert len(row.reference_text.ids) >= len(row.ids)
    alone = measured(evaluate(letters, TEXTS, config))
    assert all(
        row.reference_text.to_dict() == alone[index].to_dict() for index, row in rows_by_id.items()
    )
    comparison = summary.comparison
    assert comparison.unit == "character"
    total = math.fsum(row.scores.nll_nats.sum() for row in rows_by_id.values())
    base = math.fsum(row.reference_text.scores.nll_nats.sum() for row in rows_by_id.values())
    change = total / base - 1
    if config.metric.name == "pseudo-perplexity":
        tokens = sum(len(row.reference_text.ids) for row in rows_by_id.values())
        tokens -= 2 * len(rows_by_id)  # [CLS] and [SEP]
        change = math.expm1((total - base) / tokens)
    assert comparison.relative_change == pytest.approx(change, rel=1e-12)
    assert summary.model.nll_per_character_nats == pytest.approx(
        total / sum(row.characters for row in rows_by_id.values()), rel=1e-12
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
    by_tokens, two = (
        summarize(evaluate(base, TEXTS, config, candidate=model), config=config)
        for model in (worse, renamed)
    )
    assert (by_tokens.comparison.unit, two.comparison.unit) == ("token", "character")
    perplexities = by_tokens.model.perplexity / by_tokens.reference.perplexity
    assert by_tokens.comparison.relative_change == pytest.approx(perplexities - 1)
    assert two.comparison.relative_change == pytest.approx(perplexities - 1)
    assert two.comparison.interval.low == pytest.approx(by_tokens.comparison.interval.low)
    assert two.comparison.verdict == by_tokens.comparison.verdict
    assert by_tokens.compared_metric == "pseudo perplexity"
    assert two.compared_metric == "pseudo perplexity over the reference's tokens"


BITS, PSEUDO = EvaluationConfig("bits-per-byte"), EvaluationConfig("pseudo-perplexity")
UNIFORM = EvaluationConfig("uniform", seed=5)
NOISY = TableModel(seed=1, noise=0.4)


def summary(config, *models):
    """Of one model, or of a reference and a candidate."""
    rows = evaluate(models[0], TEXTS, config, candidate=models[1] if models[1:] else None)
    return summarize(rows, config=config)


def test_bits_per_byte_are_the_losses_of_pseudo_perplexity():
    bits, pseudo = summary(BITS, MODEL), summary(PSEUDO, MODEL)
    assert bits.model.mean_nll_nats == pseudo.model.mean_nll_nats
    assert pseudo.to_dict()["pseudo_perplexity"] == pseudo.model.perplexity
    size = sum(len(text.strip().encode()) for text in TEXTS)
    whole = math.log2(pseudo.model.metric) * pseudo.model.tokens
    assert bits.model.metric == pytest.approx(whole / size, rel=1e-12)
    for summarized in (bits, pseudo):
        low, high = summarized.to_dict()["interval_95"]
        assert (
            low
            < summarized.to_dict()[summarized.metric.figure_key]
            == summarized.model.metric
            < high
        )
    two = summary(PSEUDO, NOISY, MODEL)
    expected = two.model.perplexity / two.reference.perplexity - 1
    assert two.comparison.relative_change == pytest.approx(expected)


def test_characters_count_by_their_bytes():
    vocabulary = TableVocabulary((*TableVocabulary().tokens, "ü", "語"))
    (row,) = evaluate(TableModel(seed=1, vocabulary=vocabulary), ["ü 語"], BITS)
    assert BITS.metric.contribution(row, row.scores).denominator == 2 + 1 + 3
    (row,) = evaluate(MODEL, ["the 日本 cat"], BITS)  # what cannot be spelled counts for nothing
    assert row.left_out == 1
    assert BITS.metric.contribution(row, row.scores).denominator == len(b"the  cat")


def test_bits_per_byte_compare_two_tokenizers():
    baseline = TableModel(seed=1, vocabulary=letter_vocabulary())
    rows = list(evaluate(baseline, TEXTS, BITS, candidate=MODEL))
    total, noisy = (
        sum(row.scores.nll_nats.sum() for row in side)
        for side in (rows, [row.reference_text for row in rows])
    )
    change = summarize(rows, config=BITS).comparison.relative_change
    assert change == pytest.approx(total / noisy - 1, rel=1e-12)


def diffusion_by_hand(rows, scores="scores"):
    """Weighted losses and lengths of the texts, float64 [N] each: LLaDA, arXiv:2502.09992."""
    lengths = np.array([len(row.ids) - 2.0 for row in rows])
    sums = [getattr(row, scores).nll_nats.sum() * n for row, n in zip(rows, lengths, strict=True)]
    return np.array(sums) / [len(row.cols) for row in rows], lengths


def test_the_uniform_share_has_the_objective_of_diffusion_models():
    rows = sorted(evaluate(NOISY, TEXTS, UNIFORM, candidate=MODEL), key=lambda row: row.id)
    (losses, lengths), (base, _) = (
        diffusion_by_hand(rows, side) for side in ("scores", "reference")
    )
    summary = summarize(rows, config=UNIFORM)
    values, pair = summary.to_dict(), summary.comparison
    assert values["diffusion_loss"] == pytest.approx(losses.sum() / lengths.sum(), rel=1e-12)
    for interval, expected in (
        (summary.model.metric_interval, ratio_interval(losses, lengths)),
        (pair.interval, ratio_interval(losses - base, base)),
    ):
        assert (interval.low, interval.high) == pytest.approx(
            (expected.low, expected.high), rel=1e-9
        )
    plain = np.concatenate([row.scores.nll_nats for row in rows]).mean()
    assert values["mean_nll_nats"] == pytest.approx(plain, rel=1e-12)
    assert abs(plain / values["diffusion_loss"] - 1) > 1e-3
    assert "cross_entropy" not in values
    assert pair.relative_change == pytest.approx(losses.sum() / base.sum() - 1, rel=1e-9)
    change = losses.sum() / base.sum() - 1
    assert change < 0 and f"diffusion loss changes by −{-change:.2%}" in change_text(summary)


class ImpossibleModel(TableModel):
    """Gives some words the logit -inf, so that their loss is infinite."""

    def __init__(self, *words, factor=1.0):
        super().__init__(seed=1)
        self.never = [self.vocabulary.ids[word] for word in words]
        self.factor = factor

    def logits_at(self, *inputs):
        logits = self.factor * super().logits_at(*inputs)
        logits[:, self.never] = -np.inf
        return logits


@pytest.mark.parametrize("config", [UNIFORM, PSEUDO], ids=lambda config: config.metric.name)
def test_tokens_that_a_model_calls_impossible_are_judged(config):
    """By the baseline: a regression if only the model does, nothing if both do."""
    found = summary(config, MODEL, ImpossibleModel("cat"))
    values = found.to_dict()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert found.model.mean_nll_nats == found.comparison.relative_change == math.inf
    assert found.comparison.verdict.label == "REGRESSION"
    assert values["relative_change"] is None
    comparison = summary(config, ImpossibleModel("cat"), ImpossibleModel("cat")).comparison
    assert comparison.difference_nats == 0
    assert comparison.histogram.total.sum() == comparison.histogram.total.max()
    differ = summary(config, ImpossibleModel("dog"), ImpossibleModel("cat")).comparison
    assert math.isnan(differ.relative_change)
    assert differ.verdict.label == "INCONCLUSIVE"
