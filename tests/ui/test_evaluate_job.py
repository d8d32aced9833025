"""Jobs and runs of the Evaluate tab: the numbers of `evaluate`, kept whatever happens."""

import time

import numpy as np
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

from fillmask_ui.errors import DataError, FillmaskError
from fillmask_ui.evaluation import EvaluationConfig, History, evaluate
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.ui.evaluate import job as jobs
from fillmask_ui.ui.evaluate.evaluation_jobs import Selection

PSEUDO = {"metric": "pseudo-perplexity"}


def test_a_job_ends_with_the_numbers_of_evaluate(tmp_path):
    last = finish(begun(own_page_jobs(tmp_path / "runs"), tmp_path))[-1]
    assert last.state == "done"
    assert last.summary.to_dict() == direct().to_dict()
    assert last.history[-1].means[0] == pytest.approx(last.summary.model.mean_nll_nats)
    assert last.history[-1].texts == last.summary.texts


def test_two_models_end_with_the_verdict_of_evaluate(tmp_path):
    last = finish(begun(own_page_jobs(tmp_path / "runs"), tmp_path, baseline="noisy"))[-1]
    expected = direct(baseline=TableModel(1, noise=0.3))
    assert last.summary.to_dict() == expected.to_dict()
    assert last.summary.comparison.verdict == expected.comparison.verdict


def test_a_cancelled_job_stops_soon_keeps_its_rows_and_resumes_to_the_same_digits(tmp_path):
    known = models()
    known["table"].free_calls = 20
    page_jobs = own_page_jobs(tmp_path / "runs", known=known)
    job = begun(page_jobs, tmp_path, **PSEUDO)
    known["table"].free_calls = len(known["table"].calls) + 1
    assert known["table"].reached.wait(30)
    page_jobs.cancel()
    last = finish(job)[-1]  # a model that hung to its end would make the job fail
    assert last.state == "stopped"
    (run,) = page_jobs.runs().runs
    assert run.row_count < len(TEXTS)
    # The old job still hangs in its last batch: the new one waits for it.
    job = page_jobs.resume(run.info.name)
    until(lambda: "before to stop" in job.status.message)
    known["table"].free_calls = 10**9
    known["table"].open.set()
    resumed = finish(job)[-1]
    assert resumed.state == "done"
    config = EvaluationConfig("pseudo-perplexity")
    assert resumed.summary.to_dict() == direct(config).to_dict()
    assert resumed.history[-1].texts == resumed.summary.texts


def test_a_job_that_nobody_watches_stops_by_itself(tmp_path, monkeypatch):
    known = models()
    known["table"].free_calls = 1
    page_jobs = own_page_jobs(tmp_path / "runs", known=known)
    begun(page_jobs, tmp_path, **PSEUDO)
    assert known["table"].reached.wait(30)
    monkeypatch.setattr(jobs, "ABANDONED_SECONDS", 0.05)
    time.sleep(0.1)
    known["table"].open.set()
    (run,) = page_jobs.runs().runs
    until(lambda: run.state == "stopped")
    assert page_jobs.store.open(run.info.name).info.state == "stopped"


def test_a_run_is_stopped_at_once_though_the_model_hangs(tmp_path):
    """What hangs is dropped: not a row comes after the answer, and another may go on."""
    known = models()
    known["table"].free_calls = 6
    page_jobs = own_page_jobs(tmp_path / "runs", known=known)
    job = begun(page_jobs, tmp_path, **PSEUDO)
    assert known["table"].reached.wait(30)
    page_jobs.cancel()
    (run,) = page_jobs.runs().runs
    assert (run.state, run.info.state) == ("stopped", "stopped")
    rows = run.row_count
    assert 0 < rows < len(TEXTS)
    known["table"].open.set()
    known["table"].free_calls = 10**9
    until(lambda: job.ended)
    assert job.status.state == "stopped"
    (run,) = page_jobs.runs().runs
    assert (run.info.state, run.row_count) == ("stopped", rows)
    assert finish(page_jobs.resume(run.info.name))[-1].state == "done"


def test_a_job_outlives_its_follower(tmp_path):
    known = models()
    known["table"].free_calls = 3
    page_jobs = own_page_jobs(tmp_path / "runs", known=known)
    job = begun(page_jobs, tmp_path, **PSEUDO)
    statuses = jobs.follow(job)
    next(statuses)
    statuses.close()
    assert known["table"].reached.wait(30)
    known["table"].open.set()
    assert finish(job)[-1].state == "done"


def test_news_come_while_it_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "STATUS_SECONDS", 0.0)
    known = models()
    known["table"].free_calls = 6
    page_jobs = own_page_jobs(tmp_path / "runs", known=known)
    job = begun(page_jobs, tmp_path, **PSEUDO)
    assert known["table"].reached.wait(30)
    status = job.status
    assert status.state == "running"
    assert status.expected == len(TEXTS)
    assert 0 < status.fraction < 1
    assert status.seconds_left > 0
    assert status.summary.model.tokens > 0
    known["table"].open.set()
    assert finish(job)[-1].state == "done"


def test_jobs_beyond_the_slots_wait_and_can_be_cancelled(tmp_path):
    known = models()
    known["table"].free_calls = 0
    all_jobs = evaluation_jobs(tmp_path / "runs", known=known, public=True)
    choices = {"samples": 20, "max_tokens": 64}
    first = arrived(all_jobs, "one").begin(uploaded(tmp_path, **choices))
    assert known["table"].reached.wait(30)
    two = arrived(all_jobs, "two")
    second = two.begin(uploaded(tmp_path, **choices))
    until(lambda: "Waiting" in second.status.message)
    two.cancel()
    assert finish(second)[-1].state == "stopped"
    assert two.runs().runs == []
    known["table"].open.set()
    assert finish(first)[-1].state == "done"


