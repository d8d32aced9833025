"""Work done aside: told about while it runs, its answers in the order of the questions."""

import threading
import time

from fillmask_ui.models import LoadProgress
from fillmask_ui.ui.background import Done, TasksInTurn, Waiting, run_in_background


def test_slow_work_says_what_it_does():
    gate = threading.Event()

    def work(tell):
        tell(LoadProgress("download", "fetching", 1, 4))
        assert gate.wait(30)
        return "done"

    states = run_in_background(work)
    assert next(states) == Waiting("fetching", 0.25)
    gate.set()
    *waiting, last = states
    assert last == Done("done")
    assert set(waiting) <= {Waiting("fetching", 0.25)}


def finished(tasks, key, work):
    while not isinstance(state := tasks.wait(key, work), Done):
        time.sleep(0.01)
    return state.result


def test_one_task_runs_at_a_time_and_each_gives_its_own():
    tasks, running, most = TasksInTurn(), [], []

    def work(number):
        def run(report):
            running.append(number)
            most.append(len(running))
            time.sleep(0.05)
            running.remove(number)
            return number

        return run

    threads = [
        threading.Thread(target=lambda n=n: results.append(finished(tasks, n, work(n))))
        for n in range(4)
    ]
    results = []
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [0, 1, 2, 3]
    assert set(most) == {1}


def test_what_nobody_asks_about_ends_and_is_begun_anew_for_whoever_comes():
    tasks, ended = TasksInTurn(patience_seconds=0.6), threading.Event()

    def endless(report):
        try:
            while True:
                report(Waiting("on"))
                time.sleep(0.02)
        finally:
            ended.set()

    assert isinstance(tasks.wait("a", endless), Waiting)
    assert ended.wait(30)
    assert finished(tasks, "a", lambda report: "anew") == "anew"


def test_whoever_comes_when_too_many_wait_is_asked_to_come_again():
    tasks, gate = TasksInTurn(most=1), threading.Event()

    def held(report):
        gate.wait(60)
        return 1

    assert isinstance(tasks.wait("a", held), Waiting)
    refused = tasks.wait("b", lambda report: 2)
    assert refused == Waiting("Many are computing at the moment; yours begins soon…")
    gate.set()
    assert finished(tasks, "a", held) == 1
    assert finished(tasks, "b", lambda report: 2) == 2
