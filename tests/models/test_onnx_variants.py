"""ONNX files of many exporters and quantizers: the logits of the plain export, or of the file.

References are the same weights on PyTorch, which `test_families` holds against transformers, and
ONNX Runtime itself on the file: all logits, then those asked for.
"""

import shutil
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from models.conftest import transformers_output
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data
from quantized_forms import exact_settings
from tiny_models import batch_of, export_onnx, quiet, texts_for

from fillmask_ui import fill, layers, scoring
from fillmask_ui.errors import ModelError, TextError
from fillmask_ui.models import load_model
from fillmask_ui.models.runtime_model import FULL_LOGITS
from fillmask_ui.models.weights import weights_sha256
from fillmask_ui.onnx_tools.asked_positions import ASKED, gather_asked

EXPORTS = [
    ("bert", {"dtype": "int32"}),
    ("bert", {"inputs": ("attention_mask", "input_ids")}),
    ("bert", {"inputs": ("input_ids",)}),  # without a mask padding would be read as text
    ("bert", {"batch": 1}),
    ("bert", {"batch": 5}),
    ("bert", {"length": 48}),
    ("bert", {"outputs": ("hidden", "logits")}),
    ("roberta", {"inputs": ("input_ids", "attention_mask", "position_ids")}),
    ("roberta", {"length": 48}),
]


@pytest.mark.parametrize(("family", "changes"), EXPORTS)
def test_exports_of_other_shapes(exported, agrees, family, changes):
    import torch

    kinds = {"dtype": torch.int32} if "dtype" in changes else {}
    folder = exported(family, **{**changes, **kinds})
    graph = onnx.load(folder / "model.onnx").graph
    names = [entry.name for entry in graph.input]
    assert names == list(changes.get("inputs", names))
    types = {entry.type.tensor_type.elem_type for entry in graph.input}
    assert types == {TensorProto.INT32 if kinds else TensorProto.INT64}
    model = load_model(folder)
    agrees(model, family)
    texts = [f"word {n} {model.vocabulary.mask_token}" for n in range(7)]
    single = [model.logits_at(*batch_of(model.vocabulary, [text])) for text in texts]
    together = model.logits_at(*batch_of(model.vocabulary, texts))
    np.testing.assert_allclose(together, np.concatenate(single), atol=1e-4)
    if length := changes.get("length"):
        assert model.max_tokens == length
        with pytest.raises(TextError, match="48"):
            fill(model, "a " * 60 + model.vocabulary.mask_token)


def dynamic_int8(source: Path, target: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(source, target, weight_type=QuantType.QInt8, per_channel=True)


def int8_as_onnxruntime_fuses_it(source: Path, target: Path) -> None:
    """DynamicQuantizeMatMul, which quantizes and multiplies in one."""
    dynamic_int8(source, plain := target.with_suffix(".plain"))
    settings = ort.SessionOptions()
    settings.optimized_model_filepath = str(target)
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    settings.log_severity_level = 4
    ort.InferenceSession(str(plain), settings, providers=["CPUExecutionProvider"])


def four_bits(source: Path, target: Path) -> None:
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(onnx.load(source), block_size=16, is_symmetric=True)
    quantizer.process()
    quantizer.model.save_model_to_file(str(target))


def half_precision(source: Path, target: Path) -> None:
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), target)


def fused_layer_norms(source: Path, target: Path) -> None:
    from onnxruntime.transformers.optimizer import optimize_model

    fused = optimize_model(str(source), "bert", num_heads=4, hidden_size=32, opt_level=0)
    fused.save_model_to_file(str(target))


# Form -> operators in it, precision, least correlation with PyTorch, tolerance to the file itself.
FORMS = {
    dynamic_int8: ("MatMulInteger", "int8", 0.97, 1e-4),
    int8_as_onnxruntime_fuses_it: ("DynamicQuantizeMatMul", "int8", 0.97, 1e-4),
    # All operators in 8 bits, which the numbers of so small a model do not survive.
    "qdq": ("DequantizeLinear", "int8", -1.0, 1e-4),
    four_bits: ("MatMulNBits", "int4", 0.8, 1e-4),
    half_precision: ("Cast", "float16", 0.99, 0.05),
    fused_layer_norms: ("SkipLayerNormalization", "float32", 0.9999, 1e-4),
}


