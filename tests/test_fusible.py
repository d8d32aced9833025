"""Exports have the form that ONNX Runtime fuses, and compute the same."""

from __future__ import annotations

import logging
from collections import Counter

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnxruntime.transformers import optimizer
from quantized_forms import feeds

from fillmask_ui.models.model_files import files_in_folder
from fillmask_ui.models.torch_model import export_files
from fillmask_ui.onnx_tools import export


def kinds_when_opened(path, tmp_path):
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    settings.optimized_model_filepath = str(tmp_path / "opened.onnx")
    ort.InferenceSession(path, settings)
    return Counter(node.op_type for node in onnx.load(tmp_path / "opened.onnx").graph.node)


@pytest.mark.parametrize("family", ["bert", "distilbert"])
def test_attention_and_gelu_are_fused(tiny_models, tmp_path, monkeypatch, family):
    """Both layers of a tiny model, and the GELU of its head; none in what torch writes itself."""
    files = files_in_folder(family, tiny_models.folder(family, onnx=False), "torch")
    logging.disable(logging.WARNING)
    found, logits = {}, {}
    for name in ("as torch writes it", "here"):
        with monkeypatch.context() as patch:
            if name != "here":
                patch.setattr(export, "make_fusible", lambda _: 0)
            model = export_files(files)
        onnx.checker.check_model(model)
        path = tmp_path / "model.onnx"
        onnx.save(model, path)
        fused = optimizer.optimize_model(
            str(path), model_type="bert", num_heads=4, hidden_size=32, opt_level=0
        ).get_fused_operator_statistics()
        gelu = kinds_when_opened(path, tmp_path)
        found[name] = (fused["Attention"], gelu["BiasGelu"] + gelu["Gelu"])
        logits[name] = ort.InferenceSession(path).run(None, feeds(model, 2))[0]
    logging.disable(logging.NOTSET)
    assert found == {"as torch writes it": (0, 0), "here": (2, 3)}
    assert np.allclose(*logits.values(), atol=2e-5 * np.abs(logits["here"]).max())


def test_tied_weights_are_called_by_the_models_first_name(tiny_models):
    folder = tiny_models.folder("bert", onnx=False)
    names = {t.name for t in export_files(files_in_folder("m", folder, "torch")).graph.initializer}
    assert "bert.embeddings.word_embeddings.weight" in names
    assert "cls.predictions.decoder.weight" not in names
