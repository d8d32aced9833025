"""Graphs cut to the asked positions: the same logits as the whole graph, for files of every kind.

The reference is ONNX Runtime itself on the file as it is: all logits, then those asked for.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper
from quantized_forms import exact_settings
from tiny_models import FAMILIES, batch_of, quiet, texts_for

from fillmask_ui.models import load_model
from fillmask_ui.models.runtime_model import FULL_LOGITS
from fillmask_ui.onnx_tools.asked_positions import ASKED, gather_asked

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def own_cache(tmp_path, monkeypatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("FILLMASK_UI_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def entries(cache: Path) -> list[Path]:
    return [path for path in cache.glob("graphs/*") if path.is_file()]


def wanted(model, path: Path, batch, *, alone: bool = False) -> np.ndarray:
    """All logits of the file, then the asked ones, float32 [M, V]; `alone`: text by text."""
    session = ort.InferenceSession(str(path), exact_settings())
    names = {entry.name for entry in session.get_inputs()}

    def run(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return session.run(["logits"], {name: feeds[name] for name in names})[0]

    if not alone:
        return run(batch.input_ids, batch.attention_mask)[batch.rows, batch.cols]
    lengths = batch.attention_mask.sum(axis=1)
    texts = [
        run(batch.input_ids[row : row + 1, :size], batch.attention_mask[row : row + 1, :size])[0]
        for row, size in enumerate(lengths)
    ]
    return np.stack([texts[row][col] for row, col in zip(batch.rows, batch.cols, strict=True)])


def check(folder: Path, family: str = "bert", *, atol: float = 1e-4, alone: bool = False) -> None:
    """Cut, and equal to the whole graph; loaded anew and from the cache."""
    path = next(iter(sorted(folder.glob("**/*.onnx"))))
    for _ in range(2):
        model = load_model(folder)
        assert FULL_LOGITS not in model.signature.notes
        assert model.runs_alone == alone
        batch = batch_of(model.vocabulary, texts_for(family, model.vocabulary.mask_token))
        got = model.logits_at(*batch)
        np.testing.assert_allclose(got, wanted(model, path, batch, alone=alone), atol=atol)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(tiny_models, family):
    """The Gather stands in front of the feed-forward part of the last layer, not of the head."""
    folder = tiny_models.folder(family)
    check(folder, family)
    whole = onnx.load(folder / "onnx" / "model.onnx")
    cut = gather_asked(whole, "logits")
    shallow = gather_asked(whole, "logits", deep=False)
    assert len(names_behind_gather(cut).intersection(products(cut))) >= 3
    assert len(names_behind_gather(shallow).intersection(products(shallow))) == 1


def names_behind_gather(model: onnx.ModelProto) -> set[str]:
    """Outputs of all nodes that read asked rows."""
    known: set[str] = set()
    for node in model.graph.node:
        if known.intersection(node.input) or (node.op_type == "Gather" and ASKED in node.input):
            known.update(node.output)
    return known


def products(model: onnx.ModelProto) -> list[str]:
    return [node.output[0] for node in model.graph.node if node.op_type in ("MatMul", "Gemm")]


def test_dynamic_int8(variant):
    def change(source: Path, target: Path) -> None:
        from onnxruntime.quantization import QuantType, quantize_dynamic

        with quiet():
            quantize_dynamic(source, target, weight_type=QuantType.QInt8, per_channel=True)

    folder = variant(change)
    check(folder, alone=True, atol=1e-4)
    # Behind the quantization of all positions: the scale stays that of the whole text.
    cut = gather_asked(onnx.load(folder / "model.onnx"), "logits")
    gathers = [node for node in cut.graph.node if node.op_type == "Gather" and ASKED in node.input]
    flat = {node.output[0]: node.input[0] for node in cut.graph.node if node.op_type == "Flatten"}
    quantized = {
        node.output[0] for node in cut.graph.node if node.op_type == "DynamicQuantizeLinear"
    }
    assert {flat[node.input[0]] for node in gathers} <= quantized


def test_int8_as_onnxruntime_fuses_it(variant):
    """DynamicQuantizeMatMul, which quantizes and multiplies in one."""

    def change(source: Path, target: Path) -> None:
        from onnxruntime.quantization import QuantType, quantize_dynamic

        plain = target.with_name("plain.onnx")
        with quiet():
            quantize_dynamic(source, plain, weight_type=QuantType.QInt8)
        settings = ort.SessionOptions()
        settings.optimized_model_filepath = str(target)
        settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        settings.log_severity_level = 4
        ort.InferenceSession(str(plain), settings, providers=["CPUExecutionProvider"])
        plain.unlink()

    folder = variant(change)
    graph = onnx.load(folder / "model.onnx").graph
    assert "DynamicQuantizeMatMul" in {node.op_type for node in graph.node}
    check(folder, alone=True)


def test_qdq(variant, quantize_qdq):
    check(variant(quantize_qdq))


def test_four_bit(variant):
    def change(source: Path, target: Path) -> None:
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

        with quiet():
            quantizer = MatMulNBitsQuantizer(onnx.load(source), block_size=16, is_symmetric=True)
            quantizer.process()
            quantizer.model.save_model_to_file(str(target))

    check(variant(change))


@pytest.mark.parametrize("keep_io_types", [True, False])
def test_half_precision(variant, keep_io_types):
    def change(source: Path, target: Path) -> None:
        from onnxruntime.transformers.float16 import convert_float_to_float16

        with quiet():
            half = convert_float_to_float16(onnx.load(source), keep_io_types=keep_io_types)
        onnx.save(half, target)

    folder = variant(change)
    check(folder, atol=0.05)
    # ONNX Runtime widens the weights when it opens the file, not at every call.
    settings = ort.SessionOptions()
    settings.optimized_model_filepath = str(folder / "optimized.onnx")
    settings.log_severity_level = 4
    path = str(folder / "model.onnx")
    ort.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    graph = onnx.load(folder / "optimized.onnx").graph
    sizes = {tensor.name: np.prod(tensor.dims) for tensor in graph.initializer}
    casts = [node for node in graph.node if node.op_type == "Cast"]
    assert max((sizes.get(node.input[0], 0) for node in casts), default=0) <= 1


def test_fused_layer_norms_and_activations(variant):
    def change(source: Path, target: Path) -> None:
        from onnxruntime.transformers.optimizer import optimize_model

        with quiet():
            fused = optimize_model(str(source), "bert", num_heads=4, hidden_size=32, opt_level=0)
            fused.save_model_to_file(str(target))

    folder = variant(change)
    operators = {node.op_type for node in onnx.load(folder / "model.onnx").graph.node}
    assert {"SkipLayerNormalization", "BiasGelu"} <= operators
    check(folder)


def rewritten(edit: Callable[[onnx.GraphProto], None]) -> Callable[[Path, Path], None]:
    def change(source: Path, target: Path) -> None:
        model = onnx.load(source)
        edit(model.graph)
        onnx.checker.check_model(model)
        onnx.save(model, target)

    return change


def last_product(graph: onnx.GraphProto) -> tuple[int, onnx.NodeProto]:
    places = [place for place, node in enumerate(graph.node) if node.op_type == "MatMul"]
    return places[-1], graph.node[places[-1]]


def test_gemm_of_flat_rows(variant):
    """Reshape to [B * T, H], Gemm with the bias, Reshape to [B, T, V]."""

    def edit(graph: onnx.GraphProto) -> None:
        place, product = last_product(graph)
        add = next(node for node in graph.node if product.output[0] in node.input)
        bias = next(name for name in add.input if name != product.output[0])
        source, weight = product.input
        constants = {tensor.name: tensor for tensor in graph.initializer}
        hidden, columns = numpy_helper.to_array(constants[weight]).shape
        graph.initializer.append(numpy_helper.from_array(np.array([-1, hidden]), "flat_shape"))
        graph.initializer.append(numpy_helper.from_array(np.array([columns]), "columns"))
        output = add.output[0]
        graph.node.remove(add)
        graph.node.remove(product)
        nodes = [
            helper.make_node("Shape", [source], ["source_shape"], end=2),
            helper.make_node("Reshape", [source, "flat_shape"], ["flat_source"]),
            helper.make_node("Gemm", ["flat_source", weight, bias], ["flat_logits"]),
            helper.make_node("Concat", ["source_shape", "columns"], ["logits_shape"], axis=0),
            helper.make_node("Reshape", ["flat_logits", "logits_shape"], [output]),
        ]
        for offset, node in enumerate(nodes):
            graph.node.insert(place + offset, node)

    folder = variant(rewritten(edit))
    check(folder)


def test_bias_before_the_product(variant):
    def edit(graph: onnx.GraphProto) -> None:
        _, product = last_product(graph)
        add = next(node for node in graph.node if product.output[0] in node.input)
        add.input[:] = list(reversed(add.input))

    check(variant(rewritten(edit)))


def test_weights_stored_twice(variant):
    """The projection has a matrix of its own, not that of the embeddings."""

    def edit(graph: onnx.GraphProto) -> None:
        _, product = last_product(graph)
        maker = next((node for node in graph.node if product.input[1] in node.output), None)
        constants = {tensor.name: tensor for tensor in graph.initializer}
        if maker is None:
            weight = numpy_helper.to_array(constants[product.input[1]])
        else:
            weight = numpy_helper.to_array(constants[maker.input[0]]).T
        graph.initializer.append(numpy_helper.from_array(weight.copy(), "own_projection"))
        product.input[1] = "own_projection"

    check(variant(rewritten(edit)))


def test_two_logits_per_row_are_not_lost(variant):
    """An operator that mixes positions between projection and output: the whole graph is used."""

    def edit(graph: onnx.GraphProto) -> None:
        output = next(node for node in graph.node if "logits" in node.output)
        output.output[list(output.output).index("logits")] = "plain"
        mean = helper.make_node("ReduceMean", ["plain", "axis_of_texts"], ["mean"])
        graph.initializer.append(numpy_helper.from_array(np.array([1]), "axis_of_texts"))
        graph.node.extend([mean, helper.make_node("Sub", ["plain", "mean"], ["logits"])])

    folder = variant(rewritten(edit))
    model = load_model(folder)
    batch = batch_of(model.vocabulary, texts_for("bert", "[MASK]")[:1])
    np.testing.assert_allclose(
        model.logits_at(*batch), wanted(model, folder / "model.onnx", batch), atol=1e-4
    )


def test_a_cut_graph_that_disagrees_is_not_used(tiny_models, monkeypatch, own_cache):
    def wrong(model, logits, *, deep=True):
        cut = gather_asked(model, logits, deep=deep)
        for node in cut.graph.node:
            if node.op_type == "Erf":
                node.op_type = "Tanh"
        return cut

    monkeypatch.setattr("fillmask_ui.models.onnx_graph.gather_asked", wrong)
    folder = tiny_models.folder("bert")
    model = load_model(folder)
    assert FULL_LOGITS in model.signature.notes
    batch = batch_of(model.vocabulary, texts_for("bert", "[MASK]"))
    path = folder / "onnx" / "model.onnx"
    np.testing.assert_allclose(model.logits_at(*batch), wanted(model, path, batch), atol=1e-4)
    assert entries(own_cache) == []


def test_the_second_load_does_not_parse_the_file(tiny_models):
    """Not even the library is imported that would."""
    folder = tiny_models.folder("bert")
    load_model(folder)
    script = (
        "import sys; from fillmask_ui.models import load_model; "
        "model = load_model(sys.argv[1]); print('onnx' in sys.modules, model.max_tokens)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[0] == "False", done.stderr


def test_weights_stay_where_they_are(tiny_models, own_cache):
    folder = tiny_models.folder("bert")
    load_model(folder)
    (entry,) = entries(own_cache)
    content = entry.read_bytes()[32:].partition(b"\n")[2]
    cut = onnx.ModelProto.FromString(content)
    large = [tensor for tensor in cut.graph.initializer if np.prod(tensor.dims) > 4096]
    assert large
    assert {tensor.data_location for tensor in large} == {TensorProto.EXTERNAL}
    assert len(content) < (folder / "onnx" / "model.onnx").stat().st_size / 2


@pytest.mark.parametrize("kept", [0, 31, 200, -1])
def test_a_torn_entry_is_made_again(tiny_models, own_cache, kept):
    folder = tiny_models.folder("bert")
    load_model(folder)
    (entry,) = entries(own_cache)
    whole = entry.read_bytes()
    entry.write_bytes(whole[:kept])
    check(folder)
    assert entry.read_bytes() == whole


def test_a_cache_that_cannot_be_written(tiny_models, tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("FILLMASK_UI_CACHE", str(blocked / "cache"))
    check(tiny_models.folder("bert"))


def test_the_cached_graph_follows_the_weights(variant, own_cache):
    """The same graph beside other weights: those are run, not the ones it was cut with."""

    def change(source: Path, target: Path) -> None:
        onnx.save(onnx.load(source), target, save_as_external_data=True, location="model.onnx.data")

    folder = variant(change)
    check(folder)
    data = folder / "model.onnx.data"
    values = np.frombuffer(data.read_bytes(), np.float32) * np.float32(1.5)
    data.write_bytes(values.tobytes())
    check(folder)
    assert len(entries(own_cache)) == 1
