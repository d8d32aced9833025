"""A diagnosis, and the check of a file, as tables and sentences, for the shell and the page."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

from fillmask_ui.features.quantize.diagnosis import Diagnosis, PartNoise
from fillmask_ui.features.quantize.measure_variants import Stamp
from fillmask_ui.show.numbers import Share, interval_text, percent, signed, signed_percent
from fillmask_ui.show.sentences import difference_text
from fillmask_ui.show.table import Column, Table

if TYPE_CHECKING:  # it loads ONNX Runtime
    from fillmask_ui.features.quantize.file_check import Check


def snr_text(snr_db: float | None) -> str:
    """A signal-to-noise ratio.

    >>> snr_text(42.04), snr_text(math.inf), snr_text(None)
    ('42.0', 'equal', '')
    """
    if snr_db is None:
        return ""
    return "equal" if snr_db == math.inf else f"{snr_db:.1f}"


def bytes_text(size: int) -> str:
    """Bytes in decimal units.

    >>> bytes_text(8_713_600), bytes_text(-1200), bytes_text(12)
    ('8.71 MB', '-1.2 kB', '12 B')
    """
    for least, unit, digits in ((1e6, "MB", 2), (1e3, "kB", 1)):
        if abs(size) >= least:
            return f"{size / least:,.{digits}f} {unit}"
    return f"{size} B"


def worst_parts(diagnosis: Diagnosis, most: int = 15) -> Table:
    """The parts that hurt first; those with equal numbers last."""
    different = [
        part
        for part in diagnosis.parts
        if math.isfinite(part.weight_snr_db) or part.loses_activations
    ]
    listed = (different or list(diagnosis.parts))[:most]
    left_out = len(diagnosis.parts) - len(listed)
    columns = (
        "part",
        "shape",
        "stored",
        Column("bytes", bytes_text),
        Column("weights, dB", snr_text, about="snr"),
        Column("usual", snr_text, about="snr_usual"),
        Column("activations, dB", snr_text, about="snr_activations", right=True),
    )
    rows = (
        (
            part.name + (" !" if part.sticks_out or part.loses_activations else ""),
            " × ".join(map(str, part.shape)),
            part.stored,
            part.size_bytes,
            part.weight_snr_db,
            part.usual_snr_db,
            part.activation_snr_db,
        )
        for part in listed
    )
    return Table.of(
        columns, rows, "Parts, worst first" + (f" ({left_out} more)" if left_out else "")
    )


def layers(diagnosis: Diagnosis) -> Table:
    """Each layer's weights, and the noise that has built up behind it."""
    columns = (
        "layer",
        Column("bytes", bytes_text),
        Column("in the reference", bytes_text),
        Column("weights, dB", snr_text, about="snr", right=True),
        Column("output, dB", snr_text, about="snr_activations", right=True),
    )
    names = "label", "size_bytes", "baseline_bytes", "weight_snr_db", "hidden_snr_db"
    return Table.of(columns, map(attrgetter(*names), diagnosis.layers), "Layer by layer")


def restored_parts(diagnosis: Diagnosis) -> Table:
    """The parts that were measured in full precision, most loss recovered first."""
    measured = [(part.name, part.restored) for part in diagnosis.parts if part.restored]
    measured.sort(key=lambda pair: -pair[1].recovered_nats)
    columns = (
        "part",
        Column("loss recovered, nats", "+.4f", about="recovered"),
        "95% interval",
        "above 0",
        Column("bytes added", bytes_text),
    )
    rows = (
        (
            name,
            restored.recovered_nats,
            interval_text(restored.interval, lambda limit: signed(limit, 4)),
            "yes" if restored.significant else "no",
            restored.bytes_added,
        )
        for name, restored in measured
    )
    return Table.of(columns, rows, "One part in full precision")


def greedy_parts(diagnosis: Diagnosis) -> Table:
    """The parts of the greedy list."""
    columns = (
        "part",
        Column("mean NLL, nats", ".4f"),
        Column("against the reference", signed_percent),
        Column("bytes added", bytes_text),
    )
    cells = attrgetter("name", "mean_nll_nats", "relative_change", "bytes_added")
    rows = map(cells, diagnosis.greedy.steps if diagnosis.greedy else ())
    return Table.of(columns, rows, "Parts to keep in full precision")


def loss_sentence(diagnosis: Diagnosis) -> str:
    """The difference of both losses; blank before they are known."""
    if not diagnosis.texts:
        return ""
    return (
        f"{difference_text(diagnosis.difference_nats, diagnosis.difference_interval)} Mean loss "
        f"{diagnosis.mean_nll_nats:.4f} nats against {diagnosis.baseline_nll_nats:.4f} for the "
        f"reference ({signed_percent(diagnosis.relative_change)}), on {diagnosis.texts} texts."
    )


