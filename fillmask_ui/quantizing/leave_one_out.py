"""Two opened models on texts: what a diagnosis measures, step by step."""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation import (
    EvaluatedText,
    EvaluationConfig,
    Heartbeat,
    RunningSummary,
    check_models,
    evaluate,
)
from fillmask_ui.evaluation.summary import UNCHANGED_ALARM
from fillmask_ui.intervals import ratio_interval
from fillmask_ui.masking import KINDS
from fillmask_ui.models.load import load_choice
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.quantizing.diagnosis import (
    DiagnoseOptions,
    Diagnosing,
    Diagnosis,
    Greedy,
    GreedyStep,
    PartNoise,
    Restored,
    by_layer,
    handed_on,
    with_usual,
    worst_first,
)
from fillmask_ui.quantizing.float32_source import Loader
from fillmask_ui.quantizing.graph_pair import Opened, open_both
from fillmask_ui.quantizing.measure_variants import Stamp
from fillmask_ui.quantizing.signal_to_noise import Power, activation_noise
from fillmask_ui.records import Example, SkippedText

if TYPE_CHECKING:
    from onnx import ModelProto

    from fillmask_ui.onnx_tools.constant_folding import Constants
    from fillmask_ui.onnx_tools.graph_parts import Part


# Texts whose activations are compared: sums over 300 tokens hold to a tenth of a dB.
_LISTENED = 32


@dataclass(frozen=True, eq=False)
class _Losses:
    """Of one model over the texts, in their order."""

    nats: np.ndarray  # float64 [N], sum over the hidden tokens of each text
    tokens: np.ndarray  # float64 [N]

    @property
    def mean(self) -> float:
        return float(math.fsum(self.nats) / math.fsum(self.tokens))