@pytest.mark.parametrize("change", FORMS)
def test_forms_are_cut_and_give_the_logits_of_their_file(variant, loaded, quantize_qdq, change):
    operator, precision, correlation, atol = FORMS[change]
    with quiet():
        folder = variant(quantize_qdq if change == "qdq" else change)
    whole = onnx.load(folder / "model.onnx")
    assert operator in {node.op_type for node in whole.graph.node}
    model, exact = load_model(folder), loaded("bert", "torch")
    assert model.signature.precision == precision
    assert (model.signature.parameters is None) == precision.startswith("int")
    assert model.runs_alone == (change in (dynamic_int8, int8_as_onnxruntime_fuses_it))
    is_cut = change is not int8_as_onnxruntime_fuses_it
    assert (FULL_LOGITS in model.signature.notes) != is_cut
    batch = batch_of(model.vocabulary, texts_for("bert", "[MASK]"))
    got, full = model.logits_at(*batch), exact.logits_at(*batch)
    expected = file_logits(folder / "model.onnx", batch, alone=model.runs_alone)
    np.testing.assert_allclose(got, expected, atol=atol)
    assert min(np.corrcoef(a, b)[0, 1] for a, b in zip(got, full, strict=True)) > correlation
    log_probs = scoring.exponentials(got).log_probabilities
    np.testing.assert_allclose(np.exp(log_probs).sum(axis=1), 1.0, atol=1e-9)
    if is_cut:
        rows, cols = np.nonzero(batch.attention_mask)
        asked = batch.input_ids, batch.attention_mask, rows, cols
        states, expected = model.states_at(*asked), exact.states_at(*asked)
        assert np.corrcoef(states.ravel(), expected.ravel())[0, 1] > correlation
        _check_layers(model, exact, batch.input_ids[1], correlation, atol)
    else:
        with pytest.raises(ModelError, match="does not show where its layers end"):
            layers(model, "A [MASK].")
    if change is dynamic_int8:
        # The Gather stands behind the quantization: the scale stays that of the whole text.
        nodes = gather_asked(whole, "logits").graph.node
        gathered = {node.input[0] for node in nodes if ASKED in node.input}
        flat = {node.input[0] for node in nodes if node.output[0] in gathered}
        assert flat <= {n.output[0] for n in nodes if n.op_type == "DynamicQuantizeLinear"}


def _check_layers(model, exact, ids, correlation, atol):
    """Each is close to that in full precision, and the last one ends in the logits."""
    states, expected = model.layer_states(ids), exact.layer_states(ids)
    for layer, expected_layer in zip(states, expected, strict=True):
        assert np.corrcoef(layer.ravel(), expected_layer.ravel())[0, 1] > correlation
    asked = ids[None], np.ones_like(ids)[None], np.zeros_like(ids), np.arange(len(ids))
    np.testing.assert_allclose(
        model.layer_logits(states[-1], asked[-1]), model.logits_at(*asked), atol=atol
    )


