"""Models that call a true token impossible: figures and a verdict come all the same."""

import json
import math

import numpy as np
import pytest
from evaluated import TEXTS
from table_model import TableModel

from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize

CONFIGS = [EvaluationConfig("uniform"), EvaluationConfig("pseudo-perplexity")]


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


def compared(model, baseline, config):
    rows = evaluate(model, TEXTS, config, baseline=baseline)
    summary = summarize(rows, config=config)
    values = summary.to_dict()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    return summary


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.metric.name)
def test_tokens_that_a_model_calls_impossible_are_judged(config):
    """By the baseline: a regression where only the model does, nothing where both do."""
    summary = compared(ImpossibleModel("cat"), TableModel(seed=1), config)
    assert summary.model.mean_nll_nats == math.inf
    assert summary.comparison.relative_change == math.inf
    assert summary.comparison.verdict.label == "REGRESSION"
    assert summary.to_dict()["relative_change"] is None
    both = compared(ImpossibleModel("cat"), ImpossibleModel("cat"), config).comparison
    assert both.difference_nats == 0
    assert both.histogram.total.sum() == both.histogram.total.max()
    different = compared(ImpossibleModel("cat"), ImpossibleModel("dog"), config).comparison
    assert math.isnan(different.relative_change)
    assert different.verdict.label == "INCONCLUSIVE"


def test_a_perplexity_past_all_numbers_is_a_regression():
    """The loss of logits two hundred times too large: e^ of the difference is no float."""
    config = EvaluationConfig("pseudo-perplexity")
    comparison = compared(ImpossibleModel(factor=200.0), TableModel(seed=1), config).comparison
    assert comparison.difference_nats > 709
    assert comparison.verdict.label == "REGRESSION"
