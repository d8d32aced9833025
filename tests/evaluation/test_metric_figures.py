"""The figures of single metrics by hand, also of models that call a true token impossible."""

import json
import math

import numpy as np
import pytest
from evaluated import TEXTS
from table_model import TableModel, TableVocabulary, letter_vocabulary

from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.intervals import ratio_interval
from fillmask_ui.show.sentences import change_text, conclusion_text

BITS, PSEUDO = EvaluationConfig("bits-per-byte"), EvaluationConfig("pseudo-perplexity")
UNIFORM = EvaluationConfig("uniform", seed=5)
MODEL, NOISY = TableModel(seed=1), TableModel(seed=1, noise=0.4)


def summary(config, model=MODEL, **models):
    return summarize(evaluate(model, TEXTS, config, **models), config=config)


def test_bits_per_byte_are_the_losses_of_pseudo_perplexity():
    bits, pseudo = summary(BITS), summary(PSEUDO)
    assert bits.model.mean_nll_nats == pseudo.model.mean_nll_nats
    assert pseudo.to_dict()["pseudo_perplexity"] == pseudo.model.perplexity
    size = sum(len(text.strip().encode()) for text in TEXTS)
    whole = math.log2(pseudo.model.metric) * pseudo.model.tokens
    assert bits.model.metric == pytest.approx(whole / size, rel=1e-12)
    for own in (bits, pseudo):
        low, high = own.to_dict()["interval_95"]
        assert low < own.to_dict()[own.metric.figure_key] == own.model.metric < high
    two = summary(PSEUDO, baseline=NOISY)
    expected = two.model.perplexity / two.baseline.perplexity - 1
    assert two.comparison.relative_change == pytest.approx(expected)


def test_characters_count_by_their_bytes():
    vocabulary = TableVocabulary((*TableVocabulary().tokens, "ü", "語"))
    (row,) = evaluate(TableModel(seed=1, vocabulary=vocabulary), ["ü 語"], BITS)
    assert BITS.metric.units(row) == 2 + 1 + 3
    (row,) = evaluate(MODEL, ["the 日本 cat"], BITS)  # what cannot be spelled counts for nothing
    assert row.left_out == 1
    assert BITS.metric.units(row) == len(b"the  cat")


def test_bits_per_byte_compare_two_tokenizers():
    baseline = TableModel(seed=1, vocabulary=letter_vocabulary())
    rows = list(evaluate(MODEL, TEXTS, BITS, baseline=baseline))
    own, other = (
        sum(own.scores.nll_nats.sum() for own in side)
        for side in (rows, [row.other for row in rows])
    )
    change = summarize(rows, config=BITS).comparison.relative_change
    assert change == pytest.approx(own / other - 1, rel=1e-12)


def diffusion_by_hand(rows, scores="scores"):
    """Weighted losses and lengths of the texts, float64 [N] each: LLaDA, arXiv:2502.09992."""
    lengths = np.array([len(row.ids) - 2.0 for row in rows])
    sums = [getattr(row, scores).nll_nats.sum() * n for row, n in zip(rows, lengths, strict=True)]
    return np.array(sums) / [len(row.cols) for row in rows], lengths


def test_the_uniform_share_has_the_objective_of_diffusion_models():
    rows = sorted(evaluate(MODEL, TEXTS, UNIFORM, baseline=NOISY), key=lambda row: row.id)
    (own, lengths), (base, _) = (diffusion_by_hand(rows, side) for side in ("scores", "baseline"))
    found = summarize(rows, config=UNIFORM)
    values, pair = found.to_dict(), found.comparison
    assert values["diffusion_loss"] == pytest.approx(own.sum() / lengths.sum(), rel=1e-12)
    for interval, wanted in (
        (found.model.metric_interval, ratio_interval(own, lengths)),
        (pair.interval, ratio_interval(own - base, base)),
    ):
        assert (interval.low, interval.high) == pytest.approx((wanted.low, wanted.high), rel=1e-9)
    plain = np.concatenate([row.scores.nll_nats for row in rows]).mean()
    assert values["mean_nll_nats"] == pytest.approx(plain, rel=1e-12)
    assert abs(plain / values["diffusion_loss"] - 1) > 1e-3
    assert "cross_entropy" not in values
    assert pair.relative_change == pytest.approx(own.sum() / base.sum() - 1, rel=1e-9)
    change = own.sum() / base.sum() - 1
    assert f"diffusion loss is {abs(change):.2%} " in conclusion_text(found)
    assert change_text(found).startswith("diffusion loss changes by")


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
    found = summary(config, ImpossibleModel("cat"), baseline=MODEL)
    values = found.to_dict()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert found.model.mean_nll_nats == found.comparison.relative_change == math.inf
    assert found.comparison.verdict.label == "REGRESSION"
    assert values["relative_change"] is None
    both = summary(config, ImpossibleModel("cat"), baseline=ImpossibleModel("cat")).comparison
    assert both.difference_nats == 0
    assert both.histogram.total.sum() == both.histogram.total.max()
    differ = summary(config, ImpossibleModel("cat"), baseline=ImpossibleModel("dog")).comparison
    assert math.isnan(differ.relative_change)
    assert differ.verdict.label == "INCONCLUSIVE"
