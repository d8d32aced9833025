"""Which tensors a quantization hurts, and which to keep in full precision.

Definition: three views of one question. The signal-to-noise ratio of each part's numbers tells
what the quantizer did; that of its activations what has come of it on real texts; and the loss that
comes back when this part alone is computed as in the baseline tells what it costs, on identical
hidden tokens, with an interval paired by text.

Rivals: the sensitivity lists of quantizers rank by the error of weights or of outputs alone, and a
loud part may cost nothing; leaving out one part in the full-precision model instead, a part at a
time, misses what the noise of others does to it.
"""

import math
from collections.abc import Collection, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from onnx import TensorProto

from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation import EvaluatedText, EvaluationConfig, evaluate, summarize
from fillmask_ui.evaluation.measure import check_models
from fillmask_ui.evaluation.rows import TokenScores
from fillmask_ui.features.quantize.diagnosis import (
    DiagnoseOptions,
    Diagnosis,
    Greedy,
    GreedyStep,
    PartNoise,
    Restored,
    Run,
    activation_losses,
    activation_noise,
    add_usual_snr,
    layer_labels,
    noise_by_layer,
    signal_and_noise,
    snr_db,
    worst_first,
)
from fillmask_ui.features.quantize.graphs import GraphPair, LoadedGraph, Loader, open_pair
from fillmask_ui.features.quantize.measure_variants import Stamp, alarms_of
from fillmask_ui.intervals import ratio_interval
from fillmask_ui.masking import KINDS
from fillmask_ui.models.load import load_choice, local_files
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.onnx_tools.constant_folding import Constants
from fillmask_ui.onnx_tools.float32_graph import dequantize
from fillmask_ui.onnx_tools.graph_edits import PartPair, stored_bytes, with_outputs
from fillmask_ui.onnx_tools.graph_parts import Part
from fillmask_ui.records import Example, Progress

# Texts whose activations are compared: sums over 300 tokens hold to a tenth of a dB.
_COMPARED_TEXTS = 32


def diagnose(
    model: ModelChoice,
    baseline: ModelChoice,
    texts: Sequence[Example | str],
    config: EvaluationConfig | None = None,
    options: DiagnoseOptions | None = None,
    *,
    load: Loader = load_choice,
) -> Generator[Progress | Diagnosis]:
    """Find the parts of a quantized model that cost its loss against the model it was made from.

    Yields:
        Progress, and what is known so far whenever that grows; the last one is complete.

    Raises:
        ModelError: if one cannot be loaded, runs on PyTorch, or does not fit into memory.
        OptionError: if they are not the same model, or the config does not fit them.
        DataError: if no text could be measured.
    """
    options = options or DiagnoseOptions()
    for choice in (model, baseline):
        local_files(choice)  # refuses what names no model before anything is read
    yield Progress("Reading both models…")
    pair = open_pair(model, baseline, load)
    quantized, full = pair.quantized.model, pair.baseline.model
    first, second = quantized.signature, full.signature
    if second.precision.startswith("int") and not first.precision.startswith("int"):
        raise OptionError(
            f"{first.name} has its weights in {first.precision} and its baseline {second.name} in "
            f"{second.precision}: name the quantized model first, and as its baseline the one that "
            "it was made from"
        )
    config = check_models(quantized, full, config or EvaluationConfig())
    diagnosis = _weights(pair)
    yield diagnosis
    yield Progress("Measuring the loss of both…")
    rows = list(evaluate(full, texts, config, candidate=quantized))
    summary = summarize(rows, config=config, vocabulary_size=first.vocabulary_size)
    measured = _measured(rows)
    nats = np.array([row.scores.nll_nats.sum() for row in measured])
    baseline_nats = np.array(
        [cast("TokenScores", row.reference).nll_nats.sum() for row in measured]
    )
    tokens = np.array([len(row.cols) for row in measured], float)
    mean, baseline_mean = _mean(nats, tokens), _mean(baseline_nats, tokens)
    diagnosis = replace(
        diagnosis,
        texts=len(measured),
        mean_nll_nats=mean,
        baseline_nll_nats=baseline_mean,
        relative_change=mean / baseline_mean - 1,
        difference_nats=_mean(nats - baseline_nats, tokens),
        difference_interval=ratio_interval(nats - baseline_nats, tokens),
        measured=config.signature,
        alarms=alarms_of(summary),
    )
    yield diagnosis
    yield Progress("Comparing activations…")
    diagnosis = _activations(pair, diagnosis, [_as_read(row) for row in measured[:_COMPARED_TEXTS]])
    yield diagnosis
    leave_one_out = LeaveOneOut(pair, texts, config, nats, tokens)
    # Parts whose numbers or activations differ, and which the baseline has in full precision.
    quantized_in_both = {
        matched.second.name for matched in pair.matching.pairs if matched.second.quantized
    }
    chosen = [
        part
        for part in diagnosis.parts
        if (math.isfinite(part.weight_snr_db) or part.loses_activations)
        and part.name not in quantized_in_both
    ][: options.most]
    for number, part in enumerate(chosen):
        message = f"{number + 1} of {len(chosen)}: {part.name} in full precision"
        yield Progress(message, number / (2 * len(chosen)))
        parts = {listed.name: listed for listed in diagnosis.parts}
        parts[part.name] = replace(part, restored=leave_one_out.measure(part.name))
        diagnosis = replace(diagnosis, parts=worst_first(parts.values()))
        yield diagnosis
    for step in leave_one_out.greedy(diagnosis, options.budget) if chosen else ():
        if isinstance(step, Greedy):
            diagnosis = replace(diagnosis, greedy=step)
            yield diagnosis
        else:
            yield step
    yield replace(diagnosis, complete=True)


