"""Export, shared weights and int8 on tiny models, against PyTorch and against plain arithmetic."""

import copy
import struct

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from safetensors.torch import load_file
from tiny_models import reference_model

from fillmask_ui.errors import ModelError
from fillmask_ui.features.train.torch_weights import new_model
from fillmask_ui.models.weights import read_header
from fillmask_ui.onnx_tools.dynamic_int8 import dynamic_int8
from fillmask_ui.onnx_tools.external_weights import share_weights
from fillmask_ui.onnx_tools.float32_graph import make_whole
from fillmask_ui.onnx_tools.graph_parts import find_parts
from fillmask_ui.onnx_tools.onnx_export import export_onnx, probe_inputs


@pytest.fixture
def exported(once, tokenizer, config_file):
    """A model with weights large enough for logits to differ, and its graph."""

    def make(family):
        torch.manual_seed(3)
        model = new_model(config_file(family), tokenizer).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.2)
                parameter.copy_(parameter.half().float())
        name = "model.onnx"
        folder = once.folder(
            f"exported/{family}", lambda own: onnx.save(export_onnx(model), own / name)
        )
        return model, onnx.load(folder / name)

    return make


def probe_arrays(model):
    return {name: values.numpy() for name, values in probe_inputs(model).items()}


def run(graph, arrays, folder=None, outputs=("logits",)):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # Sums of products of bytes saturate on a CPU without VNNI.
    options.add_session_config_entry("session.x64quantprecision", "1")
    if folder is not None:
        key = "session.model_external_initializers_file_folder_path"
        options.add_session_config_entry(key, str(folder))
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options)
    results = session.run(list(outputs), arrays)
    return results[0] if len(results) == 1 else results


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert"])
def test_the_graph_equals_pytorch_at_any_length(family, tokenizer, exported):
    """Reference: the model's own forward pass, with other sizes than those of the trace."""
    model, graph = exported(family)
    names = list(probe_inputs(model))
    assert [value.name for value in graph.graph.input] == names
    assert [value.name for value in graph.graph.output] == ["logits"]
    assert not graph.metadata_props
    ids = torch.randint(5, len(tokenizer), (3, 31))
    mask = torch.ones_like(ids)
    mask[1, 20:] = 0
    mask[2, 1:] = 0
    values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}
    values = {name: values[name] for name in names}
    with torch.no_grad():
        expected = model(**values).logits.numpy()
    got = run(graph, {name: value.numpy() for name, value in values.items()})
    assert got.dtype == np.float32
    seen = mask.numpy().astype(bool)
    np.testing.assert_allclose(got[seen], expected[seen], atol=1e-4)


def test_shared_weights_change_nothing_but_the_size(tmp_path, tokenizer, config_file, exported):
    """Reference: the safetensors package wrote the file."""
    model, graph = exported("bert")
    copy.deepcopy(model).half().save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    raw, tensors = path.read_bytes(), load_file(path)
    headers = {stored.name: stored for stored in read_header(path)}
    assert headers.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert raw[headers[name].start : headers[name].end] == tensor.numpy().tobytes()
    arrays = probe_arrays(model)
    before, size = run(graph, arrays), graph.ByteSize()
    shared = share_weights(graph, path, read_header(path))
    assert "bert.embeddings.position_embeddings.weight" in shared
    onnx.save(graph, tmp_path / "shared.onnx")
    onnx.checker.check_model(tmp_path / "shared.onnx")
    assert graph.ByteSize() < size / 3
    np.testing.assert_array_equal(run(graph, arrays, tmp_path), before)
    inside = [t for t in graph.graph.initializer if t.data_location != TensorProto.EXTERNAL]
    assert max(np.prod(tensor.dims) for tensor in inside) < 256
    # Nothing is shared with foreign weights, and other files are refused.
    _, other = exported("bert")
    torch.manual_seed(4)
    new_model(config_file("bert"), tokenizer).save_pretrained(tmp_path)
    assert share_weights(other, path, read_header(path)) == []
    for content in (b"", b"1234", struct.pack("<Q", 5) + b"nojson"):
        path.write_bytes(content)
        with pytest.raises(ModelError, match="cannot be read as a model"):
            read_header(path)


