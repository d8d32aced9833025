"""Who finds which job: a page that is reloaded its own, and nobody that of a stranger."""

import pytest
from evaluate_page import TEXTS, arrived, begun, evaluation_jobs, finish, models, until, uploaded

from fillmask_ui.ui.evaluate import job as jobs
from fillmask_ui.ui.evaluate import view
from fillmask_ui.ui.evaluate.evaluation_jobs import Selection

PSEUDO = {"metric": "pseudo-perplexity"}
PUBLIC = {"samples": 20, "max_tokens": 64}


@pytest.fixture
def known(monkeypatch):
    """Models that hang after a few calls; whatever was asked a moment ago is not followed."""
    monkeypatch.setattr(jobs, "STATUS_SECONDS", 0.0)
    found = models()
    found["table"].free_calls = 6
    yield found
    found["table"].open.set()


def go_on(known):
    known["table"].free_calls = 10**9
    known["table"].open.set()


def test_a_reloaded_page_shows_its_job_and_can_stop_it(tmp_path, known):
    all_jobs = evaluation_jobs(tmp_path / "runs", known=known)
    first = all_jobs.arrive("before", "ann", "tab1")
    job = begun(first, tmp_path, **PSEUDO)
    assert known["table"].reached.wait(30)
    all_jobs.forget("before")
    again = all_jobs.arrive("after", "ann", "tab1")
    updates = view.taken_up(again)
    shown = next(updates)
    assert shown.busy
    assert f"of {len(TEXTS)} texts" in shown.notice
    assert shown.figures is not None
    assert shown.charts
    assert shown.controls.values["metric"] == "pseudo-perplexity"
    again.cancel()
    *_, last = updates
    assert job.cancelled
    assert "Stopped after" in last.notice
    assert last.busy is False
    assert last.selection.run == last.runs.chosen


def test_a_job_that_ended_while_the_page_was_away_is_shown(tmp_path):
    all_jobs = evaluation_jobs(tmp_path / "runs")
    job = begun(all_jobs.arrive("before", "ann", "tab1"), tmp_path)
    until(lambda: job.ended)
    *_, last = view.taken_up(all_jobs.arrive("after", "ann", "tab1"))
    assert last.selection == Selection(job.status.info.name)
    other = next(view.taken_up(all_jobs.arrive("other", "ann", "tab2")))
    assert other.selection is None


def test_a_page_that_never_had_a_job_opens_as_it_is(tmp_path):
    all_jobs = evaluation_jobs(tmp_path / "runs")
    (update,) = view.taken_up(arrived(all_jobs))
    assert not {name: value for name, value in vars(update).items() if value is not None}


def test_two_pages_of_one_browser_leave_each_other_alone(tmp_path, known):
    all_jobs = evaluation_jobs(tmp_path / "runs", known=known)
    one, two = (all_jobs.arrive(page, "ann", page) for page in ("tab1", "tab2"))
    first = begun(one, tmp_path, **PSEUDO)
    assert known["table"].reached.wait(30)
    second = begun(two, tmp_path, model="noisy")
    assert finish(second)[-1].state == "done"
    assert not first.cancelled
    # Also where the browser copied what a page keeps into a second one.
    copy = all_jobs.arrive("copy", "ann", "tab1")
    third = begun(copy, tmp_path, model="noisy")
    assert finish(third)[-1].state == "done"
    two.cancel()
    assert not first.cancelled
    go_on(known)
    assert finish(first)[-1].state == "done"


def test_a_new_page_takes_up_what_no_page_shows(tmp_path, known, monkeypatch):
    all_jobs = evaluation_jobs(tmp_path / "runs", known=known)
    job = begun(all_jobs.arrive("before", "ann", "tab1"), tmp_path, **PSEUDO)
    assert known["table"].reached.wait(30)
    assert job.followed
    assert all_jobs.arrive("second", "bob", "tab2").take_up() is None
    monkeypatch.setattr(jobs, "_FOLLOWED_SECONDS", 0.0)
    assert all_jobs.arrive("third", "bob", "tab3").take_up() is job
    go_on(known)
    assert finish(job)[-1].state == "done"


def test_on_a_public_page_a_stranger_finds_nothing(tmp_path, known, monkeypatch):
    monkeypatch.setattr(jobs, "_FOLLOWED_SECONDS", 0.0)
    all_jobs = evaluation_jobs(tmp_path / "runs", public=True, known=known)
    ann = all_jobs.arrive("ann1", "ann", "tab1")
    job = ann.begin(uploaded(tmp_path, **PUBLIC, **PSEUDO))
    assert known["table"].reached.wait(30)
    for page in ("tab1", "tab2", ""):
        bob = all_jobs.arrive(f"bob {page}", "bob", page)
        assert bob.take_up() is None
        assert bob.runs().runs == []
        bob.cancel()
    assert not job.cancelled
    ann_later = all_jobs.arrive("ann2", "ann", "tab9")
    assert ann_later.take_up() is job
    assert len(ann_later.runs().runs) == 1
    go_on(known)
    assert finish(job)[-1].state == "done"


def test_a_cancelled_job_is_no_news(tmp_path, known):
    all_jobs = evaluation_jobs(tmp_path / "runs", known=known)
    page_jobs = all_jobs.arrive("before", "ann", "tab1")
    job = begun(page_jobs, tmp_path, **PSEUDO)
    assert known["table"].reached.wait(30)
    page_jobs.cancel()
    assert all_jobs.arrive("after", "ann", "tab1").take_up() is None
    go_on(known)
    until(lambda: job.ended)


def test_everything_after_a_cancel_is_of_the_rows_on_disk(tmp_path, known):
    """Figures, charts, tokens and the list, while the model still hangs."""
    all_jobs = evaluation_jobs(tmp_path / "runs", known=known)
    page_jobs = arrived(all_jobs)
    updates = view.job_updates(page_jobs, lambda: page_jobs.begin(uploaded(tmp_path, **PSEUDO)))
    while not known["table"].reached.is_set():
        next(updates)
    page_jobs.cancel()
    *_, answer, page = updates
    (run,) = page_jobs.runs().runs
    rows = list(run.rows())
    tokens = sum(len(row.cols) for row in rows)
    for shown in (answer, page):
        assert f"Stopped after {len(rows)} of {len(TEXTS)} texts" in shown.notice
    assert f"{tokens:,} tokens of {len(rows)} texts" in page.figures
    assert sum(row[2] for row in page.charts["loss-histogram"].table.rows) == tokens
    assert f"of {tokens}." in page.tokens.html
    assert f'data-value="{len(rows)}"' in page.runs.html
    assert ">stopped<" in page.runs.html
    assert page_jobs.tokens(page.selection, view.TokenFilter()).count == tokens
    go_on(known)
    until(lambda: page_jobs.job.ended)
    again = view.stored(page_jobs, page.selection)
    assert again.figures == page.figures
    assert again.tokens.html == page.tokens.html
