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
from fillmask_ui.features.quantize.quantize_job import Failed, Known, name_of
from fillmask_ui.features.quantize.variant_charts import variants_chart
from fillmask_ui.features.quantize.variant_store import Home, VariantStore
from fillmask_ui.onnx_tools.schemes import SCHEMES
from fillmask_ui.show.render import render
from fillmask_ui.show.sentences import sentence
from fillmask_ui.ui.components import link_to, notice_html
from fillmask_ui.ui.job import Page, Waiting

_ELSEWHERE = (
    "The variants below were measured on other texts than the model was the last time: tick their "
    "schemes and press Run to compare them again."
)
EIGHT_BITS = ("int8", "int8-channel", "int8-tensor", "qdq")
# What changes, by name: HTML of the `notice`, the `rows` of the table and the `story` to take from
# them, and the `charts`.
Update = dict[str, Any]
WELCOME = "quantize/welcome.html"  # in the place of a result
STOPPED = "Stopped. What was made and measured until then is kept."


@dataclass(frozen=True)
class Line:
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


def stored(store: VariantStore, reference: str) -> Update:
    """What there is of a model already."""
    home = store.find(reference)
    if home is None:
        return {"rows": "", "story": render(WELCOME), "charts": ()}
    return shown(lines_of(home))


def told(page: Page, status: Waiting) -> Update:
    """What a new status of its run changes on the page; charts are drawn where they change."""
    known, update = status.so_far, Update()
    if isinstance(known, Known) and known is not page.drawn and known.home is not None:
        update = shown(lines_of(known.home, known.failures))
    page.drawn = known
    if status.state == "stopped":
        update["notice"] = notice_html("hint", STOPPED)
    elif status.state == "done" and known and known.notes:
        update["notice"] = notice_html("hint", " ".join(known.notes))
    return update


def lines_of(home: Home, failures: Sequence[Failed] = ()) -> list[Line]:
    """The baseline, what is on disk, and what has failed just now."""
    source, base = home.reference, home.baseline
    lines = [Line(source, BASELINE, reference=source, figures=base)]
    for variant in home.variants(list(SCHEMES)):
        reference, figures = str(variant.path), variant.figures
        example = {"text": figures.example} if figures and figures.example else {}
        lines.append(
            Line(
                name_of(variant.scheme, variant.exclude),
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
    lines += [Line(own.name, own.scheme, failure=sentence(own.message)) for own in failures]
    return _with_frontiers(lines)


def _with_frontiers(lines: Sequence[Line]) -> list[Line]:
    """The same, each with the frontiers that it is on among those that compare."""
    own = [place for place, line in enumerate(lines) if line.figures and not line.elsewhere]
    rows = [figures for place in own if (figures := lines[place].figures)]
    best = {name: {own[place] for place in worth_having(rows, name)} for name in ("size", "speed")}
    return [
        replace(line, best=tuple(name for name in best if place in best[name]))
        for place, line in enumerate(lines)
    ]


def shown(lines: Sequence[Line]) -> Update:
    """The table, the charts and what to take from them."""
    compared = {line.name: line.figures for line in lines if line.figures and not line.elsewhere}
    drawn = (
        () if len(compared) < 2 else [variants_chart(compared, axis) for axis in ("size", "speed")]
    )
    measured = [(line.name, line.figures) for line in lines if line.figures]
    busy = [name for name, row in measured if row.busy]
    rows = render(
        "quantize/rows.html",
        lines=lines,
        recipes=_recipes(lines),
        stamps=list(dict.fromkeys(stamp_line(own.stamp) for _, own in measured)),
        texts=next((own.texts for _, own in measured), 0),
        alarms=[(name, sentence(alarm)) for name, own in measured for alarm in own.alarms],
        busy=sentence(busy_text(busy)) if busy else "",
    )
    return {"rows": rows, "story": _story(lines), "charts": drawn}


def _story(lines: Sequence[Line]) -> str:
    """The smallest and the fastest that pass and gain something; blank where nothing was made."""
    made = [
        (line.name, line.figures)
        for line in lines
        if line.figures and not line.elsewhere and not line.is_baseline
    ]
    if not made and any(line.elsewhere for line in lines):
        return notice_html("hint", _ELSEWHERE)
    passing = [own for own in made if own[1].verdict == "PASS"]
    small = [(name, row) for name, row in passing if row.smaller]
    fast = [(name, row) for name, row in passing if row.token_times.faster]
    return render(
        "quantize/story.html",
        made=bool(made),
        small=min(small, key=lambda pair: pair[1].size_bytes, default=None),
        fast=max(fast, key=lambda pair: pair[1].token_times.speedup, default=None),
    )


def _recipes(lines: Sequence[Line]) -> list[tuple[str, str]]:
    """How variants in 8 bits were made, which is why they differ; none for fewer than two."""
    told = [
        (
            line.name,
            SCHEMES[line.scheme].description.rstrip(".")
            + (f"; {line.exclude} in full precision" if line.exclude else ""),
        )
        for line in lines
        if line.scheme in EIGHT_BITS and not line.failure
    ]
    return told if len(told) > 1 else []