def _mean(nats: np.ndarray, tokens: np.ndarray) -> float:
    return math.fsum(nats) / math.fsum(tokens)


def _measured(rows: Iterable[object]) -> list[EvaluatedText]:
    """The rows with a hidden token, in the order of the texts."""
    measured = [row for row in rows if isinstance(row, EvaluatedText) and len(row.cols)]
    return sorted(measured, key=lambda row: row.id)


def _as_read(row: EvaluatedText) -> np.ndarray:
    """The tokens of a text as a model read them; if each is hidden once, the text itself."""
    ids = row.ids.copy()
    if len(row.cols) < len(row.ids) - 2 or (row.kinds != KINDS.index("mask")).any():
        ids[row.cols] = row.shown_ids
    return ids


def _weights(pair: GraphPair) -> Diagnosis:
    quantized, baseline = pair.quantized.graph, pair.baseline.graph
    constants, baseline_constants = Constants(quantized.graph), Constants(baseline.graph)
    noise: list[np.ndarray] = []
    parts: list[PartNoise] = []
    for matched in pair.matching.pairs:
        first, second = matched.first, matched.second
        noise.append(signal_and_noise(dequantize(baseline, second), dequantize(quantized, first)))
        parts.append(
            PartNoise(
                second.name,
                second.kind,
                second.layer,
                second.shape,
                stored=TensorProto.DataType.Name(
                    constants.stored[first.constant].data_type
                ).lower(),
                size_bytes=_stored_bytes(constants, first),
                baseline_bytes=_stored_bytes(baseline_constants, second),
                weight_snr_db=snr_db(noise[-1]),
                usual_snr_db=0.0,
            )
        )
    return Diagnosis(
        pair.quantized.choice.reference,
        pair.baseline.choice.reference,
        worst_first(add_usual_snr(parts)),
        noise_by_layer(parts, noise),
        tuple(part.name for part in pair.matching.only_first),
        tuple(part.name for part in pair.matching.only_second),
        stamp=Stamp.of(pair.quantized.model.signature),
        baseline_stamp=Stamp.of(pair.baseline.model.signature),
        notes=tuple(_notes(pair)),
    )


def _stored_bytes(constants: Constants, part: Part) -> int:
    value = constants.makers[part.node].input[part.input_index]
    return constants.size_bytes(*constants.roots(value, *part.scales))


def _notes(pair: GraphPair) -> Generator[str]:
    quantized = sum(matched.second.quantized for matched in pair.matching.pairs)
    if quantized and quantized == sum(matched.first.quantized for matched in pair.matching.pairs):
        yield (
            "the baseline is quantized too: parts that it has quantized cannot be measured in "
            "full precision"
        )
    if pair.quantized.model is pair.baseline.model:
        yield "the model is its own baseline: all differences are 0"


