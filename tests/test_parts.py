"""Parts of graphs: found in every form that quantizers write, with the numbers they stand for.

Numbers are checked against transformers' own parameters, the onnx reference implementation, and
ONNX Runtime's own product with the identity.
"""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from quantized_forms import FORMS, feeds, forms, inlined, run
from tiny_models import FAMILIES

from fillmask_ui.errors import OptionError
from fillmask_ui.files import asset
from fillmask_ui.onnx_tools.constant_folding import Constants
from fillmask_ui.onnx_tools.dynamic_int8 import dynamic_int8
from fillmask_ui.onnx_tools.float32_graph import dequantized
from fillmask_ui.onnx_tools.graph_edits import (
    in_full_precision,
    match_parts,
    stored_bytes,
    with_outputs,
)
from fillmask_ui.onnx_tools.graph_parts import choose_parts, find_parts

__all__ = ["forms"]


# Read as a slice, or behind a norm, or by another head.
_UNREAD = ("position", "rel_emb", "contact_head")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_learned_matrix_of_every_family_is_found_once(tiny_models, family):
    from safetensors.numpy import load_file

    folder = tiny_models.folder(family)
    model = onnx.load(folder / "onnx" / "model.onnx")
    parts = find_parts(model)
    assert len({part.name for part in parts}) == len(parts)
    matrices = [p for p in parts if p.kind in ("product", "projection", "embedding")]
    found = {dequantized(model, p).T.tobytes() for p in matrices}
    found |= {dequantized(model, p).tobytes() for p in matrices}
    stored = load_file(folder / "model.safetensors")
    unread = {
        name
        for name, values in stored.items()
        if values.ndim == 2 and values.tobytes() not in found
    }
    assert not {name for name in unread if not any(own in name for own in _UNREAD)}
    layers = {part.layer for part in parts} - {None}
    assert layers == set(range(3 if family == "modernbert" else 2))
    assert [part.shape[0] for part in parts if part.kind == "projection"] in ([32], [16])


def test_parts_are_called_as_in_the_model():
    folder = asset("model") / "onnx"
    parts = find_parts(onnx.load(folder / "model.onnx", load_external_data=False))
    named = {part.name: part for part in parts}
    query = named["bert.encoder.layer.3.attention.self.query"]
    assert (query.kind, query.layer, query.shape) == ("product", 3, (384, 384))
    assert named["bert.encoder.layer.3.attention.self.query.bias"].kind == "bias"
    assert named["bert.encoder.layer.5.output.LayerNorm"].kind == "norm"
    assert named["bert.embeddings.word_embeddings"].shape == (22400, 384)
    assert [p.shape for p in parts if p.kind == "projection"] == [(384, 22400)]
    assert named["cls.predictions.transform.dense"].layer is None
    small = find_parts(onnx.load(folder / "model_int8.onnx", load_external_data=False))
    assert [(p.kind, p.layer, p.shape, p.output) for p in small] == [
        (p.kind, p.layer, p.shape, p.output) for p in parts
    ]


# How far numbers in so many bits are from those they stand for, relative to the largest.
_TOLERANCE = {"int4": 0.08, "fp16": 5e-4}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_the_parts_of_its_baseline_with_about_their_numbers(forms, form):
    model, baseline = forms[form], forms.baseline
    matching = match_parts(find_parts(model), find_parts(baseline))
    matrices = ("product", "projection", "embedding")
    assert not [part for part in matching.only_second if part.kind in matrices]
    for pair in matching.pairs:
        got, wanted = dequantized(model, pair.first), dequantized(baseline, pair.second)
        assert got.shape == wanted.shape == pair.first.shape
        tolerance = _TOLERANCE.get(form, 0.006)
        assert np.abs(got - wanted).max() <= tolerance * np.abs(wanted).max(), pair.first.name


@pytest.mark.parametrize("form", ["dynamic-int8", "int8", "int8-tensor"])
def test_dynamic_int8_by_hand(forms, form):
    model = forms[form]
    stored = {own.name: numpy_helper.to_array(own) for own in model.graph.initializer}
    part = next(p for p in find_parts(model) if p.name.endswith("layer.1.intermediate.dense"))
    stem = part.constant.removesuffix("_quantized")
    values = stored[f"{stem}_quantized"].astype(np.float64) - stored[f"{stem}_zero_point"]
    wanted = values * stored[f"{stem}_scale"]
    np.testing.assert_allclose(dequantized(model, part), wanted, rtol=1e-6)


