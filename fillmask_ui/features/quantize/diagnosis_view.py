"""The panel below the table of variants: which parts of the chosen one cost its loss."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fillmask_ui.errors import OptionError
from fillmask_ui.features.quantize import diagnosis_tables as tables
from fillmask_ui.features.quantize.diagnosis import DiagnoseOptions, Diagnosis
from fillmask_ui.features.quantize.graphs import open_pair
from fillmask_ui.features.quantize.leave_one_out import diagnose
from fillmask_ui.features.quantize.variant_store import Home, StoredVariant
from fillmask_ui.files import user_folder
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.schema import from_values
from fillmask_ui.show.drawing import Scale
from fillmask_ui.show.render import macros
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.ui.components import link_to
from fillmask_ui.ui.figure import FigureInputs, Request, Shown, answer
from fillmask_ui.ui.job import Report, Unfinished, Waiting
from fillmask_ui.ui.session import Session

TEXTS, MOST_TEXTS = 60, 240
PARTS, MOST_PARTS = 8, 40
BARS = 12


def show(request: FigureInputs) -> Shown:
    """The diagnosis of the variant of the chosen row, so far."""
    reference, baseline = request.text("variant"), request.text("baseline")
    name = request.text("name") or reference
    most = request.integer("most", 0, MOST_PARTS, PARTS)
    samples = request.integer("texts", 1, MOST_TEXTS, TEXTS)
    budget = request.number("budget", 0, 100, 0.5) / 100

    def work(report: Report) -> Diagnosis:
        with open_texts(TextSource(samples=samples)) as texts:
            examples = list(texts)
        # The list for any larger budget is its beginning, so that moving the budget costs nothing.
        options = DiagnoseOptions(0.0, most)
        choices = ModelChoice(reference), ModelChoice(baseline)
        latest: Any = None
        for step in diagnose(*choices, examples, options=options, load=request.session.model):
            if isinstance(step, Diagnosis):
                latest = step
            else:
                report(Waiting(step.message, step.fraction, latest))
        return latest

    question = ("diagnose", reference, baseline, most, samples)
    try:
        diagnosis = request.session.slowly(
            request.model, question, work, title="a diagnosis", long=True
        )
    except Unfinished as unfinished:
        state = unfinished.state
        if state.so_far is None:
            raise
        return Shown(render_pieces(state.so_far, name, baseline), waiting=state)
    if diagnosis.greedy:
        diagnosis = replace(
            diagnosis, greedy=diagnosis.greedy.within(budget, diagnosis.relative_change)
        )
    variant: StoredVariant | None = None
    if request.pressed("make") and diagnosis.greedy and diagnosis.greedy.names:
        names = diagnosis.greedy.names

        def make(report: Report) -> StoredVariant:
            report(Waiting("Making this variant…"))
            return _make(reference, baseline, names)

        variant = request.session.slowly(
            request.model,
            ("mixed", reference, baseline, names),
            make,
            title="a variant of Diagnose",
            long=True,
        )
    return Shown(render_pieces(diagnosis, name, baseline, variant))


def _make(reference: str, baseline: str, names: tuple[str, ...]) -> StoredVariant:
    """The variant with some parts in full precision, beside those that are kept."""
    root, path = user_folder("variants"), Path(reference)
    if path.is_relative_to(root) and len(path.relative_to(root).parts) > 3:
        home = Home(root / path.relative_to(root).parts[0])
        for variant in home.variants():
            if variant.path == path:
                pair = open_pair(ModelChoice(reference), ModelChoice(baseline))
                return home.keep_restored(variant, pair, names)
    raise OptionError(
        f"{reference} was not made on this page: on the command line, fillmask-ui diagnose with "
        "--apply FILE.onnx writes the variant"
    )


def render_pieces(
    diagnosis: Diagnosis, name: str, baseline: str = "", variant: StoredVariant | None = None
) -> dict[str, str]:
    """HTML of a diagnosis, and of the variant made from it, by the places of the panel."""
    different = [part for part in diagnosis.parts if part.weight_snr_db != math.inf]
    ratios = [ratio for part in different for ratio in (part.usual_snr_db, part.weight_snr_db)]
    depths = [
        ratio
        for layer in diagnosis.layers
        for ratio in (layer.weight_snr_db, layer.hidden_snr_db)
        if ratio is not None and math.isfinite(ratio)
    ]
    sentences = (
        tables.worst_sentence(diagnosis),
        tables.loss_sentence(diagnosis),
        *tables.remarks(diagnosis),
    )
    values: dict[str, Any] = {
        "diagnosis": diagnosis,
        "name": name,
        "sentences": sentences,
        "stamp": tables.stamp_line(diagnosis.stamp, diagnosis.measured),
        "noisy": different[:BARS],
        "top": max(ratios, default=1.0),
        "y": Scale(min([0.0, *depths]), max([10.0, *depths]) * 1.08, 190, 26),
        "all_parts": tables.worst_parts(diagnosis, len(diagnosis.parts)),
        "along": tables.layers(diagnosis),
        "alone": tables.restored_parts(diagnosis),
        "advice": tables.greedy_sentence(diagnosis),
        "greedy_parts": tables.greedy_parts(diagnosis),
        "snr": tables.snr_text,
        "variant": variant,
    }
    if variant is not None:
        path = str(variant.path)
        values["size"] = tables.bytes_text(variant.size_bytes)
        values["explore"] = link_to("explore", model=baseline, compare=path)
        values["evaluate"] = link_to("evaluate", evaluate_model=path, evaluate_baseline=baseline)
    parts = macros("quantize/diagnosis.html", **values)
    return {piece: str(macro()) for piece, macro in parts.items()}


def figure(session: Session, request: Mapping[str, Any]) -> dict[str, Any]:
    """The pieces of the panel, as `ui/figure.py: answer` gives them."""
    return answer(session, show, from_values(Request, request))


# By the name under which the browser calls them; each takes the session and JSON values.
SERVED = {"figure": figure}