def worst_sentence(diagnosis: Diagnosis) -> str:
    """Which parts to look at."""
    broken = [part for part in diagnosis.parts if part.sticks_out]
    if broken:
        names = ", ".join(part.name for part in broken[:5])
        worst = broken[0]
        return (
            f"Stands out: {names}. The weights of {worst.name} have "
            f"{snr_text(worst.weight_snr_db)} dB; parts stored in the same way usually have "
            f"{snr_text(min(worst.usual_snr_db, 150))} dB. Look for outliers under one scale, a "
            "wrong scale, too few bits or a damaged file."
        )
    are_equal = all(math.isinf(part.weight_snr_db) for part in diagnosis.parts)
    for part in diagnosis.parts:
        if part.loses_activations:
            return _activations_sentence(part, "equal" if are_equal else "as usual")
    certain = [part for part in diagnosis.parts if part.restored and part.restored.significant]
    if certain:
        names = ", ".join(part.name for part in certain[:5])
        return f"These parts raise the loss: {names}."
    if are_equal:
        return "All weights equal those of the reference."
    if not any(part.restored for part in diagnosis.parts):
        return "No part stands out."
    return "No part stands out, and none alone raises the loss measurably on these texts."


def _activations_sentence(part: PartNoise, weights: str) -> str:
    """Where activations are damaged though the weights are not."""
    lost = f"{part.activation_loss_db:.0f} dB" if math.isfinite(part.activation_loss_db) else "all"
    where = "the head" if part.layer is None else f"layer {part.layer}"
    return (
        f"Weights {weights}; activations lose {lost} at {where}: the output of {part.name} has "
        f"{snr_text(part.activation_snr_db)} dB. Look at the scale and zero point of the "
        "QuantizeLinear and DequantizeLinear in front of it, and at the texts that set them."
    )


def greedy_sentence(diagnosis: Diagnosis) -> str:
    """Whether the budget is met, and by what; blank where nothing was measured."""
    greedy = diagnosis.greedy
    if greedy is None:
        return ""
    budget = f"the budget of {greedy.budget:.2%}"
    if not greedy.steps:
        if greedy.reached:
            return f"The loss is already within {budget}: no part needs full precision."
        return f"No measured part lowers the loss towards {budget}: measure more parts."
    last = greedy.steps[-1]
    count = f"{len(greedy.steps)} part{'s' if len(greedy.steps) > 1 else ''} in full precision"
    cost = f"{signed_percent(last.relative_change)} for {bytes_text(last.bytes_added)}"
    if greedy.reached:
        return f"{count}: {cost}, within {budget}."
    return f"{count}: {cost}. The measured parts cannot meet {budget}."


def stamp_line(stamp: Stamp | None, measured: str = "") -> str:
    """What the figures depend on beside the weights, in one line."""
    if stamp is None:
        return ""
    features, optimization = ", ".join(stamp.cpu_features), stamp.graph_optimization
    parts = [f"CPU {features}", stamp.runtime, f"graph optimization {optimization}"]
    if stamp.runtime.startswith("onnxruntime"):
        parts.append(f"x64 quant precision {stamp.x64_quant_precision}")
    return " · ".join([*parts, measured] if measured else parts)


def remarks(diagnosis: Diagnosis) -> list[str]:
    """Alarms, notes, and parts without a partner."""
    lines = [*diagnosis.alarms, *diagnosis.notes]
    unmatched = {
        "the candidate": diagnosis.only_in_model,
        "the reference": diagnosis.only_in_baseline,
    }
    for model, names in unmatched.items():
        if names:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            lines.append(f"only in {model}: {', '.join(names[:5])}{more}")
    return [line[:1].upper() + line[1:] for line in lines]


def check_sentence(check: Check) -> str:
    """The verdict, and the worst of all ways to run the file."""
    candidates = [row for row in check.rows if row.verdict == check.verdict]
    worst = min(candidates, key=lambda row: -math.inf if row.sqnr_db is None else row.sqnr_db)
    head = f"{check.verdict}: the worst case for {check.file} is {worst.label}"
    if worst.alarms:
        return f"{head}: {worst.alarms[0]}."
    ratio = "equal logits" if worst.sqnr_db == math.inf else f"{snr_text(worst.sqnr_db)} dB"
    flips = f"{worst.flips} of {check.words:,} hidden words get another top prediction"
    advice = "; more texts (--samples) can settle it" if check.verdict == "INCONCLUSIVE" else ""
    return f"{head}: {flips}, {ratio} against {check.baseline}{advice}."


def setups(check: Check) -> Table:
    """A row for each provider and level, with the figures that fit 80 columns."""
    columns = (
        "way",
        Column("SQNR", snr_text, right=True),
        "flips",
        "share",
        "95% interval",
        Column("NLL", ".4f"),
        "verdict",
    )
    rows = (
        (
            row.label,
            row.sqnr_db,
            row.flips,
            None if row.flip_share is None else Share(row.flip_share),
            " to ".join(map(percent, row.flip_share_interval_95 or ())),
            row.mean_nll_nats,
            row.verdict or "not measured",
        )
        for row in check.rows
    )
    title = f"{check.words:,} hidden words of {check.texts:,} texts; SQNR in dB, NLL in nats"
    return Table.of(columns, rows, title)


def check_remarks(check: Check) -> Iterator[str]:
    """Alarms, what was not measured and constants, a line each; then what all depends on."""
    rows_by_alarm = defaultdict[str, list[str]](list)
    for row in check.rows:
        for alarm in row.alarms:
            rows_by_alarm[alarm].append(row.label)
    yield from (f"{'; '.join(names)}: {alarm}" for alarm, names in rows_by_alarm.items())
    yield from (f"Risky constant: {constant}" for constant in check.constants)
    yield check.signature
