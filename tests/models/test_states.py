"""The vectors that a model's head computes logits from, against transformers' hidden states."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_models import FAMILIES, batch_of, quiet, texts_for

from fillmask_ui.errors import ModelError
from fillmask_ui.models import load_model
from fillmask_ui.protocol import EncoderStates, MaskedLM


def asked(model: MaskedLM, family: str):
    """A padded batch and all its real tokens, not in order."""
    batch = batch_of(model.vocabulary, texts_for(family, model.vocabulary.mask_token))
    rows, cols = np.nonzero(batch.attention_mask)
    order = np.random.default_rng(5).permutation(len(rows))
    return batch.input_ids, batch.attention_mask, rows[order], cols[order]


def hidden_states(folder, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The outside reference: `hidden_states[-1]` of transformers, float32 [B, T, H]."""
    import torch
    from transformers import AutoModelForMaskedLM

    with quiet(), torch.no_grad():
        model = AutoModelForMaskedLM.from_pretrained(folder).eval()
        values = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}
        return model(**values, output_hidden_states=True).hidden_states[-1].numpy()


@pytest.mark.parametrize("runtime", ["onnx", "torch"])
@pytest.mark.parametrize("family", FAMILIES)
def test_last_hidden_state_of_every_family(family, runtime, loaded, tiny_models):
    model = loaded(family, runtime)
    assert isinstance(model, EncoderStates)
    ids, mask, rows, cols = asked(model, family)
    before = model.logits_at(ids, mask, rows, cols)
    got = model.states_at(ids, mask, rows, cols)
    wanted = hidden_states(tiny_models.folder(family), ids, mask)[rows, cols]
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, atol=1e-4)
    np.testing.assert_array_equal(model.logits_at(ids, mask, rows, cols), before)


def test_the_embedded_models():
    """float16 and int8 weights; the reference is PyTorch on the same folder."""
    reference = load_model("embedded:torch")
    ids, mask, rows, cols = asked(reference, "bert")
    wanted = reference.states_at(ids, mask, rows, cols)
    exact = load_model("embedded").states_at(ids, mask, rows, cols)
    np.testing.assert_allclose(exact, wanted, atol=1e-3)
    rounded = load_model("embedded:int8").states_at(ids, mask, rows, cols)
    cosines = (rounded * wanted).sum(1) / np.linalg.norm(rounded, axis=1)
    assert (cosines / np.linalg.norm(wanted, axis=1)).min() > 0.98


def encoder_output(path, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The reference for quantized files: the last LayerNorm of the encoder, as a second output."""
    import onnx
    import onnxruntime as ort
    from quantized_forms import exact_settings

    graph = onnx.load(path)
    norms = [node for node in graph.graph.node if node.op_type == "LayerNormalization"]
    name = next(own.output[0] for own in reversed(norms) if "encoder" in own.output[0])
    graph.graph.output.append(onnx.helper.make_tensor_value_info(name, 1, None))
    session = ort.InferenceSession(graph.SerializeToString(), exact_settings())
    feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    return session.run([name], feeds)[0]


def test_dynamic_int8_is_read_in_front_of_the_quantization(variant):
    def change(source, target) -> None:
        from onnxruntime.quantization import QuantType, quantize_dynamic

        with quiet():
            quantize_dynamic(source, target, weight_type=QuantType.QInt8, per_channel=True)

    folder = variant(change)
    model = load_model(folder)
    ids, mask, rows, cols = asked(model, "bert")
    got = model.states_at(ids, mask, rows, cols)
    for row, length in enumerate(mask.sum(axis=1)):  # each text has scales of its own
        own = slice(row, row + 1), slice(0, length)
        wanted = encoder_output(folder / "model.onnx", ids[own], mask[own])
        np.testing.assert_allclose(got[rows == row], wanted[0][cols[rows == row]], atol=1e-4)


def test_static_int8(variant, quantize_qdq):
    folder = variant(quantize_qdq)
    model = load_model(folder)
    ids, mask, rows, cols = asked(model, "bert")
    wanted = encoder_output(folder / "model.onnx", ids, mask)[rows, cols]
    np.testing.assert_allclose(model.states_at(ids, mask, rows, cols), wanted, atol=1e-4)


@pytest.mark.parametrize(
    "changes", [{"batch": 1}, {"length": 20}, {"outputs": ("logits", "hidden")}]
)
def test_exports_of_other_shapes(exported, loaded, changes):
    model, exact = load_model(exported("bert", **changes)), loaded("bert", "torch")
    batch = batch_of(exact.vocabulary, ["The cat sat.", "[MASK]"])
    rows, cols = np.nonzero(batch.attention_mask)
    asked = batch.input_ids, batch.attention_mask, rows, cols
    np.testing.assert_allclose(model.states_at(*asked), exact.states_at(*asked), atol=1e-4)


def test_a_projection_without_a_head_of_its_own(variant, loaded):
    """The logits come straight from the encoder."""
    import onnx

    def change(source, target) -> None:
        model = onnx.load(source)
        nodes = model.graph.node
        products = [node for node in nodes if node.op_type == "MatMul"]
        norms = [own for own in nodes if own.op_type == "LayerNormalization"]
        encoder = next(own for own in reversed(norms) if "encoder" in own.output[0])
        products[-1].input[0] = encoder.output[0]
        onnx.save(model, target)

    model, exact = load_model(variant(change)), loaded("bert", "torch")
    ids, mask, rows, cols = asked(exact, "bert")
    wanted = exact.states_at(ids, mask, rows, cols)
    np.testing.assert_allclose(model.states_at(ids, mask, rows, cols), wanted, atol=1e-4)


def test_a_graph_whose_end_is_not_understood_says_so(variant):
    import onnx

    def change(source, target) -> None:
        model = onnx.load(source)
        output = next(node for node in model.graph.node if "logits" in node.output)
        output.output[list(output.output).index("logits")] = "plain"
        model.graph.node.append(onnx.helper.make_node("CumSum", ["plain", "last"], ["logits"]))
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(1), "last"))
        onnx.save(model, target)

    model = load_model(variant(change))
    ids, mask, rows, cols = asked(model, "bert")
    with pytest.raises(ModelError, match="does not show where its encoder ends"):
        model.states_at(ids, mask, rows, cols)
