"""SmoothQuant in the recipe `int8`: references are plain sessions of ONNX Runtime alone."""

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array, to_array
from quantized_forms import feeds, run, whole
from tiny_models import EVERY_FAMILY, SENTENCES

from fillmask_ui.errors import DataError
from fillmask_ui.features.quantize.diagnosis import DiagnoseOptions, Diagnosis
from fillmask_ui.features.quantize.graphs import open_pair
from fillmask_ui.features.quantize.leave_one_out import diagnose
from fillmask_ui.models import ModelChoice, load_model
from fillmask_ui.onnx_tools.constant_folding import SMOOTHING, copy_model
from fillmask_ui.onnx_tools.dynamic_int8 import dynamic_int8
from fillmask_ui.onnx_tools.float32_graph import dequantize
from fillmask_ui.onnx_tools.graph_parts import find_parts
from fillmask_ui.onnx_tools.schemes import write_variant
from fillmask_ui.onnx_tools.smoothing import smoothed
from fillmask_ui.records import Example
from fillmask_ui.texts.calibration import calibration_feeds

FAMILIES = [*EVERY_FAMILY, "albert", "modernbert"]


def with_outliers(home):
    """A tiny model in which two channels of every norm are large, as in trained models."""
    model = whole(home / "onnx" / "model.onnx", home)
    scales = {node.input[1] for node in model.graph.node if node.op_type == "LayerNormalization"}
    for tensor in model.graph.initializer:
        if tensor.name in scales:
            values = to_array(tensor).copy()
            values[[3, 17 % len(values)]] *= 25
            tensor.CopyFrom(from_array(values, tensor.name))
    return model


def vectors(model):
    return {t.name: to_array(t) for t in model.graph.initializer if t.name.endswith(SMOOTHING)}


def texts_of(model, most=30):
    return [feeds(model, rows, most) for rows in (1, 2, 3)]


def written(model, home, folder, name):
    """A graph beside the tokenizer of its model."""
    path = folder / name / "onnx" / "model.onnx"
    path.parent.mkdir(parents=True)
    for file in home.glob("*.json"):
        (folder / name / file.name).write_bytes(file.read_bytes())
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("family", FAMILIES)
def test_the_float_graph_computes_the_same_and_loses_less_in_8_bits(tiny_models, family):
    model = with_outliers(tiny_models.folder(family))
    smooth = smoothed(model, texts_of(model))
    onnx.checker.check_model(smooth)
    assert vectors(smooth) and not vectors(model)
    inputs = feeds(model, 2, 30)
    exact = run(model, inputs, "logits")[0]
    assert np.abs(run(smooth, inputs, "logits")[0] - exact).max() <= 1e-4 * np.abs(exact).max()
    noise, plain = (
        np.square(run(dynamic_int8(graph), inputs, "logits")[0] - exact).mean()
        for graph in (smooth, model)
    )
    assert noise < 0.7 * plain


def test_factors_are_those_of_the_paper(tiny_models):
    """max |A|^alpha / max |W|^(1 - alpha) by hand, for one of the alphas."""
    model = with_outliers(tiny_models.folder("bert"))
    part = next(p for p in find_parts(model) if p.name.endswith("layer.1.intermediate.dense"))
    outputs = copy_model(model)
    outputs.graph.output.append(onnx.helper.make_empty_tensor_value_info(part.source))
    seen = [run(outputs, text, part.source)[0].reshape(-1, 32) for text in texts_of(model)]
    largest = np.abs(np.concatenate(seen)).max(axis=0)
    weights = np.abs(dequantize(model, part)).max(axis=1)
    factors = 1 / vectors(smoothed(model, texts_of(model)))[part.source + SMOOTHING]
    expected = [largest**a / weights ** (1 - a) for a in (0.5, 0.6, 0.7)]
    assert any(np.allclose(factors, each, rtol=1e-4) for each in expected)


