"""The panel below the table of variants: which parts of the chosen one cost its loss."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fillmask_ui.errors import OptionError
from fillmask_ui.features.quantize import diagnosis_tables as shown
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
from fillmask_ui.ui.figure import Asked, Request, Shown, answer
from fillmask_ui.ui.job import Report, Unfinished, Waiting
from fillmask_ui.ui.session import Session

TEXTS, MOST_TEXTS = 60, 240
PARTS, MOST_PARTS = 8, 40
BARS = 12


def show(asked: Asked) -> Shown:
    """The diagnosis of the variant of the chosen row, so far."""
    reference, baseline = asked.text("variant"), asked.text("baseline")
    name = asked.text("name") or reference
    most = asked.integer("most", 0, MOST_PARTS, PARTS)
    samples = asked.integer("texts", 1, MOST_TEXTS, TEXTS)
    budget = asked.number("budget", 0, 100, 0.5) / 100

    def work(report: Report) -> Diagnosis:
        with open_texts(TextSource(samples=samples)) as texts:
            read = list(texts)
        # The list for any larger budget is its beginning, so that moving the budget costs nothing.
        options = DiagnoseOptions(0.0, most)
        choices = ModelChoice(reference), ModelChoice(baseline)
        known: Any = None
        for step in diagnose(*choices, read, options=options, load=asked.session.model):
            if isinstance(step, Diagnosis):
                known = step
            else:
                report(Waiting(step.message, step.fraction, known))
        return known

    question = ("diagnose", reference, baseline, most, samples)
    try:
        known = asked.session.slowly(asked.model, question, work)
    except Unfinished as going:
        if going.state.so_far is None:
            raise
        return Shown(pieces(going.state.so_far, name, baseline), waiting=going.state)
    if known.greedy:
        known = replace(known, greedy=known.greedy.within(budget, known.relative_change))
    variant: StoredVariant | None = None
    if asked.pressed("make") and known.greedy and known.greedy.names:
        names = known.greedy.names

        def make(report: Report) -> StoredVariant:
            report(Waiting("Making this variant…"))
            return _make(reference, baseline, names)

        variant = asked.slowly(("mixed", reference, baseline, names), make)
    return Shown(pieces(known, name, baseline, variant))


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


def pieces(
    known: Diagnosis, name: str, baseline: str = "", variant: StoredVariant | None = None
) -> dict[str, str]:
    """HTML of all that a diagnosis says, and of the variant made of it."""
    different = [part for part in known.parts if part.weight_snr_db != math.inf]
    ratios = [ratio for part in different for ratio in (part.usual_snr_db, part.weight_snr_db)]
    depths = [
        ratio
        for layer in known.layers
        for ratio in (layer.weight_snr_db, layer.hidden_snr_db)
        if ratio is not None and math.isfinite(ratio)
    ]
    sentences = shown.worst_sentence(known), shown.loss_sentence(known), *shown.remarks(known)
    values: dict[str, Any] = {
        "known": known,
        "name": name,
        "sentences": sentences,
        "stamp": shown.stamp_line(known.stamp, known.measured),
        "noisy": different[:BARS],
        "top": max(ratios, default=1.0),
        "y": Scale(min([0.0, *depths]), max([10.0, *depths]) * 1.08, 190, 26),
        "all_parts": shown.worst_parts(known, len(known.parts)),
        "along": shown.layers(known),
        "alone": shown.left_out(known),
        "advice": shown.greedy_sentence(known),
        "kept": shown.kept_parts(known),
        "snr": shown.snr_text,
        "variant": variant,
    }
    if variant is not None:
        path = str(variant.path)
        values["size"] = shown.bytes_text(variant.size_bytes)
        values["explore"] = link_to("explore", model=baseline, compare=path)
        values["evaluate"] = link_to("evaluate", evaluate_model=path, evaluate_baseline=baseline)
    parts = macros("quantize/diagnosis.html", **values)
    return {piece: str(own()) for piece, own in parts.items()}


def figure(session: Session, request: Mapping[str, Any]) -> dict[str, Any]:
    """The pieces of the panel, as `ui/figure.py: answer` gives them."""
    return answer(session, show, from_values(Request, request))


# By the name under which the browser calls them; each takes the session and JSON values.
SERVED = {"figure": figure}
