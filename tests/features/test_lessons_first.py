"""Lessons come first: their figures are answered while long jobs of other tabs go on."""

import threading
import time
from contextlib import suppress

import pytest
from explore_page import session_of
from features.course.lesson_figures import show_figure
from table_model import TableModel

from fillmask_ui.features.quantize import diagnosis_view, quantize_job
from fillmask_ui.features.quantize.tab import QuantizeRuns
from fillmask_ui.records import Progress
from fillmask_ui.ui.figure import FigureInputs
from fillmask_ui.ui.job import Unfinished, Waiting


@pytest.mark.parametrize("figure", ["ledger_mix", "twenty_seeds"])  # of chapters 5 and 8
def test_a_lesson_is_answered_while_quantize_holds_a_step(figure, tmp_path, monkeypatch):
    session, gate = session_of(table=TableModel()), threading.Event()
    model = session.model("table")
    steps = []

    def held(*_arguments, **_options):
        for number in range(1, 4):
            steps.append(number)
            yield Waiting(f"part {number} of 3", number / 3)
            assert gate.wait(60)

    monkeypatch.setattr(quantize_job, "perform", held)
    monkeypatch.setattr(
        diagnosis_view,
        "diagnose",
        lambda *_, **__: (Progress(step.message, step.fraction) for step in held()),
    )
    runs = QuantizeRuns(session, tmp_path)
    values = {"model": "table", "where": "embedded", "upload": None, "samples": 2, "exclude": ""}
    job = runs.begin(runs.page("page"), **values, schemes=["int8"], more_schemes=[])
    with pytest.raises(Unfinished):
        diagnosis_view.show(FigureInputs(session, {"variant": "a", "baseline": "b"}, model))
    assert show_figure(session, model, figure).pieces
    assert not job.ended and steps.count(2) == 0
    # Another diagnosis waits, and is told for what.
    with pytest.raises(Unfinished) as waiting:
        diagnosis_view.show(FigureInputs(session, {"variant": "c", "baseline": "b"}, model))
    message = waiting.value.state.message
    assert message.startswith("Waiting for a diagnosis: about ") and message.endswith(" left…")
    gate.set()
    until = time.monotonic() + 30
    while not job.ended and time.monotonic() < until:
        with suppress(Unfinished):
            show_figure(session, model, figure)
    assert job.poll().state == "done"
