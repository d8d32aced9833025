"""The panel below the table of variants: which parts of the chosen one cost its loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fillmask_ui.errors import OptionError, unknown
from fillmask_ui.files import user_folder
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.quantizing.diagnosis import DiagnoseOptions, Diagnosis
from fillmask_ui.quantizing.graph_pair import open_pair
from fillmask_ui.quantizing.leave_one_out import diagnose
from fillmask_ui.quantizing.variant_store import Home, StoredVariant
from fillmask_ui.schema import from_values
from fillmask_ui.show import diagnosis as shown
from fillmask_ui.show.drawing import Scale
from fillmask_ui.show.render import render
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.ui.background import Report, Waiting
from fillmask_ui.ui.components import link_to
from fillmask_ui.ui.figure import Asked, Figure, Request, Shown, answer
from fillmask_ui.ui.session import Session

TEXTS, MOST_TEXTS = 60, 240
PARTS, MOST_PARTS = 8, 40
BARS = 12


def show(asked: Asked) -> Shown | Waiting:
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
        known: Diagnosis | None = None
        for step in diagnose(*choices, read, options=options, load=asked.session.model):
            if isinstance(step, Diagnosis):
                known = step
            else:
                report(Waiting(step.message, step.fraction, known))
        if known is None:
            raise RuntimeError("a diagnosis has ended without a result")
        return known

    question = ("diagnose", reference, baseline, most, samples)
    state = asked.session.slowly(asked.model, question, work, lambda own: 10 * len(own.parts))
    if isinstance(state, Waiting):
        return state if state.so_far is None else Shown(pieces(state.so_far, name), waiting=state)
    known = state.result
    if known.greedy:
        known = replace(known, greedy=known.greedy.within(budget, known.relative_change))
    made = ""
    if asked.pressed("make") and known.greedy and known.greedy.names:
        names = known.greedy.names
        kept = asked.session.slowly(
            asked.model,
            ("mixed", reference, baseline, names),
            lambda _: _make(reference, baseline, names),
        )
        if isinstance(kept, Waiting):
            return Waiting("Making this variant…")
        path = str(kept.result.path)
        made = render(
            "page/quantize/diagnose_made.html",
            variant=kept.result,
            size=shown.bytes_text(kept.result.size_bytes),
            explore=link_to("explore", model=path, compare=baseline),
            evaluate=link_to("evaluate", evaluate_model=path, evaluate_baseline=baseline),
        )
    return Shown(pieces(known, name) | {"made": made})


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


@dataclass(frozen=True)
class Point:
    """One layer in the drawing."""

    x: float
    y: float
    label: str
    text: str  # its ratio


def pieces(known: Diagnosis, name: str) -> dict[str, str]:
    """HTML of all that a diagnosis says, but for the variant made of it."""
    different = [part for part in known.parts if part.weight_snr_db != math.inf]
    ratios = [ratio for part in different for ratio in (part.usual_snr_db, part.weight_snr_db)]
    top = max(ratios, default=1.0)
    bars = [
        {
            "name": part.name,
            "text": shown.snr_text(part.weight_snr_db),
            "share": min(max(part.weight_snr_db / top, 0.0), 1.0),
            "note": "stands out" if part.sticks_out else "",
        }
        for part in different[:BARS]
    ]
    greedy = known.greedy
    return {
        "story": render(
            "page/quantize/diagnose_story.html",
            name=name,
            sentences=[shown.worst_sentence(known), shown.loss_sentence(known)],
            remarks=shown.remarks(known),
            stamp=shown.stamp_line(known.stamp, known.measured),
        ),
        "parts": render(
            "page/quantize/diagnose_parts.html",
            bars=bars,
            table=shown.worst_parts(known, len(known.parts)),
        ),
        "depth": render("page/quantize/diagnose_depth.html", **_drawing(known)),
        "made": "",
        "left_out": render("page/quantize/diagnose_left_out.html", table=shown.left_out(known)),
        "greedy": render(
            "page/quantize/diagnose_greedy.html",
            sentence=shown.greedy_sentence(known) if known.complete else "",
            table=shown.kept_parts(known) if known.complete else None,
            can_make=bool(known.complete and greedy and greedy.names),
        ),
    }


def _drawing(known: Diagnosis) -> dict[str, object]:
    """The ratio along depth: of weights, and of what each layer hands on."""
    lines: dict[str, list[float | None]] = {
        "weights": [layer.weight_snr_db for layer in known.layers],
        "behind": [layer.hidden_snr_db for layer in known.layers],
    }
    known_values = [value for values in lines.values() for value in values if value is not None]
    finite = list(filter(math.isfinite, known_values))
    y = Scale(min([0.0, *finite]), max([10.0, *finite]) * 1.08, 190, 26)
    x = Scale(0, max(len(known.layers) - 1, 1), 60, 600)
    drawn = {
        key: [
            Point(x(place), y(value), layer.label, shown.snr_text(value))
            for place, (layer, value) in enumerate(zip(known.layers, values, strict=True))
            if value is not None
        ]
        for key, values in lines.items()
    }
    return {
        "lines": drawn,
        "y": y,
        "labels": [(x(place), layer.label) for place, layer in enumerate(known.layers)],
        "table": shown.layers(known),
    }


# Panels below the table, by name: the form of each is `page/quantize/NAME.html`, a section of class
# `fm-figure` with that name as `data-figure`. Its controls `variant` and `baseline` hold the
# references of the chosen row and of the model that it was made from.
FIGURES = {"diagnose": Figure("Which parts cost the loss", show)}


def figure(session: Session, request: Mapping[str, Any]) -> dict[str, Any]:
    """The pieces of a panel, as `ui/figure.py: answer` gives them."""
    asked = from_values(Request, request)
    if asked.name not in FIGURES:
        raise OptionError(unknown("panel", asked.name, FIGURES))
    return answer(session, FIGURES[asked.name], asked)


# By the name under which the browser calls them; each takes the session and JSON values.
SERVED = {"figure": figure}
