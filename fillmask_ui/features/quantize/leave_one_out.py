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
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from onnx import TensorProto

from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation import EvaluatedText, EvaluationConfig, evaluate, summarize
from fillmask_ui.evaluation.measure import check_models
from fillmask_ui.features.quantize import diagnosis
from fillmask_ui.features.quantize.diagnosis import (
    Diagnosis,
    Greedy,
    GreedyStep,
    PartNoise,
    Restored,
)
from fillmask_ui.features.quantize.graphs import GraphPair, Loader, open_pair
from fillmask_ui.features.quantize.measure_variants import Stamp, alarms_of
from fillmask_ui.intervals import ratio_interval
from fillmask_ui.masking import KINDS
from fillmask_ui.models.load import load_choice, local_files
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.onnx_tools.constant_folding import Constants
from fillmask_ui.onnx_tools.float32_graph import dequantized
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
    options: diagnosis.DiagnoseOptions | None = None,
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
    options = options or diagnosis.DiagnoseOptions()
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
    known = _weights(pair)
    yield known
    yield Progress("Measuring the loss of both…")
    rows = list(evaluate(quantized, texts, config, baseline=full))
    summary = summarize(rows, config=config, vocabulary_size=first.vocabulary_size)
    measured = _measured(rows)
    own, base = _nats(measured), _nats(measured, "baseline")
    tokens = np.array([len(row.cols) for row in measured], float)
    mean, base_mean = _mean(own, tokens), _mean(base, tokens)
    known = replace(
        known,
        texts=len(measured),
        mean_nll_nats=mean,
        baseline_nll_nats=base_mean,
        relative_change=mean / base_mean - 1,
        difference_nats=_mean(own - base, tokens),
        difference_interval=ratio_interval(own - base, tokens),
        measured=config.signature,
        alarms=alarms_of(summary),
    )
    yield known
    yield Progress("Comparing activations…")
    known = _activations(pair, known, [_as_read(row) for row in measured[:_COMPARED_TEXTS]])
    yield known
    leaving = LeaveOneOut(pair, texts, config, own, tokens)
    # Those that the baseline has in full precision and in other numbers.
    fixed = {own.second.name for own in pair.matching.pairs if own.second.quantized}
    other = [part for part in known.parts if math.isfinite(part.weight_snr_db)]
    chosen = [part for part in other if part.name not in fixed][: options.most]
    for number, part in enumerate(chosen):
        told = f"{number + 1} of {len(chosen)}: {part.name} in full precision"
        yield Progress(told, number / (2 * len(chosen)))
        measured_part = replace(part, restored=leaving.measure(part.name))
        parts = (measured_part if other.name == part.name else other for other in known.parts)
        known = replace(known, parts=diagnosis.worst_first(parts))
        yield known
    for step in leaving.greedy(known, options.budget) if chosen else ():
        if isinstance(step, Greedy):
            known = replace(known, greedy=step)
            yield known
        else:
            yield step
    yield replace(known, complete=True)


def _nats(rows: Iterable[EvaluatedText], of: str = "scores") -> np.ndarray:
    """float64 [N], sum of one model's losses over the hidden tokens of each text."""
    return np.array([getattr(row, of).nll_nats.sum() for row in rows])


def _mean(nats: np.ndarray, tokens: np.ndarray) -> float:
    return math.fsum(nats) / math.fsum(tokens)


def _measured(rows: Iterable[object]) -> list[EvaluatedText]:
    """The rows with a hidden token, in the order of the texts."""
    found = [row for row in rows if isinstance(row, EvaluatedText) and len(row.cols)]
    return sorted(found, key=lambda row: row.id)


def _as_read(row: EvaluatedText) -> np.ndarray:
    """The tokens of a text as a model read them; if each is hidden once, the text itself."""
    ids = row.ids.copy()
    if len(row.cols) < len(row.ids) - 2 or (row.kinds != KINDS.index("mask")).any():
        ids[row.cols] = row.shown_ids
    return ids


