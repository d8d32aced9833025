"""Parts of graphs: found and matched in every form that quantizers write, with their numbers.

Numbers are checked against transformers' own parameters and the onnx reference implementation.
"""

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from quantized_forms import FORMS, feeds, forms, run
from tiny_models import EVERY_FAMILY

from fillmask_ui.errors import OptionError
from fillmask_ui.files import asset
from fillmask_ui.onnx_tools.constant_folding import Constants
from fillmask_ui.onnx_tools.float32_graph import dequantize
from fillmask_ui.onnx_tools.graph_edits import (
    in_full_precision,
    match_parts,
    stored_bytes,
    with_outputs,
)
from fillmask_ui.onnx_tools.graph_parts import MATRICES, choose_parts, find_parts

__all__ = ["forms"]


# Read as a slice, or behind a norm, or by another head.
_UNREAD = ("position", "rel_emb", "contact_head")


@pytest.mark.parametrize("family", [*EVERY_FAMILY, "albert"])  # which shares its layers' weights
def test_every_learned_matrix_of_every_family_is_found_once(tiny_models, family):
    from safetensors.numpy import load_file

    folder = tiny_models.folder(family)
    model = onnx.load(folder / "onnx" / "model.onnx")
    parts = find_parts(model)
    assert len({part.name for part in parts}) == len(parts)
    arrays = [dequantize(model, part) for part in parts if part.kind in MATRICES]
    contents = {matrix.tobytes() for array in arrays for matrix in (array, array.T)}
    stored = load_file(folder / "model.safetensors").items()
    unread = {
        name for name, matrix in stored if matrix.ndim == 2 and matrix.tobytes() not in contents
    }
    assert not {name for name in unread if not any(pattern in name for pattern in _UNREAD)}
    layers = {part.layer for part in parts} - {None}
    assert layers == set(range(3 if family == "modernbert" else 2))
    assert [part.shape[0] for part in parts if part.kind == "projection"] in ([32], [16])
    assert [(a, a) for a in parts] == [(p.first, p.second) for p in match_parts(parts, parts).pairs]


def test_parts_are_called_as_in_the_model():
    folder = asset("model")
    parts = find_parts(onnx.load(folder / "model.onnx", load_external_data=False))
    named = {part.name: part for part in parts}
    query = named["bert.encoder.layer.3.attention.self.query"]
    assert (query.kind, query.layer, query.shape) == ("product", 3, (384, 384))
    assert named["bert.encoder.layer.3.attention.self.query.bias"].kind == "bias"
    assert named["bert.encoder.layer.5.output.LayerNorm"].kind == "norm"
    assert named["bert.embeddings.word_embeddings"].shape == (22400, 384)
    assert [p.shape for p in parts if p.kind == "projection"] == [(384, 22400)]
    assert named["cls.predictions.transform.dense"].layer is None
    small = find_parts(onnx.load(folder / "onnx" / "model_int8.onnx", load_external_data=False))
    assert [(p.kind, p.layer, p.shape, p.output) for p in small] == [
        (p.kind, p.layer, p.shape, p.output) for p in parts
    ]