def test_norms_take_the_factors_where_nothing_else_reads_them(tiny_models):
    """ModernBERT normalises in front of its products, BERT behind them, for the residual too."""
    for family, folded in (("modernbert", True), ("bert", False)):
        model = with_outliers(tiny_models.folder(family))
        smooth = smoothed(model, texts_of(model))
        muls = [n for n in smooth.graph.node if any(i.endswith(SMOOTHING) for i in n.input)]
        constants = {tensor.name for tensor in smooth.graph.initializer}
        in_norms = [node for node in muls if node.input[0] in constants]
        assert bool(in_norms) == folded
        (head,) = (p for p in find_parts(smooth) if p.kind == "product" and p.layer is None)
        makers = {node.output[0]: node for node in smooth.graph.node}
        reader = makers[makers[head.node].input[0]]
        assert reader.op_type == "Mul" or reader not in muls  # the last hidden state stays


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_a_diagnosis_sees_through_smoothing(tiny_models, tmp_path, family):
    home = tiny_models.folder(family)
    model = with_outliers(home)
    smooth = smoothed(model, texts_of(model))
    int8 = dynamic_int8(smooth)
    # Of the float graph all numbers are equal but for rounding, though each is stored otherwise.
    float_parts, parts = find_parts(smooth), find_parts(model)
    key = [(p.name, p.kind, p.layer, p.shape, p.output, p.source) for p in parts]
    assert [(p.name, p.kind, p.layer, p.shape, p.output, p.source) for p in float_parts] == key
    for mine, part in zip(float_parts, parts, strict=True):
        exact = dequantize(model, part)
        assert np.abs(dequantize(smooth, mine) - exact).max() <= 1e-6 * np.abs(exact).max()
    # Factors are no damage: weights have the ratio of 8 bits, activations that of float32.
    choices = {
        name: ModelChoice(str(written(graph, home, tmp_path, name)))
        for name, graph in (("int8", int8), ("smooth", smooth), ("full", model))
    }
    diagnoses = {}
    for name in ("int8", "smooth"):
        options = DiagnoseOptions(0.0, 0)
        steps = diagnose(choices[name], choices["full"], SENTENCES[:10], options=options)
        diagnoses[name] = [step for step in steps if isinstance(step, Diagnosis)][-1]
        assert not diagnoses[name].only_in_model and not diagnoses[name].only_in_baseline
        assert not any(part.sticks_out for part in diagnoses[name].parts)
    assert min(part.weight_snr_db for part in diagnoses["int8"].parts) > 20
    assert min(part.activation_snr_db for part in diagnoses["smooth"].parts) > 60
    assert not any(part.loses_activations for part in diagnoses["smooth"].parts)
    # Every part in full precision is the model itself again.
    pair = open_pair(choices["int8"], choices["full"])
    restored = pair.restored(["embedding", "product", "projection", "norm", "bias"])
    inputs = feeds(model, 2, 30)
    exact = run(model, inputs, "logits")[0]
    assert np.abs(run(restored, inputs, "logits")[0] - exact).max() <= 1e-4 * np.abs(exact).max()


def test_the_logit_lens_reads_hidden_states_as_they_were(tiny_models, tmp_path):
    home = tiny_models.folder("bert")
    model = with_outliers(home)
    ids = np.array(load_model(home).vocabulary.encode("The cat sat on the mat.").ids)
    full, smooth = (
        load_model(written(graph, home, tmp_path, name))
        for name, graph in (("full", model), ("smooth", smoothed(model, texts_of(model))))
    )
    states = [each.layer_states(ids) for each in (full, smooth)]
    for exact, got in zip(*states, strict=True):
        np.testing.assert_allclose(got, exact, atol=1e-4 * np.abs(exact).max())
    first = states[0][0][0]
    lens, smooth_lens = (each.layer_logits(first, np.arange(len(ids))) for each in (full, smooth))
    np.testing.assert_allclose(smooth_lens, lens, atol=1e-4 * np.abs(lens).max())


def test_calibration_texts_are_needed_and_must_be_readable(tiny_models, tmp_path):
    model = with_outliers(tiny_models.folder("bert"))
    with pytest.raises(DataError, match=r"there are none: .* --calibration FILE; int8-channel"):
        write_variant("int8", model, tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()
    loaded = load_model(tiny_models.folder("bert"))
    texts = [Example(0, "☃ ☃ ☃ ☃ cat"), Example(1, " ")]
    with pytest.raises(DataError, match=r"none of the 2 .* unknown tokens .* --calibration FILE"):
        calibration_feeds(loaded, texts)
    assert len(calibration_feeds(loaded, [*texts, Example(2, "The cat sat on the mat.")])) == 1
