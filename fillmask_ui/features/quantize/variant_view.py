"""What the Quantize tab shows: plain functions, no Gradio events."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fillmask_ui.features.quantize.diagnosis_tables import stamp_line
from fillmask_ui.features.quantize.measure_variants import (
    BASELINE,
    VariantFigures,
    busy_text,
    worth_having,
)
from fillmask_ui.features.quantize.quantize_job import FailedScheme, RunState, variant_name
from fillmask_ui.features.quantize.variant_charts import variants_chart
from fillmask_ui.features.quantize.variant_store import Home, VariantStore
from fillmask_ui.onnx_tools.schemes import SCHEMES
from fillmask_ui.show.render import render
from fillmask_ui.show.sentences import sentence
from fillmask_ui.ui.components import link_to, notice_html
from fillmask_ui.ui.job import Page, Waiting

_ELSEWHERE = (
    "The variants below were measured on other texts than the model was last time. Select their "
    "schemes and press Run to compare them again."
)
EIGHT_BITS = ("int8", "int8-channel", "int8-tensor", "qdq")
# What changes, by name: HTML of the `notice`, of the table's `rows` and of the `story` about them,
# and the `charts`.
Update = dict[str, Any]
WELCOME = "quantize/welcome.html"  # in the place of a result
STOPPED = "Stopped. Finished variants and measurements are kept."


@dataclass(frozen=True)
class VariantRow:
    """One row of the table."""

    name: str  # what charts and the table call it
    scheme: str
    exclude: str = ""  # what stays in full precision; blank for nothing
    reference: str = ""  # that loads it; blank where it was not made
    size_bytes: int = 0
    figures: VariantFigures | None = None  # None where it was not measured
    best: tuple[str, ...] = ()  # the frontiers that it is on: `size`, `speed`
    elsewhere: bool = False  # whether it was measured on other texts than the model itself
    failure: str = ""  # why it was not made
    explore: str = ""  # links to the other tabs; blank for none
    evaluate: str = ""

    @property
    def is_baseline(self) -> bool:
        return self.scheme == BASELINE


def show_stored(store: VariantStore, reference: str) -> Update:
    """The stored variants of a model."""
    home = store.find(reference)
    if home is None:
        return {"rows": "", "story": render(WELCOME), "charts": ()}
    return show_rows(variant_rows(home))


def show_status(page: Page, status: Waiting) -> Update:
    """What a new status of a run changes on the page; charts are drawn only if they change."""
    state, update = status.so_far, Update()
    if isinstance(state, RunState) and state is not page.drawn and state.home is not None:
        update = show_rows(variant_rows(state.home, state.failures))
    page.drawn = state
    if status.state == "stopped":
        update["notice"] = notice_html("hint", STOPPED)
    elif status.state == "done" and state and state.notes:
        update["notice"] = notice_html("hint", " ".join(state.notes))
    return update


def variant_rows(home: Home, failures: Sequence[FailedScheme] = ()) -> list[VariantRow]:
    """The baseline, what is on disk, and what has failed just now."""
    source, base = home.reference, home.baseline
    lines = [VariantRow(source, BASELINE, reference=source, figures=base)]
    for variant in home.variants(list(SCHEMES)):
        reference, figures = str(variant.path), variant.figures
        example = {"text": figures.example} if figures and figures.example else {}
        lines.append(
            VariantRow(
                variant_name(variant.scheme, variant.exclude),
                variant.scheme,
                ", ".join(variant.exclude),
                reference,
                variant.size_bytes,
                figures,
                elsewhere=bool(figures and base and figures.measured != base.measured),
                explore=link_to("explore", model=source, compare=reference, **example),
                evaluate=link_to("evaluate", evaluate_model=reference, evaluate_baseline=source),
            )
        )
    lines += [
        VariantRow(failure.name, failure.scheme, failure=sentence(failure.message))
        for failure in failures
    ]
    return _with_frontiers(lines)


def _with_frontiers(lines: Sequence[VariantRow]) -> list[VariantRow]:
    """The same, each with the frontiers that it is on among those that compare."""
    compared = [line for line in lines if line.figures and not line.elsewhere]
    figures = [line.figures for line in compared if line.figures]
    best: dict[str, list[VariantRow]] = {}
    for cost in ("size", "speed"):
        best[cost] = [compared[index] for index in worth_having(figures, cost)]
    return [
        replace(line, best=tuple(cost for cost in best if line in best[cost])) for line in lines
    ]


def show_rows(lines: Sequence[VariantRow]) -> Update:
    """The table, the charts and what to take from them."""
    compared = {line.name: line.figures for line in lines if line.figures and not line.elsewhere}
    charts = []
    if len(compared) > 1:
        charts = [variants_chart(compared, cost) for cost in ("size", "speed")]
    measured = [(line.name, line.figures) for line in lines if line.figures]
    busy = [name for name, row in measured if row.busy]
    rows = render(
        "quantize/rows.html",
        lines=lines,
        recipes=_recipes(lines),
        stamps=list(dict.fromkeys(stamp_line(row.stamp) for _, row in measured)),
        texts=measured[0][1].texts if measured else 0,
        alarms=[(name, sentence(alarm)) for name, row in measured for alarm in row.alarms],
        busy=sentence(busy_text(busy)) if busy else "",
    )
    return {"rows": rows, "story": _story(lines), "charts": charts}


def _story(lines: Sequence[VariantRow]) -> str:
    """The smallest and the fastest that pass and gain something; blank where nothing was made."""
    variants = [
        (line.name, line.figures)
        for line in lines
        if line.figures and not line.elsewhere and not line.is_baseline
    ]
    if not variants and any(line.elsewhere for line in lines):
        return notice_html("hint", _ELSEWHERE)
    passing = [(name, row) for name, row in variants if row.verdict == "PASS"]
    small = [(name, row) for name, row in passing if row.smaller]
    fast = [(name, row) for name, row in passing if row.token_times.faster]
    return render(
        "quantize/story.html",
        measured=bool(variants),
        small=min(small, key=lambda pair: pair[1].size_bytes, default=None),
        fast=max(fast, key=lambda pair: pair[1].token_times.speedup, default=None),
    )


def _recipes(lines: Sequence[VariantRow]) -> list[tuple[str, str]]:
    """How variants in 8 bits were made, which is why they differ; none for fewer than two."""
    recipes = [
        (
            line.name,
            SCHEMES[line.scheme].description.rstrip(".")
            + (f"; {line.exclude} in full precision" if line.exclude else ""),
        )
        for line in lines
        if line.scheme in EIGHT_BITS and not line.failure
    ]
    return recipes if len(recipes) > 1 else []