def _activations(pair: GraphPair, diagnosis: Diagnosis, texts: Sequence[np.ndarray]) -> Diagnosis:
    """The noise of what parts yield, and of what each layer hands on; `texts` are ids [T]."""
    hidden = _handed_on(pair.matching.pairs)
    outputs = {matched.second.name: matched.first.output for matched in pair.matching.pairs}
    values = {matched.first.output: matched.second.output for matched in pair.matching.pairs}
    values |= {matched.first.source: matched.second.source for matched in hidden.values()}
    quantized = _open_with_outputs(pair.quantized, values.keys())
    baseline = _open_with_outputs(pair.baseline, values.values())
    noise = activation_noise(quantized, baseline, values, texts)
    ratios = {value: snr_db(sums) for value, sums in noise.items()}
    by_name = {
        part.name: replace(part, activation_snr_db=ratios.get(outputs[part.name]))
        for part in diagnosis.parts
    }
    in_order = [by_name[matched.second.name] for matched in pair.matching.pairs]
    parts = [
        replace(part, activation_loss_db=loss)
        for part, loss in zip(in_order, activation_losses(in_order), strict=True)
    ]
    sources = {label: matched.first.source for label, matched in hidden.items()}
    layers = (
        replace(layer, hidden_snr_db=ratios.get(sources.get(layer.label, "")))
        for layer in diagnosis.layers
    )
    return replace(diagnosis, parts=worst_first(parts), layers=tuple(layers))


def _open_with_outputs(loaded: LoadedGraph, names: Collection[str]) -> Run:
    """The model with more outputs, as they are without smoothing."""
    run = loaded.model.opened(with_outputs(loaded.graph, names).SerializeToString())
    constants = Constants(loaded.graph.graph)
    factors = {
        name: constants.value(smoothing)
        for name in names
        if (smoothing := constants.smoothing(name))
    }
    if not factors:
        return run

    def unsmoothed(ids: np.ndarray, mask: np.ndarray) -> dict[str, np.ndarray]:
        return {name: values / factors.get(name, 1.0) for name, values in run(ids, mask).items()}

    return unsmoothed


def _handed_on(pairs: Sequence[PartPair]) -> dict[str, PartPair]:
    """By a layer's label the first product behind it, whose source is what the layer hands on."""
    first_products: dict[str, PartPair] = {}
    previous = "embeddings"
    labels = layer_labels(pair.second.layer for pair in pairs)
    for pair, label in zip(pairs, labels, strict=True):
        if label != previous and pair.second.kind in ("product", "projection"):
            first_products[previous] = pair
            previous = label
    return first_products


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """A quantized model whose parts are put back into full precision, beside its own losses."""

    pair: GraphPair
    texts: Sequence[Example | str]
    config: EvaluationConfig
    nats: np.ndarray  # float64 [N]
    tokens: np.ndarray  # float64 [N]

    def measure(self, *names: str) -> Restored:
        """What parts in full precision give back together."""
        graph = self.pair.restored(names)
        with self.pair.loaded(graph) as model:
            measured = _measured(evaluate(model, self.texts, self.config))
        gain = self.nats - np.array([row.scores.nll_nats.sum() for row in measured])
        mean, interval = _mean(gain, self.tokens), ratio_interval(gain, self.tokens)
        added = stored_bytes(graph) - stored_bytes(self.pair.quantized.graph)
        return Restored(mean, interval, added)

    def greedy(self, diagnosis: Diagnosis, budget: float) -> Generator[Progress | Greedy]:
        """The parts that bring the loss under the budget, each measured with those before it."""
        helping = [
            (part.name, part.restored)
            for part in diagnosis.parts
            if part.restored and part.restored.recovered_nats > 0
        ]
        helping.sort(key=lambda part: part[1].gain_per_byte, reverse=True)
        steps: list[GreedyStep] = []
        least, change = diagnosis.mean_nll_nats, diagnosis.relative_change

        def result() -> Greedy:
            return Greedy(budget, tuple(steps), change <= budget, len(helping))

        yield result()
        for number, (name, restored) in enumerate(helping):
            if change <= budget:
                break
            names = [*(step.name for step in steps), name]
            message = f"{len(names)} part{'s' * (len(names) > 1)} together in full precision"
            yield Progress(message, 0.5 + 0.5 * number / len(helping))
            together = self.measure(*names) if steps else restored
            mean = diagnosis.mean_nll_nats - together.recovered_nats
            if mean < least:
                least, change = mean, mean / diagnosis.baseline_nll_nats - 1
                steps.append(GreedyStep(name, mean, change, together.bytes_added))
                yield result()
