"""Stored runs of the Evaluate tab: kept, compared, downloaded, deleted, each visitor's own."""

import os
import time

import pytest
from evaluate_page import (
    arrived,
    begun,
    evaluation_jobs,
    finish,
    models,
    own_page_jobs,
    upload,
    uploaded,
)
from table_model import TableModel

from fillmask_ui.errors import DataError
from fillmask_ui.runs import compare
from fillmask_ui.ui.evaluate import evaluation_jobs as pages
from fillmask_ui.ui.evaluate.evaluate_form import PUBLIC_TOKENS
from fillmask_ui.ui.evaluate.evaluation_jobs import LEFT_SECONDS, Selection


def test_two_stored_runs_are_compared(tmp_path):
    page_jobs = own_page_jobs(tmp_path / "runs")
    names = [
        finish(begun(page_jobs, tmp_path, model=model)).so_far.info.name
        for model in ("table", "noisy")
    ]
    result = page_jobs.result(Selection(*names))
    store = page_jobs.store
    assert result.summary.to_dict() == compare(*(store.open(n) for n in names)).to_dict()
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
    known = models()
    all_jobs = evaluation_jobs(tmp_path / "runs", known=known)
    page_jobs = arrived(all_jobs)
    name = finish(begun(page_jobs, tmp_path)).so_far.info.name
    known["table"].free_calls = len(known["table"].calls)
    other = upload(tmp_path, ["a cat sat on the mat"] * 9, "other.txt")
    first = arrived(all_jobs, "one").begin(uploaded(tmp_path, upload=other))
    assert known["table"].reached.wait(30)
    waiting = arrived(all_jobs, "two").begin(uploaded(tmp_path))
    page_jobs.delete(name)
    known["table"].open.set()
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