def test_blocks_of_4_bits_as_onnx_runtime_multiplies_them(forms):
    model = forms["int4"]
    nodes = Constants(model.graph)
    for part in find_parts(model):
        node = nodes.makers[part.node]
        if node.op_type != "MatMulNBits":
            continue
        alone = helper.make_node("MatMulNBits", ["x", *node.input[1:]], ["y"], domain=node.domain)
        alone.attribute.extend(a for a in node.attribute if a.name != "accuracy_level")
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            [alone],
            "one",
            [value("x", 1, [None, part.shape[0]])],
            [value("y", 1, None)],
            [nodes.stored[name] for name in node.input[1:]],
        )
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        whole = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        (wanted,) = run(whole, {"x": np.eye(part.shape[0], dtype=np.float32)})
        np.testing.assert_allclose(dequantized(model, part), wanted, atol=1e-6)


def test_qdq_as_the_onnx_reference_dequantizes_it(forms):
    model = onnx.ModelProto()
    model.CopyFrom(forms["qdq"])
    part = next(p for p in find_parts(model) if p.name.endswith("layer.0.intermediate.dense"))
    constants = Constants(model.graph)
    value = constants.makers[part.node].input[1]
    nodes = constants.nodes(value)
    for node in nodes:
        node.domain = ""
    graph = helper.make_graph(
        nodes,
        "one",
        [],
        [helper.make_tensor_value_info(value, 1, None)],
        list(model.graph.initializer),
    )
    wanted = ReferenceEvaluator(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    ).run(None, {})[0]
    np.testing.assert_array_equal(dequantized(model, part), wanted)


@pytest.mark.parametrize("form", ["dynamic-int8", "int8", "int8-tensor", "int4", "fused-int8"])
def test_all_parts_in_full_precision_give_the_logits_of_the_baseline(forms, form):
    model, baseline = forms[form], forms.baseline
    before = model.SerializeToString()
    pairs = match_parts(find_parts(model), find_parts(baseline)).pairs
    restored = in_full_precision(model, baseline, pairs)
    onnx.checker.check_model(restored)
    inputs = feeds(baseline, rows=2)
    (wanted,), (got,) = run(baseline, inputs), run(restored, inputs)
    np.testing.assert_allclose(got, wanted, atol=2e-4 * np.abs(wanted).max())
    (bad,) = run(model, inputs)
    assert np.abs(bad - wanted).max() > 0.01 * np.abs(wanted).max()
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
    source, got = run(values, inputs, part.source, part.output)
    wanted = source.astype(np.float32) @ dequantized(baseline, pair.second)
    place = _FUSED.get(form)
    if place:  # the operator adds the bias, too
        wanted = wanted + dequantized(baseline, next(p.second for p in pairs if _is_bias(p, part)))
    np.testing.assert_allclose(got, wanted, rtol=2e-3, atol=2e-3 * np.abs(wanted).max())
    others = [p for p in find_parts(restored) if p.quantized]
    assert part.output not in {p.output for p in others}


_FUSED = {"fused-int8": True}


def _is_bias(pair, product):
    return pair.second.name == f"{pair.second.name.removesuffix('.bias')}.bias" and (
        pair.first.node == product.node
    )


def test_word_embeddings_that_are_there_anyway_are_not_stored_again():
    small, full = (
        inlined(asset("model") / "onnx" / name, asset("model"))
        for name in ("model_int8.onnx", "model.onnx")
    )

    def restored(model, called):
        pairs = match_parts(find_parts(model), find_parts(full)).pairs
        return in_full_precision(model, full, [p for p in pairs if p.first.is_called(called)])

    table, zero_point = 384 * 22400, 22400
    looked_up = restored(small, "bert.embeddings.word_embeddings")
    assert stored_bytes(looked_up) == stored_bytes(small) + 2 * table
    both = restored(looked_up, "projection")  # its float16 is there by now
    scales = 4 * 22400
    assert stored_bytes(both) == stored_bytes(small) + table - zero_point - scales


@pytest.mark.parametrize("per_channel", [True, False])
def test_tied_int8_embeddings_are_two_parts_of_one_constant(forms, per_channel):
    model = dynamic_int8(forms.baseline, per_channel=per_channel)
    parts = {part.kind: part for part in find_parts(model) if "word_emb" in part.constant}
    table, projection = parts["embedding"], parts["projection"]
    assert table.name.endswith("bert.embeddings.word_embeddings")
    assert table.constant == projection.constant
    assert table.quantized
    rows = dequantized(model, table)
    np.testing.assert_array_equal(rows.T, dequantized(model, projection))
    inputs = feeds(model)
    (seen,) = run(with_outputs(model, [table.output]), inputs, table.output)
    np.testing.assert_array_equal(seen, rows[inputs["input_ids"]])


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
