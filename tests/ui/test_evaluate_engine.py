"""The engine in the Evaluate tab, with one of the test in place of Ray."""

import threading

import gradio as gr
import pytest
from block_engine import BlockEngine
from evaluate_page import (
    TEXTS,
    arrived,
    begun,
    direct,
    evaluation_jobs,
    finish,
    form,
    models,
    own_page_jobs,
    until,
    uploaded,
)

from fillmask_ui.cluster import EngineChoice
from fillmask_ui.errors import OptionError
from fillmask_ui.ui.evaluate import controls, view
from fillmask_ui.ui.evaluate import job as jobs
from fillmask_ui.ui.evaluate.evaluate_form import engine_of
from fillmask_ui.ui.evaluate.evaluation_jobs import Selection

NAMES = {"engine", "address", "workers", "threads_per_worker"}
TWO = {"engine": "ray", "workers": 2}
PSEUDO = {"metric": "pseudo-perplexity"}


@pytest.fixture
def engine(monkeypatch):
    made = BlockEngine()
    monkeypatch.setattr(jobs, "open_engine", made)
    return made


def built(*, public=False):
    with gr.Blocks():
        return controls.build(evaluation_jobs(None, public=public).session).keys()


def test_the_choice_is_offered_where_ray_is_and_not_to_strangers(monkeypatch):
    assert built() >= NAMES
    assert not built(public=True) & NAMES
    monkeypatch.setattr(controls, "ray_installed", lambda: False)
    assert not built() & NAMES


@pytest.mark.parametrize(
    ("choices", "wanted"),
    [
        ({}, EngineChoice()),
        ({"workers": 4, "address": "somewhere"}, EngineChoice()),  # hidden boxes do not count
        ({"engine": "ray"}, EngineChoice("ray")),
        ({"engine": "ray", "workers": None, "address": None}, EngineChoice("ray")),
        (
            {"engine": "ray", "address": " 10.0.0.1:6379 ", "workers": 2, "threads_per_worker": 3},
            EngineChoice("ray", "10.0.0.1:6379", 2, 3),
        ),
    ],
)
def test_the_controls_make_a_choice(choices, wanted):
    assert engine_of(form(**choices)) == wanted


def test_a_page_without_the_controls_measures_in_its_own_process():
    assert engine_of(dict.fromkeys(form().keys() - NAMES, 1)) == EngineChoice()


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"workers": -1}, "the workers must be a whole number, 1 or more; it was -1"),
        ({"threads_per_worker": 1.5}, "the threads per worker must be a whole number"),
    ],
)
def test_wrong_numbers_are_said_before_anything_is_kept(tmp_path, choices, said):
    with pytest.raises(OptionError, match=said):
        begun(own_page_jobs(tmp_path / "runs"), tmp_path, engine="ray", **choices)
    assert not (tmp_path / "runs").exists()


def test_an_engine_ends_with_the_numbers_of_this_process(tmp_path, engine):
    last = finish(begun(own_page_jobs(tmp_path / "runs"), tmp_path, **TWO))[-1]
    assert last.state == "done"
    assert last.summary.to_dict() == direct().to_dict()
    assert last.history[-1].texts == last.summary.texts
    assert (engine.opened, engine.open) == ([EngineChoice("ray", workers=2)], 0)


def test_progress_says_how_fast_and_on_how_many_workers(tmp_path, engine, monkeypatch):
    monkeypatch.setattr(jobs, "STATUS_SECONDS", 0.0)
    known, held = models(), threading.Event()
    engine.on_block = lambda: (
        known["table"].calls and len(known["table"].calls) > 4 and held.wait(30)
    )
    page_jobs = own_page_jobs(tmp_path / "runs", known=known)
    job = begun(page_jobs, tmp_path, **PSEUDO, **TWO)
    until(lambda: job.status.tokens_per_second)
    assert job.status.workers == 2
    shown = view.progress_html(job.status)
    assert f" of {len(TEXTS)} texts, " in shown
    assert " tokens/s, 2 workers, about " in shown
    held.set()
    assert finish(job)[-1].state == "done"


def test_cancel_while_ray_starts_leaves_nothing_behind(tmp_path, engine):
    started, go_on = threading.Event(), threading.Event()
    engine.on_open = lambda: started.set() or go_on.wait(30)
    page_jobs = own_page_jobs(tmp_path / "runs")
    job = begun(page_jobs, tmp_path, **TWO)
    assert started.wait(30)
    assert job.status.message == "Starting Ray…"
    page_jobs.cancel()
    assert finish(job)[-1].state == "stopped"  # though it still starts
    go_on.set()
    until(lambda: job.ended)
    assert engine.open == 0
    assert page_jobs.runs().runs == []


def test_a_cancelled_run_goes_on_with_the_engine_that_the_controls_say(tmp_path, engine):
    known = models()
    known["table"].free_calls = 20
    page_jobs = own_page_jobs(tmp_path / "runs", known=known)
    job = begun(page_jobs, tmp_path, **PSEUDO, **TWO)
    assert known["table"].reached.wait(30)
    page_jobs.cancel()
    known["table"].free_calls = 10**9
    known["table"].open.set()
    until(lambda: job.ended)
    assert engine.open == 0
    (run,) = page_jobs.runs().runs
    assert (run.state, run.row_count < len(TEXTS)) == ("stopped", True)
    resumed = finish(page_jobs.resume(run.info.name, form(engine="ray", workers=3)))[-1]
    assert resumed.state == "done"
    assert engine.opened[-1] == EngineChoice("ray", workers=3)
    assert resumed.summary.texts == len(TEXTS)


def test_two_evaluations_on_ray_wait_for_each_other(tmp_path, engine):
    go_on = threading.Event()
    engine.on_open = lambda: go_on.wait(30)
    all_jobs = evaluation_jobs(tmp_path / "runs")
    first, second = (
        arrived(all_jobs, name, f"page {name}").begin(uploaded(tmp_path, **TWO)) for name in "ab"
    )
    until(lambda: "Waiting for another" in second.status.message)
    assert engine.open == 1
    # One in this process need not wait.
    alone = arrived(all_jobs, "c", "page c").begin(uploaded(tmp_path))
    assert finish(alone)[-1].state == "done"
    go_on.set()
    assert [finish(job)[-1].state for job in (first, second)] == ["done", "done"]


def test_the_page_says_where_a_run_was_measured(tmp_path):
    page_jobs = own_page_jobs(tmp_path / "runs")
    names = [
        finish(begun(page_jobs, tmp_path, model=name))[-1].info.name for name in ("table", "noisy")
    ]
    assert (
        f"Run {names[0]}, measured by: local</p>"
        in view.stored(page_jobs, Selection(names[0])).every
    )
    assert "measured by" not in view.stored(page_jobs, Selection(*names)).every


def test_what_is_about_ray_appears_with_it(bench):
    from playwright.sync_api import expect

    page = bench.page
    page.get_by_role("button", name="More options").click()
    workers = page.get_by_label("Workers")
    expect(page.get_by_label("This process")).to_be_checked()
    expect(workers).to_be_hidden()
    page.get_by_label("Ray", exact=True).check()
    expect(workers).to_be_visible()
    expect(page.get_by_label("Threads per worker")).to_have_value("0")
    workers.fill("-1")
    bench.run()
    expect(bench.notice).to_contain_text("The workers must be a whole number, 1 or more")
