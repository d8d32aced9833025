"""The Quantize tab: variants made, kept and shown, by functions of plain values."""

import itertools
import re
import shutil
import threading
import time
from dataclasses import replace

import pytest

from fillmask_ui.features.quantize import quantize_job, variant_view
from fillmask_ui.features.quantize.measure_variants import BASELINE
from fillmask_ui.features.quantize.quantize_job import CALIBRATION_TEXTS, perform, read_order
from fillmask_ui.features.quantize.tab import QuantizeRuns
from fillmask_ui.features.quantize.timing import PairedTimes
from fillmask_ui.features.quantize.variant_store import Recipe, VariantStore
from fillmask_ui.intervals import Interval
from fillmask_ui.models import ModelStore
from fillmask_ui.onnx_tools.schemes import SCHEMES
from fillmask_ui.ui import components
from fillmask_ui.ui.session import Session

VALUES = {
    "model": "embedded",
    "schemes": ["int8"],
    "more_schemes": [],
    "exclude": "",
    "where": "embedded",
    "upload": None,
    "samples": 12,
}


@pytest.fixture(scope="module")
def folder(tiny_models):
    return str(tiny_models.folder("bert"))


@pytest.fixture(scope="module")
def visited():
    return Session(ModelStore())


def order_of(**changes):
    return read_order(VALUES | changes, "embedded")


def run(session, store, **changes):
    """All steps of a run, and what it knows at its end."""
    steps = list(perform(order_of(**changes), store, session.model))
    return steps, [step.so_far for step in steps if step.so_far is not None][-1]


@pytest.fixture(scope="module")
def stored(visited, folder, once):
    """The store after a run of two schemes."""

    def make(root):
        steps, state = run(visited, VariantStore(root), model=folder, schemes=["int8", "fp16"])
        assert state.home is not None and not state.failures
        # Each step says what is being done.
        assert all(step.message for step in steps)
        done = [step.message for step in steps if step.message.endswith("done.")]
        assert done == ["int8 is done.", "fp16 is done."]
        fractions = [step.fraction for step in steps if step.fraction is not None]
        assert all(b > a - 1e-9 for a, b in itertools.pairwise(fractions)) and fractions[-1] == 1

    return VariantStore(once.folder("page-variants", make))


@pytest.fixture
def store(stored, tmp_path):
    """A copy to be changed."""
    return VariantStore(shutil.copytree(stored.root, tmp_path / "store"))


def test_variants_are_kept_and_offered_as_models(visited, folder, stored, monkeypatch):
    home = stored.find(folder)
    assert home.baseline.scheme == BASELINE
    assert [variant.scheme for variant in home.variants(list(SCHEMES))] == ["int8", "fp16"]
    for variant in home.variants():
        row = variant.figures
        assert row.reference == str(variant.path)
        assert row.measured == home.baseline.measured
        assert row.size_bytes == variant.path.stat().st_size
        assert visited.model(row.reference).signature.sha256 == row.stamp.sha256
    # The row of a run is that of the page when it is opened again; random weights are an alarm.
    again = variant_view.show_stored(stored, folder)
    assert f'data-value="{row.mean_nll_nats}"' in again["rows"]
    assert "is near chance" in again["rows"] and 'role="alert"' in again["rows"]
    assert [chart.name for chart in again["charts"]] == ["variants-by-size", "variants-by-speed"]
    monkeypatch.setenv("FILLMASK_UI_VARIANTS", str(stored.root))
    path = str(home.variant("int8", Recipe()).path)
    assert (f"int8 of {folder} · made here", path) in components.model_choices(visited)
    public = Session(ModelStore(), public=True)
    assert path not in dict(map(reversed, components.model_choices(public)))