class Patient:
    """Two opened models on texts, measured step by step."""

    def __init__(
        self, opened: Opened, texts: Sequence[Example | str], config: EvaluationConfig
    ) -> None:
        self.opened, self.texts, self.config = opened, texts, config
        self.pairs = {pair.second.name: pair for pair in opened.matching.pairs}
        self.own: _Losses | None = None  # of the quantized model, once they are known
        self.base: _Losses | None = None
        self.heard: list[np.ndarray] = []  # token ids [T] of some texts, as the models read them

    def weights(self) -> Diagnosis:
        """The noise of all numbers."""
        from fillmask_ui.onnx_tools.constant_folding import Constants
        from fillmask_ui.onnx_tools.float32_graph import dequantized

        opened = self.opened
        quantized, baseline = opened.quantized.graph, opened.baseline.graph
        here, there = Constants(quantized.graph), Constants(baseline.graph)
        powers: dict[str, Power] = {}
        parts = []
        for name, pair in self.pairs.items():
            power = powers[name] = Power()
            power.add(
                dequantized(baseline, pair.second).ravel(),
                dequantized(quantized, pair.first).ravel(),
            )
            first, second = pair.first, pair.second
            parts.append(
                PartNoise(
                    name,
                    second.kind,
                    second.layer,
                    second.shape,
                    here.type_name(first.constant),
                    _stored_bytes(here, first),
                    _stored_bytes(there, second),
                    power.snr_db,
                    0.0,
                )
            )
        signatures = [side.model.signature for side in (opened.quantized, opened.baseline)]
        return Diagnosis(
            opened.quantized.choice.reference,
            opened.baseline.choice.reference,
            worst_first(with_usual(parts)),
            by_layer(parts, powers),
            tuple(part.name for part in opened.matching.only_first),
            tuple(part.name for part in opened.matching.only_second),
            stamp=Stamp.of(signatures[0]),
            baseline_stamp=Stamp.of(signatures[1]),
            notes=tuple(self._notes()),
        )

    def _notes(self) -> Generator[str]:
        quantized = [pair for pair in self.pairs.values() if pair.second.quantized]
        if quantized and len(quantized) == sum(p.first.quantized for p in self.pairs.values()):
            yield (
                "the baseline is quantized too: parts that it has quantized cannot be measured in "
                "full precision"
            )
        if self.opened.quantized.model is self.opened.baseline.model:
            yield "the model is its own baseline: all differences are 0"

    def losses(self, known: Diagnosis) -> Diagnosis:
        """The loss of both on identical hidden tokens."""
        own, base = self.opened.quantized.model, self.opened.baseline.model
        running = RunningSummary(config=self.config, vocabulary_size=own.signature.vocabulary_size)
        rows = []
        for row in evaluate(own, self.texts, self.config, baseline=base):
            if isinstance(row, Heartbeat):
                continue
            running.add(row)
            if isinstance(row, EvaluatedText) and row.baseline is not None and len(row.cols):
                rows.append(row)
        summary = running.summary()
        rows.sort(key=lambda row: row.id)
        tokens = np.array([len(row.cols) for row in rows], float)
        self.own = _Losses(np.array([row.scores.nll_nats.sum() for row in rows]), tokens)
        self.base = _Losses(
            np.array([row.baseline.nll_nats.sum() for row in rows if row.baseline]), tokens
        )
        self.heard = [_as_read(row) for row in rows[:_LISTENED]]
        gap = self.own.nats - self.base.nats
        return replace(
            known,
            texts=len(rows),
            mean_nll_nats=self.own.mean,
            baseline_nll_nats=self.base.mean,
            relative_change=self.own.mean / self.base.mean - 1,
            difference_nats=float(math.fsum(gap) / math.fsum(tokens)),
            difference_interval=ratio_interval(gap, tokens),
            measured=self.config.signature,
            alarms=tuple(alarm for alarm in summary.alarms if alarm != UNCHANGED_ALARM),
        )

    def activations(self, known: Diagnosis) -> Diagnosis:
        """The noise of what parts yield, and of what each layer hands on."""
        from fillmask_ui.onnx_tools.graph_edits import with_outputs

        outputs = {pair.first.output: pair.second.output for pair in self.pairs.values()}
        hidden = handed_on(list(self.pairs.values()))
        wanted = {**outputs, **{p.first.source: p.second.source for p in hidden.values()}}
        runs = [
            side.model.opened(with_outputs(side.graph, values).SerializeToString())
            for side, values in (
                (self.opened.quantized, wanted),
                (self.opened.baseline, wanted.values()),
            )
        ]
        powers = activation_noise(runs[0], runs[1], wanted, self.heard)

        def ratio(value: str) -> float | None:
            return powers[value].snr_db if value in powers else None

        return replace(
            known,
            parts=tuple(
                replace(part, activation_snr_db=ratio(self.pairs[part.name].first.output))
                for part in known.parts
            ),
            layers=tuple(
                replace(
                    layer,
                    hidden_snr_db=ratio(hidden[layer.label].first.source)
                    if layer.label in hidden
                    else None,
                )
                for layer in known.layers
            ),
        )

    def is_restorable(self, part: PartNoise) -> bool:
        """Whether the baseline has it in full precision and in other numbers."""
        return math.isfinite(part.weight_snr_db) and not self.pairs[part.name].second.quantized

    def leave_one_out(self, known: Diagnosis, part: PartNoise) -> Diagnosis:
        """What one part in full precision gives back."""
        own, restored = self.own, self._restored([part.name])
        if own is None:
            raise ValueError("the losses come first")
        gap = own.nats - restored.losses.nats
        measured = Restored(
            float(math.fsum(gap) / math.fsum(own.tokens)),
            ratio_interval(gap, own.tokens),
            restored.bytes_added,
        )
        parts = [
            replace(other, restored=measured) if other.name == part.name else other
            for other in known.parts
        ]
        return replace(known, parts=worst_first(parts))

    def greedy(self, known: Diagnosis, options: DiagnoseOptions) -> Generator[Diagnosing | Greedy]:
        """The parts that bring the loss under the budget, each measured with those before it."""
        if self.own is None or self.base is None:
            raise ValueError("the losses come first")
        helping = [p for p in known.parts if p.restored and p.restored.recovered_nats > 0]
        helping.sort(key=_gain_per_byte, reverse=True)
        best, steps, base = self.own.mean, list[GreedyStep](), self.base.mean

        def result() -> Greedy:
            reached = best / base - 1 <= options.budget
            return Greedy(options.budget, tuple(steps), reached, len(helping))

        yield result()
        for number, part in enumerate(helping):
            if result().reached:
                break
            names = [*(step.name for step in steps), part.name]
            share = 0.5 + 0.5 * number / len(helping)
            yield Diagnosing(
                f"{len(names)} part{'s' * (len(names) > 1)} together in full precision", share
            )
            if len(names) == 1 and part.restored:
                mean, added = best - part.restored.recovered_nats, part.restored.bytes_added
            else:
                restored = self._restored(names)
                mean, added = restored.losses.mean, restored.bytes_added
            if mean < best:
                best = mean
                steps.append(GreedyStep(part.name, mean, mean / base - 1, added))
                yield result()

    def _restored(self, names: Collection[str]) -> _Variant:
        from fillmask_ui.onnx_tools.graph_edits import stored_bytes

        graph = self.opened.restored(names)
        added = stored_bytes(graph) - stored_bytes(self.opened.quantized.graph)
        return _Variant(self._losses(graph), added)

    def _losses(self, graph: ModelProto) -> _Losses:
        with self.opened.loaded(graph) as model:
            return self._measured(model)

    def _measured(self, model: MaskedLM) -> _Losses:
        found: dict[int, EvaluatedText] = {}
        for row in evaluate(model, self.texts, self.config):
            if (
                not isinstance(row, SkippedText)
                and isinstance(row, EvaluatedText)
                and len(row.cols)
            ):
                found[row.id] = row
        rows = [found[key] for key in sorted(found)]
        tokens = np.array([len(row.cols) for row in rows], float)
        return _Losses(np.array([row.scores.nll_nats.sum() for row in rows]), tokens)


