"""Quantized ONNX files: other numbers than full precision, plainly the same model."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest
from tiny_models import batch_of, quiet, texts_for

from fillmask_ui import scoring
from fillmask_ui.models import load_model


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_dynamic_int8(variant, loaded, family):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    def change(source: Path, target: Path) -> None:
        with quiet():
            quantize_dynamic(source, target, weight_type=QuantType.QInt8, per_channel=True)

    model = load_model(variant(change, family))
    assert model.signature.precision == "int8"
    assert model.signature.parameters is None
    close_to_full(model, loaded(family, "torch"), family)


def test_qdq(variant, loaded, quantize_qdq):
    change = partial(quantize_qdq, op_types_to_quantize=["MatMul"])
    model = load_model(variant(change))
    operators = {n.op_type for n in onnx.load(variant(change) / "model.onnx").graph.node}
    assert "DequantizeLinear" in operators
    assert model.signature.precision == "int8"
    close_to_full(model, loaded("bert", "torch"), "bert")


def test_four_bit(variant, loaded):
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    def change(source: Path, target: Path) -> None:
        with quiet():
            quantizer = MatMulNBitsQuantizer(onnx.load(source), block_size=16, is_symmetric=True)
            quantizer.process()
            quantizer.model.save_model_to_file(str(target))

    folder = variant(change)
    operators = {n.op_type for n in onnx.load(folder / "model.onnx").graph.node}
    assert "MatMulNBits" in operators
    model = load_model(folder)
    assert model.signature.precision == "int4"
    close_to_full(model, loaded("bert", "torch"), "bert", correlation=0.8)


def close_to_full(model, reference, family: str, correlation: float = 0.97) -> None:
    """Quantized, so not equal, but plainly the same model."""
    batch = batch_of(reference.vocabulary, texts_for(family, reference.vocabulary.mask_token))
    full, small = reference.logits_at(*batch), model.logits_at(*batch)
    assert not np.array_equal(full, small)
    for one, other in zip(full, small, strict=True):
        assert np.corrcoef(one, other)[0, 1] > correlation
    log_probs = scoring.exponentials(small).log_probabilities
    np.testing.assert_allclose(np.exp(log_probs).sum(axis=1), 1.0, atol=1e-9)