def test_an_existing_variant_is_measured_on_other_texts_and_not_made(visited, folder, store):
    before = store.find(folder).variant("int8", Recipe())
    run(visited, store, model=folder, samples=20)
    after = store.find(folder).variant("int8", Recipe())
    assert before.path.stat().st_mtime_ns == after.path.stat().st_mtime_ns
    assert before.figures.measured != after.figures.measured
    assert after.figures.texts > before.figures.texts
    # The other scheme was measured on the texts of before: it is told, and not compared.
    base, int8, fp16 = variant_view.variant_rows(store.find(folder))
    assert base.is_baseline and fp16.elsewhere and not int8.elsewhere
    assert fp16.best == () and "size" in int8.best  # the smaller of the two that compare
    assert int8.explore.startswith("tab=explore&model=") and "compare=" in int8.explore
    assert "evaluate_model=" in int8.evaluate and "evaluate_baseline=" in int8.evaluate
    update = variant_view.show_rows([base, int8, fp16])
    assert (
        "measured on other texts" in update["rows"] and "graph optimization all" in update["rows"]
    )
    assert [row[0] for row in update["charts"][0].table.rows] == [folder, "int8"]


def test_a_static_scheme_is_calibrated_on_texts_that_are_not_measured(visited, folder, tmp_path):
    store = VariantStore(tmp_path / "variants")
    many = tmp_path / "many.txt"
    many.write_text("".join(f"The cat sat on mat {n} and slept.\n" for n in range(100)))
    texts = {"where": "upload", "upload": str(many)}
    _, state = run(visited, store, model=folder, schemes=["qdq"], **texts)
    assert state.notes == ()
    (written,) = store.find(folder).folder.glob("texts-*.jsonl")
    assert len(written.read_text().splitlines()) == CALIBRATION_TEXTS
    (variant,) = store.find(folder).variants()
    assert variant.path.parent.parent.name.startswith("calibrated-")
    # Other texts give another variant; those of a small file calibrate, too.
    file = tmp_path / "few.txt"
    file.write_text("The cat sat on the mat.\nThe dog ran to the river and walked on.\n")
    changes = {"schemes": ["qdq"], "where": "upload", "upload": str(file)}
    _, state = run(visited, store, model=folder, **changes)
    assert len(store.find(folder).variants()) == 2
    (note,) = state.notes
    assert "too few texts" in note and not state.failures


def test_a_scheme_that_fails_says_why_and_the_others_go_on(visited, folder, store, monkeypatch):
    monkeypatch.setitem(SCHEMES, "qdq", replace(SCHEMES["qdq"], package="no_such_package"))
    order = order_of(model=folder, schemes=["qdq", "fp16"])
    *_, last = perform(order, store, visited.model)
    rows = variant_view.show_rows(
        variant_view.variant_rows(last.so_far.home, last.so_far.failures)
    )["rows"]
    assert "needs the package no-such-package" in rows
    assert "fm-variant-failure" in rows and 'data-scheme="fp16"' in rows
    path = store.find(folder).variant("int8", Recipe()).path
    _, state = run(visited, store, model=str(path), schemes=["int8", "fp16"])
    assert [failed.scheme for failed in state.failures] == ["int8", "fp16"]
    assert all("quantized already" in failed.message for failed in state.failures)


def test_one_speed_is_told_everywhere_and_fastest_is_faster_than_the_model(folder, stored):
    lines = variant_view.variant_rows(stored.find(folder))
    rows = [replace(line.figures, verdict="PASS") for line in lines]
    rows[0] = replace(rows[0], verdict="")

    def show(*speedups, spread=0.04, scatter=0.1):
        quiet = PairedTimes(1.0, None, 0.001, 0.1)
        all_times = [quiet]
        for speedup in speedups:
            interval = Interval(speedup - spread, speedup + spread, "sign-test")
            all_times.append(PairedTimes(speedup, interval, 0.002, scatter))
        changed = []
        for line, row, times in zip(lines, rows, all_times, strict=True):
            figures = replace(row, token_times=times, sentence_times=times)
            changed.append(replace(line, figures=figures))
        return variant_view.show_rows(changed)

    update = show(1.25, 1.5)
    assert "fastest" in update["story"]
    assert "1.50 times the speed of the model (1.46 to 1.54)" in update["story"]
    assert "1.46 to 1.54" in update["rows"] and "machine was busy" not in update["rows"]
    # One number a row: the model's row has tokens per second, the others how many times that.
    assert re.findall(r'label="(?:Speed|Sentence)"[^>]*>([^<]+)<', update["rows"]) == [
        *("1,000 tokens/s", "1.00 ms", "1.25 ×", "1.25 ×", "1.50 ×", "1.50 ×")
    ]
    speeds = [point for trace in update["charts"][1].figure.data for point in (trace.x or ())]
    assert {1.25, 1.5} <= {round(speed, 6) for speed in speeds}
    for slow in (show(0.7, 0.9), show(0.9, 1.15, spread=0.2)):
        assert "is the fastest" not in slow["story"]
        assert "None that passes is certainly faster" in slow["story"]
    busy = show(1.25, 1.5, scatter=0.4)["rows"]
    assert "This machine was busy while it timed int8, fp16" in busy


