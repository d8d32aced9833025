"""What each scheme writes, against numpy, hand calculations and plain sessions of onnxruntime."""

import re

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx.numpy_helper import to_array
from quantized_forms import feeds, run, whole
from tiny_models import EVERY_FAMILY, THREE, batch_of, texts_for

from fillmask_ui.errors import ModelError, OptionError, how_to_install
from fillmask_ui.models import load_model
from fillmask_ui.onnx_tools import schemes
from fillmask_ui.onnx_tools.float32_graph import dequantize, split_ties
from fillmask_ui.onnx_tools.graph_parts import choose_parts, find_parts
from fillmask_ui.onnx_tools.schemes import SCHEMES, write_variant

EIGHT_BITS = ("int8", "int8-tensor", "qdq")


@pytest.fixture(scope="module")
def bert(tiny_models):
    home = tiny_models.folder("bert")
    return whole(home / "onnx" / "model.onnx", home)


@pytest.fixture(scope="module")
def made(bert, tmp_path_factory):
    """`made(scheme, *exclude)`: the graph of a variant, each made once."""
    graphs = {}

    def get(scheme, *exclude):
        key = (scheme, *exclude)
        if key not in graphs:
            chosen = {part.node for part in choose_parts(find_parts(bert), exclude)}
            nodes = {node.name for node in bert.graph.node if chosen.intersection(node.output)}
            path = tmp_path_factory.mktemp("variant") / "model.onnx"
            texts = [feeds(bert, rows) for rows in (1, 2, 3)]
            write_variant(scheme, bert, path, exclude=nodes, feeds=texts)
            graphs[key] = onnx.load(path)
        return graphs[key]

    return get


def matrices(model, *kinds):
    """Name -> what the graph computes with."""
    parts = [part for part in find_parts(model) if part.kind in (kinds or ("product",))]
    return {part.name: dequantize(model, part) for part in parts}


def constants(model):
    return {tensor.name: to_array(tensor) for tensor in model.graph.initializer}


@pytest.mark.parametrize("family", THREE)
def test_a_whole_graph_computes_what_the_file_does(tiny_models, family):
    home = tiny_models.folder(family)
    path = home / "onnx" / "model.onnx"
    model = whole(path, home)
    onnx.checker.check_model(model)
    inputs = feeds(model, 2)
    expected = ort.InferenceSession(path).run(None, inputs)[0]
    assert np.allclose(run(model, inputs)[0], expected, atol=2e-5 * np.abs(expected).max())


def test_tied_embeddings_are_stored_once(bert, made):
    both_excluded = made("int8", "embedding", "projection")
    for model, times in ((bert, 1), (split_ties(bert), 2), (both_excluded, 1)):
        shapes = [array.shape for array in constants(model).values() if array.ndim == 2]
        assert len([shape for shape in shapes if max(shape) > 100 and 32 in shape]) == times


@pytest.mark.parametrize("scheme", EIGHT_BITS)
def test_8_bits_are_within_half_a_step(bert, made, scheme):
    def products(scheme):
        return [part for part in find_parts(made(scheme)) if part.kind == "product"]

    whole_, got = matrices(bert), matrices(made(scheme))
    assert len(got) == len(whole_) == 13
    factors = {part.name: constants(made(scheme)).get(part.smoothing) for part in products(scheme)}
    for name, weight in whole_.items():
        factor = 1.0 if factors[name] is None else factors[name][:, None]  # 1 / s
        largest = np.abs(weight / factor).max(axis=None if scheme == "int8-tensor" else 0)
        step = largest / 127 * factor  # symmetric, by hand
        assert (np.abs(got[name] - weight) <= step * 0.5001 + 1e-7).all(), name
        assert np.abs(got[name] - weight).max() > 0


def test_activations_stay_in_float32_before_the_end_of_a_feed_forward_part(made):
    model = made("int8")
    makers = {node.output[0]: node.op_type for node in model.graph.node}
    for part in find_parts(model):
        if part.kind == "product":
            assert makers[part.node] == ("MatMul" if part.shape == (64, 32) else "MatMulInteger")