def test_a_second_job_of_one_visitor_stops_the_first(tmp_path):
    known = models()
    known["table"].free_calls = 1
    page_jobs = own_page_jobs(tmp_path / "runs", known=known)
    first = begun(page_jobs, tmp_path)
    second = begun(page_jobs, tmp_path, model="noisy")
    assert first.cancelled
    known["table"].open.set()
    assert finish(second)[-1].state == "done"


@pytest.mark.parametrize(
    ("texts", "choices", "said"),
    [
        ([], {}, "empty"),
        (["", "  "], {}, "blank"),
        (["a cat"], {"model": "unknown"}, "no model 'unknown'"),
        (["a cat"], {"max_tokens": 1000}, "the model takes at most 64"),
        (["a cat"], {"baseline": "letters"}, "different tokenizers"),
        (["zzz", "qqq"], {}, "no text could be measured"),
        (["a cat"], {"column": "text"}, "plain text has no column"),
    ],
)
def test_bad_input_is_said_and_leaves_nothing_behind(tmp_path, texts, choices, said):
    page_jobs = own_page_jobs(tmp_path / "runs")
    choices = {"upload": upload(tmp_path, texts, "bad.txt")} | choices
    try:
        last = finish(begun(page_jobs, tmp_path, **choices))[-1]
    except FillmaskError as error:
        message = str(error)
    else:
        assert last.state == "failed"
        message = last.message
    assert said in message


def test_a_model_near_chance_is_said(tmp_path):
    last = finish(begun(own_page_jobs(tmp_path / "runs"), tmp_path, model="chance"))[-1]
    assert any("near chance" in alarm for alarm in last.summary.alarms)


def test_tokenizers_that_differ_are_compared_by_character(tmp_path):
    page_jobs = own_page_jobs(tmp_path / "runs")
    last = finish(begun(page_jobs, tmp_path, baseline="letters", **PSEUDO))[-1]
    assert last.summary.comparison.unit == "character"
    assert page_jobs.result(Selection(last.info.name)).history == last.history


def test_a_run_that_is_done_cannot_be_resumed(tmp_path):
    page_jobs = own_page_jobs(tmp_path / "runs")
    last = finish(begun(page_jobs, tmp_path))[-1]
    with pytest.raises(DataError, match="nothing is left"):
        page_jobs.resume(last.info.name)


def test_a_run_started_on_the_command_line_goes_on_here(tmp_path):
    """The two faces write the same run.json; options of `load_model` are handed on."""
    from fillmask_ui.runs import prepare_info, start
    from fillmask_ui.texts import TextSource

    asked = []
    session_model = TableModel(1)

    def load(choice, **_):
        asked.append(choice)
        return session_model

    page_jobs = own_page_jobs(tmp_path / "runs")
    page_jobs.session.store._loader = load
    source = TextSource("file", upload(tmp_path), shuffle=False)
    info = prepare_info(
        EvaluationConfig(),
        session_model,
        texts={**source.to_dict(), "signature": str(source)},
        choices={
            "model": {"reference": "table", "runtime": "torch", "threads": 2, "dtype": None},
            "baseline": None,
        },
    )
    with start(page_jobs.store, info) as recorder:
        name = recorder.name
    last = finish(page_jobs.resume(name))[-1]
    assert last.state == "done"
    assert asked == [ModelChoice("table", runtime="torch", threads=2)]
    assert last.summary.model.mean_nll_nats == direct().model.mean_nll_nats


def test_on_a_public_page_other_models_are_refused(tmp_path):
    all_jobs = evaluation_jobs(tmp_path / "runs", public=True)
    choices = uploaded(tmp_path, samples=10, max_tokens=64, model="/etc/passwd")
    last = finish(arrived(all_jobs, "one").begin(choices))[-1]
    assert last.state == "failed"
    assert "not offered" in last.message


def test_a_fault_of_the_program_ends_the_job_with_a_message(tmp_path, monkeypatch):
    class Broken(HeldModel):
        def logits_at(self, *inputs):
            raise ZeroDivisionError("a bug")

    monkeypatch.setattr("threading.excepthook", lambda _: None)  # the log of the server
    page_jobs = own_page_jobs(tmp_path / "runs", known={"table": Broken(1)})
    last = finish(begun(page_jobs, tmp_path))[-1]
    assert last.state == "failed"
    assert "this is a bug of fillmask-ui: ZeroDivisionError" in last.message
    assert [run.state for run in page_jobs.runs().runs] == ["stopped"]


def test_the_history_is_the_mean_of_the_rows_so_far():
    rows = [row for row in evaluate(TableModel(1), TEXTS) if hasattr(row, "scores")]
    history = History()
    for row in rows:
        history.add(row)
    for entry in history.means():
        losses = np.concatenate([row.scores.nll_nats for row in rows[: entry.texts]])
        assert entry.means[0] == pytest.approx(losses.mean())
    assert history.means()[-1].texts == len(rows)


def test_a_long_history_is_thinned(monkeypatch):
    monkeypatch.setattr("fillmask_ui.evaluation.running_summary.MOST_MEANS", 8)
    history = History()
    rows = [row for row in evaluate(TableModel(1), TEXTS) if hasattr(row, "scores")]
    for row in rows:
        history.add(row)
    found = [entry.texts for entry in history.means()]
    assert len(found) <= 9
    assert found == sorted(set(found))
    assert found[-1] == len(rows)
