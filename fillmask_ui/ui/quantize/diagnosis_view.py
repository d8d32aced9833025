"""The panel below the table of variants: which parts of the chosen one cost its loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from fillmask_ui.errors import OptionError
from fillmask_ui.files import user_folder
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.quantizing.diagnosis import DiagnoseOptions, Diagnosis
from fillmask_ui.quantizing.graph_pair import open_pair
from fillmask_ui.quantizing.leave_one_out import diagnose
from fillmask_ui.quantizing.variant_store import Home, StoredVariant
from fillmask_ui.show import diagnosis as shown
from fillmask_ui.show.drawing import Scale
from fillmask_ui.show.render import render
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.ui.background import Report, Waiting
from fillmask_ui.ui.components import link_to
from fillmask_ui.ui.figure import Asked, Figure, Shown

TEXTS, MOST_TEXTS = 60, 240
BARS, PLAIN_MOST = 12, 8
_MOST = 40


def show(asked: Asked) -> Shown | Waiting:
    """The diagnosis of the variant of the row that was chosen, as far as it is."""
    reference, baseline = asked.text("variant"), asked.text("baseline")
    name = asked.text("name") or reference
    most = asked.integer("most", 0, _MOST, PLAIN_MOST)
    samples = asked.integer("texts", 1, MOST_TEXTS, TEXTS)
    budget = asked.number("budget", 0, 100, 0.5) / 100
    session = asked.session

    def load(choice: ModelChoice) -> MaskedLM:
        return session.model(choice)

    def work(report: Report) -> Diagnosis:
        with open_texts(TextSource(samples=samples)) as texts:
            read = list(texts)
        # The list for any larger budget is its beginning, so that moving the budget costs nothing.
        options = DiagnoseOptions(0.0, most)
        choices = ModelChoice(reference), ModelChoice(baseline)
        known: Diagnosis | None = None
        for step in diagnose(*choices, read, options=options, load=load):
            if isinstance(step, Diagnosis):
                known = step
            else:
                report(Waiting(step.message, step.fraction, known))
        if known is None:
            raise RuntimeError("a diagnosis has ended without a result")
        return known

    question = ("diagnose", reference, baseline, most, samples)
    state = session.slowly(asked.model, question, work, _size)
    if isinstance(state, Waiting):
        return state if state.so_far is None else Shown(pieces(state.so_far, name), waiting=state)
    known = state.result
    if known.greedy:
        greedy = known.greedy.within(budget, known.relative_change)
        known = replace(known, greedy=greedy)
    made = ""
    if asked.pressed("make") and known.greedy and known.greedy.names:
        names = known.greedy.names
        kept = session.slowly(
            asked.model,
            ("mixed", reference, baseline, names),
            lambda _: _make(reference, baseline, names),
        )
        if isinstance(kept, Waiting):
            return Waiting("Making this variant…")
        links = {
            "explore": link_to("explore", model=str(kept.result.path), compare=baseline),
            "evaluate": link_to(
                "evaluate", evaluate_model=str(kept.result.path), evaluate_baseline=baseline
            ),
        }
        made = render(
            "page/quantize/diagnose_made.html",
            variant=kept.result,
            size=shown.bytes_text(kept.result.size_bytes),
            **links,
        )
    return Shown(pieces(known, name) | {"made": made})


def _size(known: Diagnosis) -> int:
    return 10 * len(known.parts)


def _make(reference: str, baseline: str, names: tuple[str, ...]) -> StoredVariant:
    """The variant with some parts in full precision, beside those that are kept."""
    root = user_folder("variants")
    path = Path(reference)
    if path.is_relative_to(root) and len(path.relative_to(root).parts) > 3:
        made = Home(root / path.relative_to(root).parts[0])
        for variant in made.variants():
            if variant.path == path:
                pair = open_pair(ModelChoice(reference), ModelChoice(baseline))
                return made.keep_restored(variant, pair, names)
    raise OptionError(
        f"{reference} was not made on this page: on the command line, fillmask-ui diagnose with "
        "--apply FILE.onnx writes the variant"
    )


@dataclass(frozen=True)
class Bar:
    """One part in the list of bars."""

    name: str
    text: str  # its ratio
    share: float  # of the bar's room, in [0, 1]
    note: str  # what to see; blank for nothing


@dataclass(frozen=True)
class Point:
    """One layer in the drawing."""

    x: float
    y: float
    label: str
    text: str  # its ratio


def pieces(known: Diagnosis, name: str) -> dict[str, str]:
    """HTML of all that a diagnosis says, but for the variant made of it."""
    different = [part for part in known.parts if part.weight_snr_db != float("inf")]
    top = max((part.usual_snr_db for part in different), default=1.0)
    top = max([top, *(part.weight_snr_db for part in different)])
    bars = [
        Bar(
            part.name,
            shown.snr_text(part.weight_snr_db),
            min(max(part.weight_snr_db / top, 0.0), 1.0),
            "stands out" if part.sticks_out else "",
        )
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
    finite = [
        value
        for values in lines.values()
        for value in values
        if value is not None and abs(value) != float("inf")
    ]
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


FIGURE = Figure("Which parts cost the loss", show)
