"""The Quantize tab: variants made, kept and shown, by functions of plain values."""

import itertools
import shutil
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.models import ModelStore
from fillmask_ui.onnx_tools.schemes import SCHEMES
from fillmask_ui.quantizing.measure_variants import BASELINE, Progress
from fillmask_ui.quantizing.variant_store import Recipe, VariantStore
from fillmask_ui.show.charts import run_charts
from fillmask_ui.texts import TextSource
from fillmask_ui.ui import components, page
from fillmask_ui.ui.quantize import diagnosis_view, variant_view
from fillmask_ui.ui.quantize.quantize_job import (
    CALIBRATION_TEXTS,
    Failed,
    Kept,
    Note,
    perform,
    read_order,
)
from fillmask_ui.ui.quantize.tab import QuantizeRuns
from fillmask_ui.ui.session import Session

VALUES = {
    "model": "embedded",
    "schemes": ["int8"],
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
    return list(perform(order_of(**changes), store, session.model))


@pytest.fixture(scope="module")
def kept(visited, folder, once):
    """The store after a run of two schemes."""

    def make(root):
        steps = run(visited, VariantStore(root), model=folder, schemes=["int8", "fp16"])
        assert [type(step) for step in steps if not isinstance(step, Progress)] == [Kept] * 3
        fractions = [s.fraction for s in steps if getattr(s, "fraction", None) is not None]
        assert all(b > a - 1e-9 for a, b in itertools.pairwise(fractions))

    return VariantStore(once.folder("page-variants", make))


@pytest.fixture
def store(kept, tmp_path):
    """A copy to be changed."""
    return VariantStore(shutil.copytree(kept.root, tmp_path / "store"))


def test_an_order_is_what_the_controls_hold():
    order = order_of(model=" ", schemes=["fp16", "int8"], exclude="embedding, 3  /a/b,embedding")
    assert order.model.reference == "embedded"
    assert order.schemes == ("int8", "fp16")  # as the table of schemes has them
    assert order.exclude == ("embedding", "3", "/a/b")
    assert (order.source, order.samples) == (TextSource(), 12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schemes": []}, "no scheme is ticked"),
        ({"schemes": ["int9"]}, "int9"),
        ({"samples": 0}, "number of texts"),
        ({"samples": None}, "number of texts"),
        ({"samples": 2.5}, "number of texts"),
        ({"where": "upload"}, "no file was uploaded"),
        ({"where": "moon"}, "moon"),
    ],
)
def test_what_makes_no_sense_is_said(changes, message):
    with pytest.raises(OptionError, match=message):
        order_of(**changes)


def test_variants_are_kept_and_offered_as_models(visited, folder, kept, monkeypatch):
    home = kept.find(folder)
    assert home.baseline.scheme == BASELINE
    assert [own.scheme for own in home.variants(list(SCHEMES))] == ["int8", "fp16"]
    for variant in home.variants():
        row = variant.figures
        assert row.reference == str(variant.path)
        assert row.measured == home.baseline.measured
        assert row.size_bytes == variant.path.stat().st_size
        assert visited.model(row.reference).signature.sha256 == row.stamp.sha256
    # The row of a run is that of the page when it is opened again; random weights are an alarm.
    again = variant_view.stored(kept, folder)
    assert f'data-value="{row.mean_nll_nats}"' in again.rows
    assert "is near chance" in again.rows and 'role="alert"' in again.rows
    assert [chart.name for chart in again.charts] == ["variants-by-size", "variants-by-speed"]
    monkeypatch.setenv("FILLMASK_UI_VARIANTS", str(kept.root))
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
    base, int8, fp16 = variant_view.lines_of(store.find(folder))
    assert base.is_baseline and fp16.elsewhere and not int8.elsewhere
    assert fp16.best == () and "size" in int8.best  # the smaller of the two that compare
    assert int8.explore.startswith("tab=explore&model=") and "compare=" in int8.explore
    assert "evaluate_model=" in int8.evaluate and "evaluate_baseline=" in int8.evaluate
    update = variant_view.shown([base, int8, fp16])
    assert "measured on other texts" in update.rows and "graph optimization all" in update.rows
    assert [row[0] for row in update.charts[0].table.rows] == [folder, "int8"]


def test_a_static_scheme_is_calibrated_on_texts_that_are_not_measured(visited, folder, tmp_path):
    store = VariantStore(tmp_path / "variants")
    steps = run(visited, store, model=folder, schemes=["qdq"])
    assert not [step for step in steps if isinstance(step, Note)]
    (written,) = store.find(folder).folder.glob("texts-*.jsonl")
    assert len(written.read_text().splitlines()) == CALIBRATION_TEXTS
    (variant,) = store.find(folder).variants()
    assert variant.path.parent.parent.name.startswith("calibrated-")
    # Other texts give another variant; those of a small file calibrate, too.
    file = tmp_path / "few.txt"
    file.write_text("The cat sat on the mat.\nThe dog ran to the river and walked on.\n")
    changes = {"schemes": ["qdq"], "where": "upload", "upload": str(file)}
    steps = run(visited, store, model=folder, **changes)
    assert len(store.find(folder).variants()) == 2
    (note,) = [step for step in steps if isinstance(step, Note)]
    assert "no further texts" in note.text and isinstance(steps[-1], Kept)