def _weights(pair: GraphPair) -> Diagnosis:
    quantized, baseline = pair.quantized.graph, pair.baseline.graph
    here, there = Constants(quantized.graph), Constants(baseline.graph)
    noise: list[np.ndarray] = []
    parts: list[PartNoise] = []
    for first, second in ((own.first, own.second) for own in pair.matching.pairs):
        noise.append(diagnosis.powers(dequantized(baseline, second), dequantized(quantized, first)))
        parts.append(
            PartNoise(
                second.name,
                second.kind,
                second.layer,
                second.shape,
                stored=TensorProto.DataType.Name(here.stored[first.constant].data_type).lower(),
                size_bytes=_stored_bytes(here, first),
                baseline_bytes=_stored_bytes(there, second),
                weight_snr_db=diagnosis.snr_db(noise[-1]),
                usual_snr_db=0.0,
            )
        )
    return Diagnosis(
        pair.quantized.choice.reference,
        pair.baseline.choice.reference,
        diagnosis.worst_first(diagnosis.with_usual(parts)),
        diagnosis.by_layer(parts, noise),
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
    quantized = sum(own.second.quantized for own in pair.matching.pairs)
    if quantized and quantized == sum(own.first.quantized for own in pair.matching.pairs):
        yield (
            "the baseline is quantized too: parts that it has quantized cannot be measured in "
            "full precision"
        )
    if pair.quantized.model is pair.baseline.model:
        yield "the model is its own baseline: all differences are 0"


def _activations(pair: GraphPair, known: Diagnosis, texts: Sequence[np.ndarray]) -> Diagnosis:
    """The noise of what parts yield, and of what each layer hands on; `texts` are ids [T]."""
    hidden = _handed_on(pair.matching.pairs)
    outputs = {own.second.name: own.first.output for own in pair.matching.pairs}
    values = {own.first.output: own.second.output for own in pair.matching.pairs}
    values |= {own.first.source: own.second.source for own in hidden.values()}
    runs = [
        side.model.opened(with_outputs(side.graph, names).SerializeToString())
        for side, names in ((pair.quantized, values.keys()), (pair.baseline, values.values()))
    ]
    noise = diagnosis.activation_noise(runs[0], runs[1], values, texts)
    ratios = {value: diagnosis.snr_db(own) for value, own in noise.items()}
    parts = (
        replace(part, activation_snr_db=ratios.get(outputs[part.name])) for part in known.parts
    )
    sources = {label: own.first.source for label, own in hidden.items()}
    layers = (
        replace(layer, hidden_snr_db=ratios.get(sources.get(layer.label, "")))
        for layer in known.layers
    )
    return replace(known, parts=tuple(parts), layers=tuple(layers))


def _handed_on(pairs: Sequence[PartPair]) -> dict[str, PartPair]:
    """By a layer's label the first product behind it, whose source is what the layer hands on."""
    found: dict[str, PartPair] = {}
    label = "embeddings"
    labels = diagnosis.layer_labels(pair.second.layer for pair in pairs)
    for pair, own in zip(pairs, labels, strict=True):
        if own != label and pair.second.kind in ("product", "projection"):
            found[label] = pair
            label = own
    return found


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
            gain = self.nats - _nats(_measured(evaluate(model, self.texts, self.config)))
        mean, interval = _mean(gain, self.tokens), ratio_interval(gain, self.tokens)
        added = stored_bytes(graph) - stored_bytes(self.pair.quantized.graph)
        return Restored(mean, interval, added)

    def greedy(self, known: Diagnosis, budget: float) -> Generator[Progress | Greedy]:
        """The parts that bring the loss under the budget, each measured with those before it."""
        measured = [(part.name, part.restored) for part in known.parts if part.restored]
        helping = [own for own in measured if own[1].recovered_nats > 0]
        helping.sort(key=lambda own: own[1].gain_per_byte, reverse=True)
        steps: list[GreedyStep] = []
        least, change = known.mean_nll_nats, known.relative_change

        def result() -> Greedy:
            return Greedy(budget, tuple(steps), change <= budget, len(helping))

        yield result()
        for number, (name, restored) in enumerate(helping):
            if change <= budget:
                break
            names = [*(step.name for step in steps), name]
            told = f"{len(names)} part{'s' * (len(names) > 1)} together in full precision"
            yield Progress(told, 0.5 + 0.5 * number / len(helping))
            together = self.measure(*names) if steps else restored
            mean = known.mean_nll_nats - together.recovered_nats
            if mean < least:
                least, change = mean, mean / known.baseline_nll_nats - 1
                steps.append(GreedyStep(name, mean, change, together.bytes_added))
                yield result()
