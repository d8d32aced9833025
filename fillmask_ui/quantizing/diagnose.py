"""Which tensors a quantization hurts, and which to keep in full precision.

Definition: three views of one question. The signal-to-noise ratio of each part's numbers tells
what the quantizer did; that of its activations what has come of it on real texts; and the loss that
comes back when this part alone is computed as in the baseline tells what it costs, on identical
hidden tokens, with an interval paired by text.

Rivals: the sensitivity lists of quantizers rank by the error of weights or of outputs alone, and a
loud part may cost nothing; leaving out one part in the full-precision model instead, a part at a
time, misses what the noise of others does to it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation import EvaluationConfig, check_models
from fillmask_ui.models.load import load_choice
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.quantizing.diagnosis import DiagnoseOptions, Diagnosing, Diagnosis, Greedy
from fillmask_ui.quantizing.opened import open_both
from fillmask_ui.quantizing.patient import Patient
from fillmask_ui.quantizing.source import Loader
from fillmask_ui.records import Example


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