def file_logits(path: Path, batch, *, alone: bool = False) -> np.ndarray:
    """All logits of the file, then the asked ones, float32 [M, V]; `alone`: text by text."""
    session = ort.InferenceSession(str(path), exact_settings())
    names = {entry.name for entry in session.get_inputs()}

    def run(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return session.run(["logits"], {name: feeds[name] for name in names})[0]

    if not alone:
        return run(batch.input_ids, batch.attention_mask)[batch.rows, batch.cols]
    lengths = batch.attention_mask.sum(axis=1)
    places = zip(batch.rows, batch.cols, strict=True)
    return np.array([
        run(batch.input_ids[[r], : lengths[r]], batch.attention_mask[[r], : lengths[r]])[0, c]
        for r, c in places
    ])  # fmt: skip


def test_a_graph_that_mixes_positions_behind_its_projection_is_used_whole(variant):
    def change(source: Path, target: Path) -> None:
        model = onnx.load(source)
        output = next(node for node in model.graph.node if "logits" in node.output)
        output.output[list(output.output).index("logits")] = "plain"
        mean = helper.make_node("ReduceMean", ["plain", "axis_of_texts"], ["mean"])
        model.graph.initializer.append(numpy_helper.from_array(np.array([1]), "axis_of_texts"))
        model.graph.node.extend([mean, helper.make_node("Sub", ["plain", "mean"], ["logits"])])
        onnx.save(model, target)

    folder = variant(change)
    model = load_model(folder)
    batch = batch_of(model.vocabulary, texts_for("bert", "[MASK]")[:1])
    expected = file_logits(folder / "model.onnx", batch)
    np.testing.assert_allclose(model.logits_at(*batch), expected, atol=1e-4)
    with pytest.raises(ModelError, match="does not show where its encoder ends"):
        model.states_at(*batch)


def test_inputs_of_contradicting_shapes_are_refused_in_one_line(exported):
    """Position ids that were traced for one text of nine tokens, beside tokens of any shape."""
    folder = exported("roberta", inputs=("input_ids", "attention_mask", "position_ids"))
    model = onnx.load(folder / "model.onnx")
    *_, positions = model.graph.input
    for axis, size in zip(positions.type.tensor_type.shape.dim, (1, 9), strict=True):
        axis.dim_value = size
    onnx.save(model, folder / "model.onnx")
    with pytest.raises(ModelError) as raised:
        load_model(folder)
    message = str(raised.value)
    assert "failed on 2 x " in message and "position_ids" in message and "\n" not in message


def external(location: str):
    """Put the weights where `location` says, relative to the folder of the graph."""

    def change(source: Path, target: Path) -> None:
        inside = target.parent / "onnx" / "model.onnx"
        inside.parent.mkdir()
        options = {"save_as_external_data": True, "location": "weights", "size_threshold": 0}
        onnx.save(onnx.load(source), inside, **options)
        model = onnx.load(inside, load_external_data=False)
        for tensor in model.graph.initializer:
            for entry in tensor.external_data:
                if entry.key == "location":
                    entry.value = location
        moved = inside.parent / location
        if moved.parent.is_dir() and not moved.exists():
            (inside.parent / "weights").rename(moved)
        onnx.save(model, inside)

    return change


def test_external_data_one_folder_up_and_behind_links(variant, agrees, tmp_path):
    """As the embedded model has it; ONNX Runtime alone refuses such a file."""
    folder = variant(external("../shared.data"))
    with (folder / "shared.data").open("ab") as file:
        file.write(bytes(1 << 20))  # what only another graph reads
    files = [folder / "onnx" / "model.onnx", folder / "shared.data"]
    tensors = onnx.load(files[0], load_external_data=False).graph.initializer
    lengths = sum(
        int(e.value) for tensor in tensors for e in tensor.external_data if e.key == "length"
    )
    for path in (folder, files[0]):  # the second from the cache
        model = load_model(path)
        agrees(model)
        assert model.signature.size_bytes == files[0].stat().st_size + lengths
        assert model.signature.sha256 == weights_sha256(files)
    # The hub's cache: a snapshot is a folder of links into `blobs`.
    blobs = tmp_path / "models--org--name" / "blobs"
    snapshot = tmp_path / "models--org--name" / "snapshots" / ("a" * 40)
    blobs.mkdir(parents=True)
    for number, path in enumerate(sorted(p for p in folder.rglob("*") if p.is_file())):
        link = snapshot / path.relative_to(folder)
        link.parent.mkdir(parents=True, exist_ok=True)
        path.rename(blobs / str(number))
        link.symlink_to(blobs / str(number))
    agrees(load_model(snapshot))


@pytest.mark.parametrize("how", ["../../shared.data", "/etc/hostname", "linked", "gone", "short"])
def test_external_data_outside_missing_or_cut_short(variant, tmp_path, how):
    folder = variant(external(how if "/" in how else "../shared.data"))
    shared, message = folder / "shared.data", "outside the folder"
    if how == "linked":
        shared.rename(tmp_path / "elsewhere")
        shared.symlink_to(tmp_path / "elsewhere")
    elif how == "gone":
        shared.unlink()
        message = r"shared\.data cannot be read as a model: No such file"
    elif how == "short":
        load_model(folder)  # the cut graph is in the cache
        shared.write_bytes(shared.read_bytes()[:-1])
        message = r"cannot be read as a model: .*out of bounds"
    with pytest.raises(ModelError, match=message):
        load_model(folder)


@pytest.mark.parametrize("where", ["function", "sparse initializer", "sparse attribute"])
def test_external_data_outside_of_every_kind_of_constant(variant, where):
    """All that the ONNX specification lets hold a tensor."""
    secret = numpy_helper.from_array(np.zeros(4, np.float32), "secret")
    set_external_data(secret, "/etc/hostname")
    secret.ClearField("raw_data")
    indices = numpy_helper.from_array(np.arange(4), "indices")
    sparse = helper.make_sparse_tensor(secret, indices, [8])

    def change(source: Path, target: Path) -> None:
        model = onnx.load(source)
        if where == "function":
            node = helper.make_node("Constant", [], ["out"], value=secret)
            opset = [helper.make_opsetid("", 18)]
            model.functions.append(helper.make_function("own", "f", [], ["out"], [node], opset))
        elif where == "sparse initializer":
            model.graph.sparse_initializer.append(sparse)
        else:
            node = helper.make_node("Constant", [], ["unused"], sparse_value=sparse)
            model.graph.node.append(node)
        onnx.save(model, target)

    with pytest.raises(ModelError, match="'/etc/hostname', outside the folder"):
        load_model(variant(change))


@pytest.mark.parametrize("kind", ["xlm", "flaubert"])
def test_token_types_that_are_read_as_words(kind, tiny_models, tmp_path):
    """The outside reference: transformers without token types, which its tokenizers leave out."""
    import torch
    from transformers import AutoConfig, AutoModelForMaskedLM

    sizes = {"vocab_size": 300, "emb_dim": 32, "n_layers": 2, "n_heads": 4}
    config = AutoConfig.for_model(kind, **sizes, max_position_embeddings=64, pad_index=0)
    torch.manual_seed(3)
    with quiet():
        AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path)
    for path in tiny_models.without_onnx("bert").glob("token*.json"):
        shutil.copy(path, tmp_path)
    export_onnx(tmp_path, inputs=("input_ids", "attention_mask"))
    model = load_model(tmp_path, runtime="onnx")
    batch = batch_of(model.vocabulary, texts_for("bert", "[MASK]"))
    expected = transformers_output(tmp_path, batch).logits.numpy()[batch.rows, batch.cols]
    np.testing.assert_allclose(model.logits_at(*batch), expected, atol=1e-4)
    export_onnx(tmp_path, inputs=("input_ids", "attention_mask", "token_type_ids"))
    with pytest.raises(ModelError, match="reads token types as words"):
        load_model(tmp_path, runtime="onnx")


