"""The diagnosis of a quantized model: planted faults are named first, numbers are checked by hand.

Ratios are recomputed with numpy from the stored numbers, losses with `evaluate` on written files.
"""

import math
import shutil

import numpy as np
import onnx
import pytest
from features.quantize.planted import FAULTS, part_at, plant
from onnx import helper
from onnx.numpy_helper import from_array
from quantized_forms import feeds, forms, run
from tiny_models import SENTENCES

from fillmask_ui.errors import ModelError
from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.features.quantize.diagnosis import (
    DiagnoseOptions,
    Diagnosis,
    activation_noise,
    snr_db,
)
from fillmask_ui.features.quantize.diagnosis_tables import worst_sentence
from fillmask_ui.features.quantize.graphs import open_pair
from fillmask_ui.features.quantize.leave_one_out import diagnose
from fillmask_ui.models import ModelChoice, load_choice
from fillmask_ui.onnx_tools.constant_folding import copy_model, replace_nodes
from fillmask_ui.onnx_tools.float32_graph import dequantize
from fillmask_ui.onnx_tools.graph_edits import with_outputs
from fillmask_ui.onnx_tools.graph_parts import find_parts

__all__ = ["forms"]

TEXTS = SENTENCES[:10]


class Home:
    """A tiny BERT beside quantized files of it."""

    def __init__(self, forms, folder):
        self.folder = folder / "bert"
        shutil.copytree(forms.home, self.folder, ignore=shutil.ignore_patterns("*.safetensors"))
        self.graph = forms["dynamic-int8"]
        self.baseline = ModelChoice(str(self.folder))
        self.int8 = self.write(self.graph, "int8")
        self.fp16 = self.write(forms["fp16"], "fp16")

    def write(self, graph, name):
        path = self.folder / "onnx" / f"model_{name}.onnx"
        onnx.save(graph, path)
        return ModelChoice(str(path))


@pytest.fixture(scope="module")
def home(forms, tmp_path_factory):
    return Home(forms, tmp_path_factory.mktemp("diagnosed"))


@pytest.fixture(scope="module")
def steps(home):
    """Of a diagnosis that measures two parts, for a budget that cannot be met by chance."""
    return list(diagnose(home.int8, home.baseline, TEXTS, options=DiagnoseOptions(0.0, 2)))


def last(model, baseline, **options):
    steps = diagnose(model, baseline, TEXTS, options=DiagnoseOptions(**options))
    return [step for step in steps if isinstance(step, Diagnosis)][-1]


@pytest.mark.parametrize(("fault", "layer"), [*zip(FAULTS, (0, 1, 1), strict=True)])
def test_a_planted_fault_is_named_first(home, fault, layer):
    broken = copy_model(home.graph)
    output = plant(broken, fault, layer, seed=layer + 1)
    expected = part_at(find_parts(onnx.load(home.folder / "onnx" / "model.onnx")), output, fault)
    diagnosis = last(home.write(broken, "broken"), home.baseline, most=2)
    first, second = diagnosis.parts[:2]
    assert diagnosis.complete and first.name == expected and first.restored is not None
    assert first.sticks_out and not second.sticks_out
    assert math.isfinite(first.weight_snr_db) and math.isfinite(second.weight_snr_db)


def with_pair(model, part, step):
    """A copy in which a product reads activations through one pair of Q and DQ."""
    result = copy_model(model)
    graph = result.graph
    graph.initializer.append(from_array(np.float32(step), "step"))
    graph.initializer.append(from_array(np.uint8(128), "zero"))
    pair = [
        helper.make_node("QuantizeLinear", [part.source, "step", "zero"], ["bytes"]),
        helper.make_node("DequantizeLinear", ["bytes", "step", "zero"], ["floats"]),
    ]
    index = next(i for i, node in enumerate(graph.node) if part.node in node.output)
    graph.node[index].input[0] = "floats"
    nodes = [*graph.node[:index], *pair, *graph.node[index:]]
    replace_nodes(graph, nodes)
    return result


@pytest.mark.parametrize(("form", "layer"), [("baseline", 1), ("qdq", 0)])
def test_one_bad_pair_leads_where_weights_are_as_they_should_be(home, forms, form, layer):
    """The ratio by hand: numpy rounds the activations that a session of ONNX Runtime yields."""
    graph = forms.baseline if form == "baseline" else forms["qdq"]
    name = f"layer.{layer}.intermediate.dense"
    part = next(part for part in find_parts(graph) if part.name.endswith(name))
    (values,) = run(with_outputs(graph, [part.source]), feeds(graph), part.source)
    fine, coarse = np.abs(values).max() / 127, np.abs(values).max() / 2
    diagnosis = last(home.write(with_pair(graph, part, fine), "pair"), home.baseline, most=0)
    assert not any(part.loses_activations for part in diagnosis.parts)
    diagnosis = last(home.write(with_pair(graph, part, coarse), "pair"), home.baseline, most=1)
    worst = diagnosis.parts[0]
    assert worst.name == part.name and worst.loses_activations and worst.restored
    assert not any(part.loses_activations for part in diagnosis.parts[1:])
    rounded = np.clip(np.rint(values / coarse), -128, 127) * coarse
    exact, noisy = (each @ dequantize(graph, part) for each in (values, rounded))
    by_hand = 10 * math.log10((exact**2).sum() / ((exact - noisy) ** 2).sum())
    assert worst.activation_snr_db == pytest.approx(by_hand, abs=3)  # on other tokens
    said = "Weights equal" if form == "baseline" else "Weights as usual"
    start = f"{said}; activations lose {worst.activation_loss_db:.0f} dB at layer {layer}"
    assert worst_sentence(diagnosis).startswith(f"{start}: the output of {part.name}")


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("qoperator", r"is a QOperator graph \(\d+ QLinearMatMul\).*quant_format=QuantFormat.QDQ"),
        ("bnb4", r"4 bits of bitsandbytes \(13 MatMulBnb4\).*quantize --scheme int4"),
    ],
)
def test_forms_that_cannot_be_taken_apart_are_named(home, forms, form, words):
    choice = home.write(forms[form], form)
    with pytest.raises(ModelError, match=words):
        last(choice, home.baseline)