def test_the_form_shows_the_settings_of_the_run_that_it_shows(visited, folder, tmp_path):
    runs = QuantizeRuns(visited, tmp_path / "variants")
    page = runs.arrive("first", "me", "page")
    assert runs.controls(page, folder) == {}
    texts = tmp_path / "texts.txt"
    texts.write_text("The cat sat on the mat.\nThe dog ran to the river and walked on.\n")
    chosen = {"schemes": ["fp16"], "exclude": "layer:0", "where": "upload", "samples": 2.0}
    chosen |= {"upload": str(texts), "more_schemes": []}
    ended(runs.begin(page, **VALUES | chosen | {"model": folder}))
    # The page itself, and one opened by another server on the same disk.
    fresh = QuantizeRuns(visited, tmp_path / "variants")
    for server, visit in ((runs, page), (fresh, fresh.arrive("second", "me", "page"))):
        update = server.controls(visit, folder)
        assert update.pop("more")["open"] is True
        assert update == chosen
    texts.unlink()
    assert fresh.controls(fresh.page("second"), folder)["upload"] is None
    # What goes on is shown before what is on disk.
    state = quantize_job.RunState(folder, order_of(schemes=["int8"]).settings)
    page.job.status = replace(page.job.status, so_far=state)
    assert runs.controls(page, folder)["schemes"] == ["int8"]


def ended(job):
    until = time.monotonic() + 300
    while not job.ended and time.monotonic() < until:
        time.sleep(0.02)
    return job.poll()


def test_a_run_is_found_again_by_its_page_and_stopped_at_its_next_step(
    visited, folder, tmp_path, monkeypatch
):
    reached, opened = threading.Event(), threading.Event()
    whole = quantize_job.quantize

    def held(*arguments, **options):
        reached.set()
        assert opened.wait(300)
        yield from whole(*arguments, **options)

    monkeypatch.setattr(quantize_job, "quantize", held)
    runs = QuantizeRuns(visited, tmp_path)
    first = runs.arrive("first", "me", "page")
    job = runs.begin(first, **VALUES | {"model": folder, "schemes": ["int8", "fp16"]})
    assert reached.wait(300)
    runs.forget("first")
    # A reload has another session of Gradio, and the same page.
    second = runs.arrive("second", "me", "page")
    assert second.take_up() is job
    update = variant_view.show_status(second, second.news())
    assert update["rows"].count('<tr class="fm-variant') == 1
    assert "rows" not in variant_view.show_status(second, job.poll())  # it is drawn already
    # What was made by the panel below the table is measured by the run itself.
    assert runs.begin(second, make=False, **VALUES) is None
    second.cancel()
    opened.set()
    last = ended(job)
    assert (
        last.state == "stopped"
        and variant_view.STOPPED in variant_view.show_status(second, last)["notice"]
    )
    home = VariantStore(tmp_path).find(folder)
    assert home.baseline is not None and home.variants() == []
    # The next run has its turn.
    again = runs.begin(second, **VALUES | {"model": folder})
    assert ended(again).state == "done" and len(home.variants()) == 1