def test_a_big_batch_runs_in_pieces_without_texts_that_nobody_asks_about(
    tiny_models, tmp_path, monkeypatch
):
    """All logits [B, T, V] of 40 texts would be over the limit set here."""
    monkeypatch.setenv("FILLMASK_UI_CACHE", str(tmp_path))
    monkeypatch.setattr("fillmask_ui.models.onnx_graph.gather_asked", lambda *_: None)
    model = load_model(tiny_models.folder("bert"))
    batch = batch_of(model.vocabulary, [f"{'the ' * (n % 9)}[MASK] cat {n}" for n in range(40)])
    whole = model.logits_at(*batch)
    shapes, arrays = [], model.arrays
    monkeypatch.setattr(
        model, "arrays", lambda ids, mask: shapes.append(ids.shape) or arrays(ids, mask)
    )
    monkeypatch.setattr("fillmask_ui.models.runtime_model._RUN_BYTES", 60_000)
    np.testing.assert_allclose(model.logits_at(*batch), whole, atol=1e-4)
    assert len(shapes) > 5
    assert all(b * t * model.signature.vocabulary_size * 4 <= 60_000 for b, t in shapes)
    assert sum(b for b, _ in shapes) == 40
    shapes.clear()
    first_row = model.logits_at(
        batch.input_ids, batch.attention_mask, batch.rows[:1], batch.cols[:1]
    )
    np.testing.assert_allclose(first_row, whole[:1], atol=1e-4)
    assert [b for b, _ in shapes] == [1]
    empty = batch.rows[:0]
    none = model.logits_at(batch.input_ids, batch.attention_mask, empty, empty)
    assert none.shape == (0, model.signature.vocabulary_size)
