"""A small model, texts and choices for tests of evaluate, and what a plain loop gives."""

import numpy as np
import pytest
import torch
from table_model import TableModel, sample_texts

from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.masking import MaskRecipe
from fillmask_ui.records import SkippedText

MODEL = TableModel(seed=1)
TEXTS = sample_texts(60, seed=5)
ALL_CONFIGS = [
    EvaluationConfig(),
    EvaluationConfig(recipe=MaskRecipe(0.5, 0.4, 0.3, 0.3), seed=7),
    EvaluationConfig(recipe=MaskRecipe(0.4, whole_word=True)),
    EvaluationConfig("pseudo-perplexity"),
    EvaluationConfig("pseudo-perplexity", within_word=True),
    EvaluationConfig("uniform"),
    EvaluationConfig("suffix", suffix_tokens=3),
]
# Options of an evaluation of a second on the shell.
FAST = ("--samples", "8", "--max-tokens", "32")


def measured(rows):
    return {row.id: row for row in rows if not isinstance(row, SkippedText)}


def assert_alike(values, expected):
    """Equal JSON, but for sums in another order: their floats agree to 1e-12 of their size."""
    if isinstance(expected, dict):
        assert values.keys() == expected.keys()
        for key, value in expected.items():
            assert_alike(values[key], value)
    elif isinstance(expected, list):
        assert len(values) == len(expected)
        for value, expected_value in zip(values, expected, strict=True):
            assert_alike(value, expected_value)
    elif isinstance(expected, float):
        assert values == pytest.approx(expected, rel=1e-12, abs=1e-15, nan_ok=True)
    else:
        assert values == expected


def all_logits(model, ids):
    """Logits of the inner positions of one text, asked one at a time."""
    batch = np.array([ids], np.int64)
    inner = np.arange(1, len(ids) - 1)
    logits = model.logits_at(batch, np.ones_like(batch), np.zeros_like(inner), inner)
    return torch.from_numpy(logits)
