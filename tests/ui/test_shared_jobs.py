"""Work that visitors share: told about while it runs, its answers in the order of the questions."""

import threading
import time

import pytest

from fillmask_ui.models import LoadProgress
from fillmask_ui.ui.job import Job, SharedJobs, Slots, Unfinished, Waiting


def in_turn(**options):
    return SharedJobs([Slots()], **options)


def finished(jobs, question, work):
    try:
        return jobs.result(question, work)
    except Unfinished:
        return finished(jobs, question, work)


def state(jobs, question, work):
    with pytest.raises(Unfinished) as unfinished:
        jobs.result(question, work)
    return unfinished.value.state


def test_slow_work_says_what_it_does():
    gate, jobs = threading.Event(), SharedJobs()

    def work(tell):
        tell(LoadProgress("fetching", 0.25, "download", 1, 4))
        assert gate.wait(300)
        return "done"

    waiting = state(jobs, "a", work)
    assert (waiting.message, waiting.fraction) == ("fetching", 0.25)
    gate.set()
    assert finished(jobs, "a", work) == "done"


def test_what_nobody_asks_about_ends_and_is_begun_anew_for_whoever_comes():
    jobs, ended = in_turn(patience_seconds=0.6), threading.Event()

    def endless(report):
        try:
            while True:
                report(Waiting("on"))
                time.sleep(0.02)
        finally:
            ended.set()

    assert state(jobs, "a", endless).message == "on"
    assert ended.wait(300)
    assert finished(jobs, "a", lambda report: "anew") == "anew"


def test_what_fails_is_told_to_whoever_asks_and_begun_anew():
    jobs = SharedJobs()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            finished(jobs, "a", lambda report: 1 / 0)
    assert finished(jobs, "a", lambda report: 2) == 2


def test_whoever_comes_when_too_many_wait_is_asked_to_come_again():
    jobs, gate = in_turn(most=1), threading.Event()

    def held(report):
        gate.wait(300)
        return 1

    assert state(jobs, "a", held).message == ""
    refused = state(jobs, "b", lambda report: 2)
    assert refused == Waiting("Others are computing; your answer begins soon…")
    gate.set()
    assert finished(jobs, "a", held) == 1
    assert finished(jobs, "b", lambda report: 2) == 2


def test_a_wait_says_whose_job_it_is_and_how_long():
    jobs, gate = in_turn(), threading.Event()

    def halfway(report):
        report(Waiting("20 of 40 texts", 0.5))
        assert gate.wait(30)

    with pytest.raises(Unfinished):
        jobs.result("a", halfway, "the figure “Twenty seeds”")
    message = state(jobs, "b", lambda report: 2).message
    assert message.startswith("Waiting for the figure “Twenty seeds”: about ")
    assert message.endswith(" left…")
    gate.set()
    assert finished(jobs, "b", lambda report: 2) == 2


def test_a_long_job_pauses_between_its_steps_while_a_short_one_works():
    short = in_turn()
    gate, steps = threading.Event(), []

    def held(report):
        assert gate.wait(30)
        return "short"

    def long(running):
        for step in range(3):
            steps.append(step)
            yield Waiting("on", step / 3)

    assert state(short, "a", held).message == ""
    job = Job(long, [Slots()], pauses_for=short).begin()
    assert job.wait(0.3) == Waiting("on", 0.0)
    assert steps == [0]
    gate.set()
    assert finished(short, "a", held) == "short"
    while not job.ended:
        time.sleep(0.01)
    assert steps == [0, 1, 2]