@dataclass(frozen=True, eq=False)
class _Variant:
    """The quantized model with some parts in full precision."""

    losses: _Losses
    bytes_added: int


def _stored_bytes(constants: Constants, part: Part) -> int:
    """Of the tensors behind a part's numbers and scales."""
    value = constants.makers[part.node].input[part.place]
    return constants.size_bytes(*constants.roots(value, *part.scales))


def _as_read(row: EvaluatedText) -> np.ndarray:
    """The tokens of a text as a model read them; where each is hidden once, the text itself."""
    ids = row.ids.copy()
    if len(row.cols) < len(row.ids) - 2 or (row.kinds != KINDS.index("mask")).any():
        ids[row.cols] = row.shown_ids
    return ids


def _gain_per_byte(part: PartNoise) -> float:
    own = part.restored
    if own is None:
        return 0.0
    return own.recovered_nats / own.bytes_added if own.bytes_added > 0 else math.inf


def diagnose(
    model: ModelChoice,
    baseline: ModelChoice,
    texts: Sequence[Example | str],
    config: EvaluationConfig | None = None,
    options: DiagnoseOptions | None = None,
    *,
    load: Loader = load_choice,
) -> Generator[Diagnosing | Diagnosis]:
    """Find the parts of a quantized model that cost its loss.

    Args:
        model: the quantized model.
        baseline: the model that it was made from.
        texts: read several times; plain strings are numbered from 0.
        config: what loss is measured; cross-entropy by default.
        options: how much is measured.
        load: how the two are loaded.

    Yields:
        Progress, and what is known so far whenever that is more; the last one is complete.

    Raises:
        ModelError: if one cannot be loaded, runs on PyTorch, or does not fit into memory.
        OptionError: if they are not the same model, or the config does not fit them.
        DataError: if no text could be measured.
    """
    options = options or DiagnoseOptions()
    yield Diagnosing("Reading both models…", None)
    opened = open_both(model, baseline, load)
    first, second = (own.model.signature for own in (opened.quantized, opened.baseline))
    if second.precision.startswith("int") and not first.precision.startswith("int"):
        raise OptionError(
            f"{first.name} has its weights in {first.precision} and its baseline {second.name} in "
            f"{second.precision}: name the quantized model first, and as its baseline the one that "
            "it was made from"
        )
    config = check_models(
        opened.quantized.model, opened.baseline.model, config or EvaluationConfig()
    )
    patient = Patient(opened, texts, config)
    known = patient.weights()
    yield known
    yield Diagnosing("Measuring the loss of both…", None)
    known = patient.losses(known)
    yield known
    yield Diagnosing("Comparing activations…", None)
    known = patient.activations(known)
    yield known
    chosen = [part for part in known.parts if patient.is_restorable(part)][: options.most]
    steps = 2 * len(chosen)
    for number, part in enumerate(chosen):
        left = f"{number + 1} of {len(chosen)}: {part.name} in full precision"
        yield Diagnosing(left, number / steps)
        known = patient.leave_one_out(known, part)
        yield known
    if chosen:
        for step in patient.greedy(known, options):
            if isinstance(step, Greedy):
                known = replace(known, greedy=step)
                yield known
            else:
                yield step
    yield replace(known, complete=True)
