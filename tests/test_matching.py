"""Parts of two graphs are matched through the graphs: names may all be different."""

import numpy as np
import onnx
import pytest
from quantized_forms import FORMS, forms
from tiny_models import FAMILIES

from fillmask_ui.onnx_tools.graph_edits import match_parts
from fillmask_ui.onnx_tools.graph_parts import find_parts

__all__ = ["forms"]


def renamed(model, seed):
    """The same graph with every name replaced, and its nodes in another order that is allowed."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph, rng = result.graph, np.random.default_rng(seed)
    kept = {value.name for value in (*graph.input, *graph.output)} | {""}
    names = [tensor.name for tensor in graph.initializer]
    names += [name for node in graph.node for name in node.output]
    new = {
        name: f"v{place}"
        for name, place in zip(names, rng.permutation(len(names)), strict=True)
        if name not in kept
    }
    for tensor in graph.initializer:
        tensor.name = new[tensor.name]
    for node in graph.node:
        node.name = ""
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
        if node.op_type == "Add" and rng.random() < 0.5:
            node.input[:] = [node.input[1], node.input[0]]
    ready = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    waiting, ordered = list(graph.node), []
    while waiting:
        can = [node for node in waiting if all(name in ready or not name for name in node.input)]
        node = can[rng.integers(len(can))]
        waiting = [other for other in waiting if other is not node]
        ordered.append(node)
        ready.update(node.output)
    del graph.node[:]
    graph.node.extend(ordered)
    del graph.value_info[:]
    return result, new


@pytest.mark.parametrize("form", ["dynamic-int8", "qdq", "int4"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_graph_whose_names_are_all_others_is_matched(forms, form, seed):
    changed, new = renamed(forms[form], seed)
    onnx.checker.check_model(changed)
    before, after = find_parts(forms[form]), find_parts(changed)
    wanted = {part.output: part.place for part in before}
    assert not {part.name for part in before} & {part.name for part in after}
    matching = match_parts(after, find_parts(forms.baseline))
    plain = match_parts(before, find_parts(forms.baseline))
    assert len(matching.pairs) == len(plain.pairs) and not matching.only_second
    expected = {
        (new.get(pair.first.output, pair.first.output), pair.first.kind, pair.second.name)
        for pair in plain.pairs
    }
    got = {(pair.first.output, pair.first.kind, pair.second.name) for pair in matching.pairs}
    assert got == expected and len(wanted) > 30


@pytest.mark.parametrize("form", FORMS)
def test_names_and_order_agree_where_names_were_kept(forms, form):
    first, second = find_parts(forms[form]), find_parts(forms.baseline)
    pairs = match_parts(first, second).pairs
    named = [pair for pair in pairs if pair.first.output == pair.second.output]
    assert len(named) > 0.6 * len(pairs)
    assert all(pair.first.kind == pair.second.kind for pair in pairs)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_graph_is_matched_with_itself(tiny_models, family):
    parts = find_parts(onnx.load(tiny_models.folder(family) / "onnx" / "model.onnx"))
    matching = match_parts(parts, parts)
    assert all(pair.first == pair.second for pair in matching.pairs)
    assert len(matching.pairs) == len(parts)


def test_what_has_no_partner_is_listed(forms):
    parts = find_parts(forms.baseline)
    without = [part for part in parts if not part.name.endswith("layer.1.intermediate.dense")]
    matching = match_parts(without, parts)
    assert [part.shape for part in matching.only_second] == [(32, 64)]
    assert matching.only_second[0].name.endswith("layer.1.intermediate.dense")
    assert not matching.only_first and len(matching.pairs) == len(without)
    assert [p.name for p in match_parts(parts, without).only_first] == [
        matching.only_second[0].name
    ]