def tied_model(table):
    """Word embeddings [V, H] times themselves, with a bias."""
    vocabulary, width = table.shape
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["words.weight", "ids"], ["rows"]),
            helper.make_node("Transpose", ["words.weight"], ["turned"], perm=[1, 0]),
            helper.make_node("MatMul", ["rows", "turned"], ["product"]),
            helper.make_node("Add", ["product", "decoder.bias"], ["logits"]),
        ],
        "tied",
        [value("ids", TensorProto.INT64, ["b", "t"])],
        [
            value("logits", TensorProto.FLOAT, ["b", "t", vocabulary]),
            value("rows", TensorProto.FLOAT, ["b", "t", width]),
        ],
        [
            numpy_helper.from_array(table, "words.weight"),
            numpy_helper.from_array(np.arange(vocabulary, dtype=np.float32), "decoder.bias"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_tied_embeddings_are_one_int8_matrix():
    """Reference: rounding and DynamicQuantizeLinear's formula by hand in numpy."""
    table = np.random.default_rng(2).normal(size=(9, 16)).astype(np.float32)
    table[4] *= 50  # one scale a matrix would ruin the others
    ids = np.array([[1, 3, 8], [0, 1, 2]])
    whole = tied_model(table)
    make_whole(whole, "tied")
    graph = dynamic_int8(whole)
    (matrix,) = [numpy_helper.to_array(t) for t in graph.graph.initializer if len(t.dims) == 2]
    assert (matrix.dtype, matrix.shape) == (np.int8, table.shape)

    scale = (np.abs(table).max(axis=1, keepdims=True) / 127).astype(np.float32)
    np.testing.assert_array_equal(matrix, np.rint(table / scale))
    logits, rows = run(graph, {"ids": ids}, outputs=["logits", "rows"])
    wanted = matrix[ids] * scale[ids]
    np.testing.assert_allclose(rows, wanted, rtol=1e-6)
    low, high = min(0, wanted.min()), max(0, wanted.max())
    step = np.float32((high - low) / 255)
    zero = np.clip(np.rint(-low / step), 0, 255)
    shown = np.clip(np.rint(wanted / step) + zero, 0, 255) - zero
    expected = (shown @ matrix.T) * step * scale[:, 0] + np.arange(9)
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def products(graph):
    return [part for part in find_parts(graph) if part.kind in ("product", "projection")]


@pytest.mark.parametrize(
    ("family", "weights"),
    # ALBERT runs its one layer twice.
    [("albert", 1 + 6 + 2), ("bert", 2 * 6 + 2)],
)
def test_layers_that_run_again_or_look_alike_in_int8(tiny_models, family, weights):
    """ONNX Runtime refuses a graph that defines a name twice; exporters merge what is equal."""
    folder = tiny_models.folder(family, onnx=False)
    model = reference_model(folder, attn_implementation="eager", dtype=torch.float32)
    if family == "bert":
        with torch.no_grad():  # as a model that never trained
            for name, parameter in model.named_parameters():
                parameter.mul_(not name.endswith(".bias"))
    graph = export_onnx(model)
    arrays = probe_arrays(model)
    exact, quantized = run(graph, arrays), dynamic_int8(graph)
    onnxruntime.InferenceSession(quantized.SerializeToString())
    seen = arrays["attention_mask"].astype(bool)
    # The products of ONNX Runtime saturate on a CPU without VNNI.
    (got,) = ReferenceEvaluator(quantized).run(["logits"], arrays)
    assert 0 < np.abs(got - exact)[seen].mean() < 0.2 * exact[seen].std()
    operators = [node.op_type for node in quantized.graph.node]
    assert operators.count("MatMulInteger") == len(products(graph))
    matrices = [t for t in quantized.graph.initializer if len(t.dims) == 2 and t.data_type == 3]
    assert len(matrices) == weights
