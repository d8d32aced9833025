"""Evaluate with Ray: offered where it is installed, cancelled while it starts."""

import threading

import gradio as gr
import pytest
from block_engine import BlockEngine
from evaluate_page import begun, evaluation_jobs, finish, own_page_jobs, until
from journey import Evaluate
from playwright.sync_api import expect

from fillmask_ui.ui.evaluate import evaluate_form
from fillmask_ui.ui.evaluate import evaluation_jobs as evaluation

NAMES = {"engine", "address", "workers", "threads_per_worker"}
TWO = {"engine": "ray", "workers": 2}


@pytest.fixture
def engine(monkeypatch):
    made = BlockEngine()
    monkeypatch.setattr(evaluation, "open_engine", made)
    return made


def built(*, public=False):
    with gr.Blocks():
        return evaluate_form.build(evaluation_jobs(None, public=public).session).keys()


def test_the_choice_is_offered_where_ray_is_and_not_to_strangers(monkeypatch):
    assert built() >= NAMES
    assert not built(public=True) & NAMES
    monkeypatch.setattr(evaluate_form, "installed_engines", list)
    assert not built() & NAMES


def test_cancel_while_ray_starts_leaves_nothing_behind(tmp_path, engine):
    started, go_on = threading.Event(), threading.Event()
    engine.on_open = lambda: started.set() or go_on.wait(300)
    page_jobs = own_page_jobs(tmp_path / "runs")
    job = begun(page_jobs, tmp_path, **TWO)
    assert started.wait(300)
    assert job.status.message == "Starting Ray…"
    page_jobs.cancel()
    assert finish(job).state == "stopped"  # though it still starts
    go_on.set()
    until(lambda: job.ended)
    assert engine.open == 0
    assert page_jobs.runs() == {}


def test_workers_are_asked_for_with_ray_and_a_wrong_number_is_named(visit):
    bench = Evaluate(page := visit({"tab": "evaluate"}, height=800))
    bench.form().model("Candidate", "embedded · float16").model("Reference", "")
    workers = page.get_by_label("Workers")
    expect(page.get_by_label("This process")).to_be_checked()
    expect(workers).to_be_hidden()
    page.get_by_label("Ray", exact=True).check()
    workers.fill("-1")
    bench.run()
    expect(bench.notice).to_contain_text("Workers must be at least 1; it was -1")