def test_ratios_are_those_of_the_stored_numbers(home, forms, steps):
    diagnosis = steps[-1]
    assert (
        len(diagnosis.parts) == 43
        and not diagnosis.only_in_model
        and not diagnosis.only_in_baseline
    )
    pairs = zip(find_parts(home.graph), find_parts(forms.baseline), strict=True)
    by_name = {second.name.removeprefix("model."): (first, second) for first, second in pairs}
    for part in diagnosis.parts:
        first, second = by_name[part.name.removeprefix("model.")]
        exact = dequantize(forms.baseline, second).astype(np.float64)
        noise = ((exact - dequantize(home.graph, first)) ** 2).sum()
        snr = 10 * math.log10((exact**2).sum() / noise) if noise else math.inf
        assert part.weight_snr_db == pytest.approx(snr)
        if part.kind == "product":
            rows, columns = part.shape
            assert part.size_bytes == rows * columns + 5 * columns
            assert part.baseline_bytes == 4 * rows * columns
            assert 35 < part.weight_snr_db < 60
    depth = [layer.hidden_snr_db for layer in diagnosis.layers]
    assert [layer.label for layer in diagnosis.layers] == [
        "embeddings",
        "layer 0",
        "layer 1",
        "head",
    ]
    assert 5 < depth[2] < depth[1] < depth[0] < 60 and depth[3] is None


def test_noise_of_activations_by_hand(home, forms):
    ids = [np.array([1, 7, 30, 5, 2]), np.array([1, 9, 2])]
    name = "/model/bert/encoder/layer.1/output/dense/MatMul_output_0"

    def outputs(graph):
        changed = with_outputs(graph, [name])

        def call(tokens, mask):
            inputs = {"input_ids": tokens, "attention_mask": mask}
            return {name: run(changed, inputs | {"token_type_ids": np.zeros_like(mask)}, name)[0]}

        return call

    quantized, baseline = outputs(home.graph), outputs(forms.baseline)
    sums = activation_noise(quantized, baseline, {name: name}, ids)[name]
    signal = noise = 0.0
    for text in ids:
        noisy, exact = (
            graph(text[None], np.ones_like(text)[None])[name] for graph in (quantized, baseline)
        )
        signal += (exact.astype(float) ** 2).sum()
        noise += ((noisy.astype(float) - exact) ** 2).sum()
    assert snr_db(sums) == pytest.approx(10 * math.log10(signal / noise))
    assert snr_db(np.array([0.0, 1.0])) == -math.inf


def test_losses_are_those_that_eval_measures_of_the_written_files(home, steps):
    diagnosis, pair = steps[-1], open_pair(home.int8, home.baseline)
    config = EvaluationConfig().resolved(pair.quantized.model.max_tokens)

    def mean(choice):
        model = load_choice(choice)
        return summarize(evaluate(model, TEXTS, config), config=config).model.mean_nll_nats

    assert diagnosis.mean_nll_nats == pytest.approx(mean(home.int8), abs=1e-9)
    assert diagnosis.baseline_nll_nats == pytest.approx(mean(home.baseline), abs=1e-6)
    measured = [part for part in diagnosis.parts if part.restored]
    assert len(measured) == 2
    for part in measured:
        path = home.folder / "onnx" / f"model_{part.name}.onnx"
        pair.write_restored([part.name], path)
        restored = part.restored
        recovered = diagnosis.mean_nll_nats - mean(ModelChoice(str(path)))
        assert restored.recovered_nats == pytest.approx(recovered, abs=1e-9)
        assert restored.interval.low <= restored.recovered_nats <= restored.interval.high
        rows, columns = part.shape
        added = restored.bytes_added - (3 * rows - 5) * columns
        assert abs(added) <= 4 * rows * columns  # the embeddings may be shared
    assert not list((home.folder / "onnx").glob(".draft*"))


def test_the_greedy_list_ends_under_the_budget_or_says_that_it_cannot(home):
    for seed in range(2, 30):  # until the loss of so small a model, which is random, rises
        broken = copy_model(home.graph)
        for layer in (0, 1):
            plant(broken, "scale", layer, seed=layer + seed)
        choice = home.write(broken, "two")
        if last(choice, home.baseline, most=0).relative_change > 0.02:
            break
    diagnosis = last(choice, home.baseline, budget=0.0, most=3)
    greedy = diagnosis.greedy
    losses = [diagnosis.mean_nll_nats, *(step.mean_nll_nats for step in greedy.steps)]
    assert losses == sorted(losses, reverse=True) and greedy.steps
    assert greedy.reached == (greedy.steps[-1].relative_change <= 0.0)
    assert len(greedy.names) <= greedy.tried <= 3
    wide = last(choice, home.baseline, budget=5.0, most=1)
    assert wide.greedy.reached and not wide.greedy.steps
