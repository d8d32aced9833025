"""Jobs of the Evaluate tab and their runs: cancelled, resumed, compared, deleted, kept apart."""

import os
import time
from dataclasses import asdict

import pytest
from evaluate_page import (
    TEXTS,
    HeldModel,
    arrived,
    begun,
    direct,
    evaluation_jobs,
    finish,
    models,
    own_page_jobs,
    until,
    upload,
    uploaded,
)
from table_model import TableModel

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.runs import compare_runs, prepare_info, start
from fillmask_ui.texts import TextSource
from fillmask_ui.ui import job as jobs
from fillmask_ui.ui.evaluate import evaluation_jobs as pages
from fillmask_ui.ui.evaluate.evaluate_form import PUBLIC_TOKENS
from fillmask_ui.ui.evaluate.evaluation_jobs import LEFT_SECONDS, Selection

PSEUDO = {"metric": "pseudo-perplexity"}
PUBLIC = {"samples": 20, "max_tokens": 64}


@pytest.fixture
def gated():
    """Models of which `table` hangs after a few calls."""
    gated = models()
    gated["table"].free_calls = 6
    yield gated
    gated["table"].open.set()


def go_on(gated):
    gated["table"].free_calls = 10**9
    gated["table"].open.set()


def test_a_cancelled_job_stops_soon_keeps_its_rows_and_resumes_to_the_same_digits(tmp_path, gated):
    page_jobs = own_page_jobs(tmp_path / "runs", loaded_models=gated)
    job = begun(page_jobs, tmp_path, **PSEUDO)
    assert gated["table"].reached.wait(300)
    page_jobs.cancel()
    last = finish(job)  # a model that hung to its end would make the job fail
    assert last.state == "stopped"
    (run,) = page_jobs.runs().values()
    assert run.rows < len(TEXTS)
    # The old job still hangs in its last batch: the new one waits for it.
    job = page_jobs.resume(run.run)
    until(lambda: "before to stop" in job.status.message)
    go_on(gated)
    resumed = finish(job)
    assert resumed.state == "done"
    config = EvaluationConfig("pseudo-perplexity")
    assert resumed.so_far.summary.to_dict() == direct(config).to_dict()
    assert resumed.so_far.history[-1].texts == resumed.so_far.summary.texts


def test_on_a_public_page_a_job_that_nobody_watches_stops_by_itself(tmp_path, gated, monkeypatch):
    monkeypatch.setattr(jobs, "ABANDONED_SECONDS", 1.0)  # longer than a busy machine pauses
    page_jobs = own_page_jobs(tmp_path / "runs", loaded_models=gated, public=True)
    job = begun(page_jobs, tmp_path, **PSEUDO, **PUBLIC)
    until(lambda: gated["table"].reached.is_set() or job.poll().ended)
    time.sleep(1.1)
    gated["table"].open.set()
    (name,) = page_jobs.runs()
    until(lambda: page_jobs.store.open(name).state == "stopped")
    assert page_jobs.store.open(name).info.state == "stopped"


def test_jobs_beyond_the_slots_wait_and_can_be_cancelled(tmp_path, gated):
    all_jobs = evaluation_jobs(tmp_path / "runs", loaded_models=gated, public=True)
    first = arrived(all_jobs, "one").begin(uploaded(tmp_path, **PSEUDO, **PUBLIC))
    assert gated["table"].reached.wait(300)
    two = arrived(all_jobs, "two")
    second = two.begin(uploaded(tmp_path, **PUBLIC))
    until(lambda: "Waiting" in second.status.message)
    two.cancel()
    assert finish(second).state == "stopped"
    assert two.runs() == {}
    go_on(gated)
    assert finish(first).state == "done"


def test_a_run_started_on_the_command_line_goes_on_here(tmp_path):
    """The two faces write the same run.json; options of `load_model` are handed on."""
    loaded_choices, session_model = [], TableModel(1)

    def load(choice, **_):
        loaded_choices.append(choice)
        return session_model

    page_jobs = own_page_jobs(tmp_path / "runs")
    page_jobs.session.store._loader = load
    source = TextSource("file", upload(tmp_path), shuffle=False)
    texts = {**asdict(source), "signature": str(source)}
    choice = {"reference": "table", "runtime": "torch", "threads": 2, "dtype": None}
    choices = {"model": choice, "baseline": None}
    info = prepare_info(EvaluationConfig(), session_model, texts=texts, choices=choices)
    with start(page_jobs.store, info) as recorder:
        name = recorder.name
    last = finish(page_jobs.resume(name))
    assert last.state == "done"
    assert loaded_choices == [ModelChoice("table", runtime="torch", threads=2)]
    assert last.so_far.summary.model.mean_nll_nats == direct().model.mean_nll_nats


def test_a_fault_of_the_program_ends_the_job_with_a_message(tmp_path, monkeypatch):
    class Broken(HeldModel):
        def logits_at(self, *inputs):
            raise ZeroDivisionError("a bug")

    monkeypatch.setattr("threading.excepthook", lambda _: None)  # the log of the server
    page_jobs = own_page_jobs(tmp_path / "runs", loaded_models={"table": Broken(1)})
    last = finish(begun(page_jobs, tmp_path))
    assert last.state == "failed"
    assert "this is a bug of fillmask-ui: ZeroDivisionError" in last.message
    assert [run.state for run in page_jobs.runs().values()] == ["stopped"]


