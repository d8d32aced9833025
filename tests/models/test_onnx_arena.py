"""What a large call took is given back."""

import ctypes
import sys
from pathlib import Path

import numpy as np
import pytest

from fillmask_ui.models import load_model, onnx_arena


def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def ask(model, texts, tokens):
    ids = np.random.default_rng(0).integers(0, model.vocabulary.size, (texts, tokens))
    rows = np.arange(texts)
    return model.logits_at(ids, np.ones_like(ids), rows, np.full(texts, 2))


def test_a_turn_comes_when_the_last_is_long_ago(monkeypatch):
    cuts = onnx_arena.Cuts()
    assert not cuts.due()
    monkeypatch.setattr(onnx_arena, "CUT_SECONDS", 0.0)
    assert cuts.due()
    monkeypatch.setattr(onnx_arena, "CUT_SECONDS", 60.0)
    assert not cuts.due()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_a_large_call_took_is_given_back(monkeypatch):
    model = load_model("embedded")
    monkeypatch.setattr(onnx_arena, "CUT_SECONDS", 1e9)
    expected = ask(model, 1, 8)
    ask(model, 12, 250)
    large = resident_mb()
    monkeypatch.setattr(onnx_arena, "CUT_SECONDS", 0.0)
    found = ask(model, 1, 8)
    ctypes.CDLL(None).malloc_trim(0)
    assert resident_mb() < large - 20
    np.testing.assert_array_equal(found, expected)