def renamed(model, seed):
    """The same graph with every name replaced, and its nodes in another order that is allowed."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph, rng = result.graph, np.random.default_rng(seed)
    interface = {value.name for value in (*graph.input, *graph.output)} | {""}
    names = [tensor.name for tensor in graph.initializer]
    names += [name for node in graph.node for name in node.output]
    places = zip(names, rng.permutation(len(names)), strict=True)
    new = {name: f"v{index}" for name, index in places if name not in interface}
    for tensor in graph.initializer:
        tensor.name = new[tensor.name]
    for node in graph.node:
        node.name = ""
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
        if node.op_type == "Add" and rng.random() < 0.5:
            node.input[:] = [node.input[1], node.input[0]]
    ready = {value.name for value in (*graph.input, *graph.initializer)} | {""}
    waiting, ordered = list(graph.node), []
    while waiting:
        can = [node for node in waiting if ready.issuperset(node.input)]
        node = can[rng.integers(len(can))]
        waiting = [candidate for candidate in waiting if candidate is not node]
        ordered.append(node)
        ready.update(node.output)
    del graph.node[:], graph.value_info[:]
    graph.node.extend(ordered)
    return result, new


@pytest.mark.parametrize("form", ["dynamic-int8", "qdq", "int4"])
def test_a_graph_whose_names_are_all_others_is_matched(forms, form):
    changed, new = renamed(forms[form], seed=1)
    onnx.checker.check_model(changed)
    before, after = find_parts(forms[form]), find_parts(changed)
    assert len(before) > 30 and not {part.name for part in before} & {part.name for part in after}
    matching = match_parts(after, find_parts(forms.baseline))
    plain = match_parts(before, find_parts(forms.baseline))
    assert len(matching.pairs) == len(plain.pairs) and not matching.only_second
    expected = {(new.get(p.first.output, p.first.output), p.second.name) for p in plain.pairs}
    assert {(p.first.output, p.second.name) for p in matching.pairs} == expected


# How far numbers in so many bits are from those they stand for, relative to the largest.
_TOLERANCE = {"int4": 0.08, "fp16": 5e-4, "int8": 0.02}  # smoothing gives some rows fewer steps


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_the_parts_of_its_baseline_with_about_their_numbers(forms, form):
    model, baseline = forms[form], forms.baseline
    matching = match_parts(find_parts(model), find_parts(baseline))
    assert not [part for part in matching.only_second if part.kind in MATRICES]
    for pair in matching.pairs:
        assert pair.first.kind == pair.second.kind
        actual, expected = dequantize(model, pair.first), dequantize(baseline, pair.second)
        assert actual.shape == expected.shape == pair.first.shape
        tolerance = _TOLERANCE.get(form, 0.006)
        assert np.abs(actual - expected).max() <= tolerance * np.abs(expected).max(), (
            pair.first.name
        )


def test_qdq_as_the_onnx_reference_dequantizes_it(forms):
    model = onnx.ModelProto()
    model.CopyFrom(forms["qdq"])
    part = next(p for p in find_parts(model) if p.name.endswith("layer.0.intermediate.dense"))
    constants = Constants(model.graph)
    value = constants.makers[part.node].input[1]
    nodes = constants.nodes(value)
    for node in nodes:
        node.domain = ""
    output = helper.make_tensor_value_info(value, 1, None)
    graph = helper.make_graph(nodes, "one", [], [output], list(model.graph.initializer))
    whole = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    expected = ReferenceEvaluator(whole).run(None, {})[0]
    np.testing.assert_array_equal(dequantize(model, part), expected)


@pytest.mark.parametrize("form", ["dynamic-int8", "int8", "int8-tensor", "int4"])
def test_all_parts_in_full_precision_give_the_logits_of_the_baseline(forms, form):
    model, baseline = forms[form], forms.baseline
    before = model.SerializeToString()
    pairs = match_parts(find_parts(model), find_parts(baseline)).pairs
    restored = in_full_precision(model, baseline, pairs)
    onnx.checker.check_model(restored)
    inputs = feeds(baseline, rows=2)
    (expected,), (actual,) = run(baseline, inputs), run(restored, inputs)
    np.testing.assert_allclose(actual, expected, atol=2e-4 * np.abs(expected).max())
    (bad,) = run(model, inputs)
    assert np.abs(bad - expected).max() > 0.01 * np.abs(expected).max()
    assert model.SerializeToString() == before
    assert not {node.op_type for node in restored.graph.node} & {"MatMulInteger", "MatMulNBits"}
    assert stored_bytes(restored) <= 1.05 * stored_bytes(baseline) + 5000  # nothing unused stays


@pytest.mark.parametrize("form", FORMS)
def test_one_part_in_full_precision_yields_the_product_of_the_baseline(forms, form):
    model, baseline = forms[form], forms.baseline
    pairs = match_parts(find_parts(model), find_parts(baseline)).pairs
    pair = next(p for p in pairs if p.second.name.endswith("layer.0.attention.output.dense"))
    restored = in_full_precision(model, baseline, [pair])
    part, inputs = pair.first, feeds(baseline)
    values = with_outputs(restored, [part.source, part.output])
    source, actual = run(values, inputs, part.source, part.output)
    expected = source.astype(np.float32) @ dequantize(baseline, pair.second)
    np.testing.assert_allclose(actual, expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max())
    assert part.output not in {p.output for p in find_parts(restored) if p.quantized}


def test_patterns_choose_by_name_kind_and_layer(forms):
    parts = find_parts(forms.baseline)
    assert {p.layer for p in choose_parts(parts, ["layer:1"])} == {1}
    assert [p.kind for p in choose_parts(parts, ["projection"])] == ["projection"]
    chosen = choose_parts(parts, ["layer:0", parts[0].name])
    assert chosen[0] == parts[0] and len(chosen) == 17
    with pytest.raises(OptionError, match=r"no part .*'qurey'.*near names: .*query"):
        choose_parts(parts, ["qurey"])
    with pytest.raises(OptionError, match=r"layer:7.*layer:0, layer:1"):
        choose_parts(parts, ["layer:7"])


def test_a_shared_bias_does_not_name_the_matrix_before_it():
    """As exporters merge biases that are all zero, also those of norms."""
    model = onnx.load(asset("model") / "model.onnx", load_external_data=False)
    shared = "bert.embeddings.LayerNorm.bias"
    assert shared in {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        inputs = [shared if name.endswith("query.bias") else name for name in node.input]
        node.input[:] = inputs
    products = [part for part in find_parts(model) if part.kind == "product"]
    assert not [part.name for part in products if "embeddings.LayerNorm" in part.name]
