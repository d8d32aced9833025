"""Bits per byte against a sum by hand and against pseudo-perplexity."""

import math

import numpy as np
import pytest
from table_model import TableModel, TableVocabulary, letter_vocabulary, sample_texts

from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize

BITS, PSEUDO = EvaluationConfig("bits-per-byte"), EvaluationConfig("pseudo-perplexity")
TEXTS = sample_texts(20, seed=5, longest=12)
MODEL = TableModel(seed=1)


def summary(config, texts=TEXTS, **models):
    return summarize(evaluate(MODEL, texts, config, **models), config=config)


def test_the_same_losses_as_pseudo_perplexity():
    bits, pseudo = summary(BITS), summary(PSEUDO)
    assert bits.model.mean_nll_nats == pseudo.model.mean_nll_nats
    size = sum(len(text.strip().encode()) for text in TEXTS)
    whole = math.log2(pseudo.model.metric) * pseudo.model.tokens
    assert bits.model.metric == pytest.approx(whole / size, rel=1e-12)
    low, high = bits.model.metric_interval.low, bits.model.metric_interval.high
    assert low < bits.model.metric < high
    assert bits.to_dict()["bits_per_byte"] == bits.model.metric


def test_characters_count_by_their_bytes():
    vocabulary = TableVocabulary((*TableVocabulary().tokens, "ü", "語"))
    model = TableModel(seed=1, vocabulary=vocabulary)
    rows = list(evaluate(model, ["ü 語"], BITS))
    assert BITS.metric.units(rows[0]) == 2 + 1 + 3
    (row,) = evaluate(MODEL, ["the 日本 cat"], BITS)  # what cannot be spelled counts for nothing
    assert row.left_out == 1
    assert BITS.metric.units(row) == len(b"the  cat")


def test_two_tokenizers_compare():
    baseline = TableModel(seed=1, vocabulary=letter_vocabulary())
    both = summary(BITS, baseline=baseline)
    sums = [
        (row.scores.nll_nats.sum(), row.other.scores.nll_nats.sum())
        for row in evaluate(MODEL, TEXTS, BITS, baseline=baseline)
        if hasattr(row, "scores")
    ]
    own, other = np.sum(sums, axis=0)
    assert both.comparison.relative_change == pytest.approx(own / other - 1, rel=1e-12)