def test_on_a_public_page_a_stranger_finds_nothing(tmp_path, gated, monkeypatch):
    monkeypatch.setattr(jobs, "FOLLOWED_SECONDS", 0.0)
    all_jobs = evaluation_jobs(tmp_path / "runs", public=True, loaded_models=gated)
    ann = all_jobs.arrive("ann1", "ann", "tab1")
    job = ann.begin(uploaded(tmp_path, **PUBLIC, **PSEUDO))
    assert gated["table"].reached.wait(300)
    for page in ("tab1", "tab2", ""):
        bob = all_jobs.arrive(f"bob {page}", "bob", page)
        assert bob.take_up() is None
        assert bob.runs() == {}
        bob.cancel()
    assert not job.cancelled
    ann_later = all_jobs.arrive("ann2", "ann", "tab9")
    assert ann_later.take_up() is job
    assert len(ann_later.runs()) == 1
    go_on(gated)
    assert finish(job).state == "done"


def test_two_stored_runs_are_compared(tmp_path):
    page_jobs = own_page_jobs(tmp_path / "runs")
    names = [
        finish(begun(page_jobs, tmp_path, model=model)).so_far.info.name
        for model in ("table", "noisy")
    ]
    result = page_jobs.result(Selection(*names))
    store = page_jobs.store
    assert (
        result.summary.to_dict()
        == compare_runs(*(store.open(n) for n in reversed(names))).to_dict()
    )
    assert result.info.baseline["name"] == TableModel(1, noise=0.3).signature.name
    assert [c.reference for c in page_jobs.models(Selection(*names))] == ["table", "noisy"]


def test_deleting_a_run_takes_its_upload_and_not_that_of_another(tmp_path):
    page_jobs = own_page_jobs(tmp_path / "runs")
    first, second = (finish(begun(page_jobs, tmp_path)).so_far.info.name for _ in range(2))
    uploads = tmp_path / "runs" / "uploads"
    assert page_jobs.delete(first) == first
    assert len(list(uploads.iterdir())) == 1
    page_jobs.delete(second)
    assert not list(uploads.iterdir())
    assert page_jobs.runs() == {}


def test_an_upload_stays_for_a_job_that_has_no_run_yet(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "SLOTS", 1)
    gated = models()
    all_jobs = evaluation_jobs(tmp_path / "runs", loaded_models=gated)
    page_jobs = arrived(all_jobs)
    name = finish(begun(page_jobs, tmp_path)).so_far.info.name
    gated["table"].free_calls = len(gated["table"].calls)
    path = upload(tmp_path, ["a cat sat on the mat"] * 9, "other.txt")
    first = arrived(all_jobs, "one").begin(uploaded(tmp_path, upload=path))
    assert gated["table"].reached.wait(300)
    waiting = arrived(all_jobs, "two").begin(uploaded(tmp_path))
    page_jobs.delete(name)
    gated["table"].open.set()
    assert [finish(job).state for job in (first, waiting)] == ["done", "done"]
    page_jobs.delete(waiting.status.so_far.info.name)
    assert [path.name[13:] for path in (tmp_path / "runs" / "uploads").iterdir()] == ["other.txt"]


def test_files_to_download_do_not_pile_up(tmp_path):
    all_jobs = evaluation_jobs(tmp_path / "runs")
    page_jobs = arrived(all_jobs)
    name = finish(begun(page_jobs, tmp_path)).so_far.info.name
    table = page_jobs.download(Selection(name), "csv")
    files = [page_jobs.download(Selection(name), "json") for _ in range(3)]
    assert [path.exists() for path in (table, *files)] == [True, False, False, True]
    page_jobs.close()
    assert not table.exists()
    assert not files[-1].exists()


def test_visitors_of_a_public_page_do_not_see_each_other(tmp_path):
    all_jobs = evaluation_jobs(tmp_path / "runs", public=True)
    choices = uploaded(tmp_path, samples=10, max_tokens=PUBLIC_TOKENS // 2)
    name = finish(arrived(all_jobs, "one").begin(choices)).so_far.info.name
    assert [*arrived(all_jobs, "one").runs()] == [name]
    assert arrived(all_jobs, "two").runs() == {}
    with pytest.raises(DataError):
        arrived(all_jobs, "two").result(Selection(name))
    for strange in ("", "../one", "a/b"):
        with pytest.raises(DataError, match="reload"):
            arrived(all_jobs, strange).runs()


def test_what_visitors_left_hours_ago_is_removed(tmp_path):
    all_jobs = evaluation_jobs(tmp_path / "runs", public=True)
    choices = uploaded(tmp_path, samples=5, max_tokens=64)
    finish(arrived(all_jobs, "old").begin(choices))
    finish(arrived(all_jobs, "new").begin(choices))
    long_ago = time.time() - LEFT_SECONDS - 60
    os.utime(arrived(all_jobs, "old").store.root, (long_ago, long_ago))
    finish(arrived(all_jobs, "new").begin(choices))
    assert arrived(all_jobs, "old").runs() == {}
    assert len(arrived(all_jobs, "new").runs()) == 2


def test_a_merged_text_is_warned_of_while_there_are_no_figures(tmp_path, gated):
    gated["table"].free_calls = 0
    path = tmp_path / "merged.csv"
    path.write_text('text\n"the cat sat .\nthe dog ran ."\nthe cat sat on the mat .\n')
    page_jobs = own_page_jobs(tmp_path / "runs", loaded_models=gated)
    job = begun(page_jobs, tmp_path, upload=str(path), samples=0, **PSEUDO)
    assert gated["table"].reached.wait(300)
    until(lambda: "0 texts" in job.status.message)
    warning = "merged.csv, line 3: a text has a tab or line end inside, 'the cat sat ."
    assert warning in job.status.message
    assert str(tmp_path) not in job.status.message
    assert job.status.so_far.summary is None
    go_on(gated)
    assert warning in finish(job).so_far.info.notes[0]