def test_a_scheme_that_fails_says_why_and_the_others_go_on(visited, folder, store, monkeypatch):
    monkeypatch.setitem(SCHEMES, "qdq", replace(SCHEMES["qdq"], package="no_such_package"))
    order = order_of(model=folder, schemes=["qdq", "fp16"])
    updates = list(variant_view.followed(perform(order, store, visited.model)))
    rows = [update.rows for update in updates if update.rows][-1]
    assert "needs the package no-such-package" in rows
    assert "fm-variant-failure" in rows and 'data-scheme="fp16"' in rows
    assert updates[-1].busy is False
    path = store.find(folder).variant("int8", Recipe()).path
    steps = run(visited, store, model=str(path), schemes=["int8", "fp16"])
    failed = [step for step in steps if isinstance(step, Failed)]
    assert [step.scheme for step in failed] == ["int8", "fp16"]
    assert all("quantized already" in step.message for step in failed)


def test_charts_show_all_that_compares_and_names_are_never_markup(folder, kept):
    lines = variant_view.lines_of(kept.find(folder))
    size, speed = variant_view.shown(lines).charts
    told = size.figure.layout.meta["description"]
    assert told.startswith("Loss against size of 3 models; on the frontier: ")
    best = [line.name for line in lines if "size" in line.best]
    assert sorted(told.split(": ")[1].rstrip(".").split(", ")) == sorted(best)
    points = {
        (x, y)
        for trace in size.figure.data
        if trace.mode == "markers+text"
        for x, y in zip(trace.x, trace.y, strict=True)
    }
    rows = [line.figures for line in lines]
    assert points == {(row.size_bytes / 1e6, row.mean_nll_nats) for row in rows}
    assert [row[4] for row in speed.table.rows] == [row.speedup for row in rows]
    update = variant_view.shown([replace(line, name="<b>x</b>") for line in lines])
    assert "<b>x" not in update.rows.replace("<b>&lt;b&gt;x", "")
    assert "&lt;b&gt;x" in update.charts[0].figure.data[-1].text[0]


def test_a_run_is_stopped_at_its_next_step(visited, folder, tmp_path):
    quantize_runs = QuantizeRuns(visited, tmp_path)
    seen = []
    for update in quantize_runs.run("me", VALUES | {"model": folder, "schemes": ["int8", "fp16"]}):
        seen.append(update)
        if update.rows:  # the model itself is measured
            quantize_runs.stop("me")
    assert variant_view.STOPPED in seen[-1].notice
    assert seen[-1].busy is False
    home = VariantStore(tmp_path).find(folder)
    assert home.baseline is not None and home.variants() == []
    assert seen[-1].rows.count('<tr class="fm-variant') == 1
    # The next run has its turn.
    assert list(quantize_runs.run("me", VALUES | {"model": folder}))[-1].busy is False
    assert len(home.variants()) == 1


def test_one_run_waits_for_another_and_can_be_stopped_then(visited, folder, store):
    quantize_runs = QuantizeRuns(visited, store.root)
    first = quantize_runs.run("first", VALUES | {"model": folder})
    next(first)
    next(first)  # has its turn
    second = quantize_runs.run("second", VALUES | {"model": folder})
    next(second)
    assert "Waiting for another run" in next(second).notice
    threading.Timer(0.05, quantize_runs.stop, ["second"]).start()
    assert [update.busy for update in second][-1] is False
    first.close()
    third = list(quantize_runs.run("third", VALUES | {"model": folder}))
    assert third[-1].busy is False


def test_what_cannot_be_run_is_said(visited, session, tmp_path):
    quantize_runs = QuantizeRuns(visited, tmp_path)
    (update,) = quantize_runs.run("me", VALUES | {"schemes": []})
    assert "No scheme is ticked" in update.notice
    *_, last = quantize_runs.run("me", VALUES | {"model": "no/such/model/here"})
    assert "no such model" in last.notice.lower()
    assert last.busy is False
    found = components.answered(diagnosis_view.figure, session, {"name": "<x>", "values": {}})
    assert "Unknown" in found["error"]


def test_a_broken_store_is_an_empty_one(visited, folder, store, tmp_path):
    home = store.find(folder)
    (home.output(Recipe()) / "fillmask-ui.json").write_text("{")
    assert home.variants() == []
    (home.folder / "source.json").write_text("{")
    assert store.find(folder) is None
    assert variant_view.stored(store, folder).charts == ()
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(DataError, match="FILLMASK_UI_VARIANTS"):
        run(visited, VariantStore(file), model=folder)


def test_a_public_page_has_no_such_tab():
    assert "quantize" in [name for name, _, _ in page.tabs_of(public=False)]
    assert "quantize" not in [name for name, _, _ in page.tabs_of(public=True)]


def test_names_of_points_are_on_no_marker_and_no_other_name():
    # Two at one place, one close to them, one at the right edge.
    points = [("int8", 20.0, 3.0), ("qdq", 20.0, 3.0), ("int4", 19.0, 3.0), ("embedded", 39.0, 2.9)]
    rows = [
        run_charts.Named(name, SimpleNamespace(mean_nll_nats=loss, change_interval=None))
        for name, _, loss in points
    ]
    sides = run_charts._sides([place for _, place, _ in points], rows, [15, 43], [2.8, 3.2])
    assert sides[0] != sides[1]
    assert sides[3].endswith("left")