def test_blocks_of_4_bits_are_within_half_a_step(bert, made):
    whole_, got = matrices(bert), matrices(made("int4"))
    for name, weight in whole_.items():
        blocks = weight.reshape(-1, 32, weight.shape[1])
        span = np.maximum(blocks.max(1), 0) - np.minimum(blocks.min(1), 0)  # 0 has a code
        error = np.abs(got[name].reshape(blocks.shape) - blocks).max(1)
        # Half a step of 15, and as much again for the zero point, which is rounded too.
        assert (error <= span / 15 * 1.01).all(), name


def test_fp16_is_numpys(bert, made):
    half, whole_ = constants(made("fp16")), constants(bert).items()
    weights = {
        name: array for name, array in whole_ if array.dtype == np.float32 and array.size > 1
    }
    assert len(weights) > 30
    for name, weight in weights.items():
        large = np.abs(weight) > 6e-8  # the tool keeps the sign of what is too small
        assert half[name].dtype == np.float16
        assert np.array_equal(half[name][large], weight.astype(np.float16)[large]), name


def test_static_scales_are_those_of_the_texts(bert, made):
    """(mean largest - mean smallest) / 255 of what stands before a product, 0 within."""
    part = next(part for part in find_parts(bert) if part.kind == "product")
    before = onnx.ModelProto()
    before.CopyFrom(bert)
    before.graph.output.append(onnx.helper.make_empty_tensor_value_info(part.source))
    values = [run(before, feeds(bert, rows), part.source)[0] for rows in (1, 2, 3)]
    low = min(0.0, np.mean([value.min() for value in values]))
    high = max(0.0, np.mean([value.max() for value in values]))
    scale = constants(made("qdq"))[f"{part.source}_scale"]
    assert np.isclose(scale, (high - low) / 255, rtol=1e-5)


@pytest.mark.parametrize("scheme", [*EIGHT_BITS, "int4"])
def test_what_is_excluded_stays(bert, made, scheme):
    got, all_ = made(scheme, "layer:0", "projection"), matrices(bert, "product", "projection")
    stays = {part.name for part in find_parts(got) if not part.quantized and part.shape[1:]}
    stored = matrices(got, "product", "projection")
    unchanged = {name for name in all_ if np.array_equal(stored[name], all_[name])}
    products = [part for part in find_parts(bert) if part.kind in ("product", "projection")]
    excluded = {p.name for p in products if p.layer == 0 or p.kind == "projection"}
    assert unchanged == excluded <= stays
    words = next(part for part in find_parts(got) if part.kind == "embedding")
    assert words.quantized == (scheme != "int8")  # though the projection was the same constant


@pytest.mark.parametrize("family", EVERY_FAMILY[1:])
def test_results_load_and_give_what_a_plain_session_gives(tiny_models, tmp_path, family):
    home = tiny_models.folder(family)
    model = whole(home / "onnx" / "model.onnx", home)
    for scheme in SCHEMES:
        path = tmp_path / f"{scheme}.onnx"
        write_variant(scheme, model, path, feeds=[feeds(model, most=30)])  # ESM has 33 tokens
        loaded = load_model(path, tokenizer=home, graph_optimization="none")
        batch = batch_of(loaded.vocabulary, texts_for(family, loaded.vocabulary.mask_token)[:1])
        values = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
        values["token_type_ids"] = np.zeros_like(batch.input_ids)
        inputs = {entry.name: values[entry.name] for entry in model.graph.input}
        expected = run(onnx.load(path), inputs, "logits")[0][batch.rows, batch.cols]
        got, kind = loaded.logits_at(*batch), {"fp16": "float16", "int4": "int4"}
        assert np.abs(got - expected).max() <= 5e-3 * np.abs(expected).max(), scheme
        assert loaded.signature.precision == kind.get(scheme, "int8")


def test_what_cannot_be_made_is_said(bert, made, tmp_path, monkeypatch):
    path = tmp_path / "model.onnx"
    with pytest.raises(OptionError, match="unknown scheme 'int9'; did you mean 'int"):
        write_variant("int9", bert, path)
    nodes = {node.name for node in bert.graph.node}
    with pytest.raises(ModelError, match=r"finds nothing to make smaller.*exclude less"):
        write_variant("int8", bert, path, exclude=nodes)
    onnx.save(made("fp16"), path)
    with pytest.raises(ModelError, match=r"computes in half precision: give .* float32"):
        whole(path, tmp_path)
    monkeypatch.setattr(schemes.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=re.escape(how_to_install("quantize"))):
        write_variant("int4", bert, path)
