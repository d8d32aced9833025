"""Processes that end in the middle: no row is lost, none comes twice.

The other side of each comparison is a run that nothing disturbed.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest
from features.ray.conftest import (
    TEXTS,
    assert_same,
    kill,
    measured,
    processes,
    wait_for,
    workers_of_this_process,
)

from fillmask_ui.errors import DataError
from fillmask_ui.features.ray.ray_crew import Worker
from fillmask_ui.features.ray.ray_engine import BLOCK_TEXTS
from fillmask_ui.models import load_choice
from fillmask_ui.runs import perform, perform_rest


def test_workers_killed_at_random(engine, store, plan):
    whole = measured(plan, store)
    killed = []
    stop = threading.Event()

    def kill_some():
        chance = random.Random(7)
        while len(killed) < 3 and not stop.wait(chance.uniform(0.5, 2.0)):
            if alive := [pid for pid in workers_of_this_process() if pid not in killed]:
                killed.append(chance.choice(alive))
                kill(killed[-1])

    killer = threading.Thread(target=kill_some)
    killer.start()
    try:
        runs = [measured(plan, store, engine)]
        while len(killed) < 3:  # too quick to be killed so often
            runs.append(measured(plan, store, engine))
    finally:
        stop.set()
        killer.join()
    for run in runs:
        assert_same(run, whole)


def ending(step):
    """A class of workers that end in the second block, or when they load the model."""

    class Ending(Worker):
        def load(self):
            if step == "load":
                os._exit(1)
            super().load()

        def measure(self, block):
            if block[0].id == BLOCK_TEXTS and step == "exit":
                os._exit(1)
            if block[0].id == BLOCK_TEXTS:
                raise MemoryError
            return super().measure(block)

    return Ending


@pytest.mark.parametrize("step", ["exit", "memory"])
def test_a_block_that_ends_its_workers_is_named(engine, store, plan, monkeypatch, step):
    plan = replace(plan, source=replace(plan.source, shuffle=False))
    whole = measured(plan, store)
    monkeypatch.setattr("fillmask_ui.features.ray.ray_crew.Worker", ending(step))
    with pytest.raises(DataError, match=r"texts 64 to 127 .* go on with --resume"):
        measured(plan, store, engine)
    monkeypatch.undo()
    run = store.open("latest")
    assert run.state == "failed"
    assert run.row_count == TEXTS - BLOCK_TEXTS  # all others are measured
    list(perform_rest(run.info.name, store, load_choice, engine))
    assert_same(store.open(run.info.name), whole)


def test_a_model_that_ends_every_worker(engine, store, plan, monkeypatch):
    monkeypatch.setattr("fillmask_ui.features.ray.ray_crew.Worker", ending("load"))
    with pytest.raises(DataError, match=r"while it loaded .* is there memory for the model"):
        measured(plan, store, engine)
    assert store.open("latest").state == "failed"


COMMAND = [sys.executable, "-m", "fillmask_ui", "eval", "--engine", "ray", "--workers", "2"]


def started(plan, store, *more):
    """The command line in a process group of its own, halted once it has stored something.

    The whole run takes three seconds, so without that it may end before a busy test goes on.
    """
    names = set(store.names())
    command = [*COMMAND, "--model", plan.model.reference, "--dataset", plan.source.where, *more]
    environment = {**os.environ, "FILLMASK_UI_RUNS": str(store.root)}
    process = subprocess.Popen(
        command,
        env=environment,
        start_new_session=True,
        # A job in the background of a shell inherits that Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def storing():
        fresh = set(store.names()) - names
        return process.poll() is not None or any(store.open(name).row_count for name in fresh)

    wait_for(storing)
    process.send_signal(signal.SIGSTOP)
    assert process.poll() is None, process.communicate()
    return process


def ray_processes(of):
    names = ("raylet", "gcs_server", "ray::Worker")  # an agent of Ray needs a minute to notice
    return [pid for name in names for pid in processes(name, of)]


def test_a_driver_that_is_killed_and_resumed(engine, store, plan):
    whole = measured(plan, store)
    process = started(plan, store)
    children = ray_processes(process.pid)
    assert children
    process.kill()
    process.communicate()
    wait_for(lambda: not set(children) & set(processes("")))
    name = next(name for name in store.names() if name != whole.info.name)
    assert store.open(name).state == "stopped"
    assert 0 < store.open(name).row_count < TEXTS
    list(perform_rest(name, store, load_choice, engine))
    assert_same(store.open(name), whole)


def test_ctrl_c_keeps_what_is_done_and_leaves_no_process(store, plan):
    process = started(plan, store)
    children = ray_processes(process.pid)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    process.send_signal(signal.SIGCONT)
    _, output = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Traceback" not in output
    name = store.names()[-1]
    assert f"--resume {name}" in output
    assert store.open(name).state == "stopped"
    assert store.open(name).row_count > 0
    wait_for(lambda: not set(children) & set(processes("")))


def test_a_run_that_is_stopped_from_another_thread(engine, store, plan):
    steps = perform(plan, store, load_choice, engine)
    for step in steps:
        if step.rows:
            stop = step.stop
            break
    stop()
    begun = time.monotonic()
    remaining = list(steps)
    assert time.monotonic() - begun < 30
    assert not any(list(step.rows) for step in remaining)
    run = store.open(step.info.name)
    assert run.state == "stopped"
    assert 0 < run.row_count < TEXTS
