"""The page by two replicas behind one port, as `docs/serving/replicas.py` serves it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from evaluate_page import until
from gradio_client import Client
from recorded.program import ran
from serving import free_port

ROOT = Path(__file__).parents[2]
API = "gradio_api/run/predict"
QUESTION = {"data": ["The cat sat on the [MASK].", "", 3, ""]}
SECONDS = 120


def command(port, model):
    script = ROOT / "docs" / "serving" / "replicas.py"
    return [sys.executable, str(script), "2", "--port", str(port), "--model", model]


@pytest.fixture
def script(tmp_path):
    """The running script; its `url` is where it serves."""
    port, variables = (
        free_port(),
        {"FILLMASK_UI_RUNS": str(tmp_path / "runs"), "PYTHONPATH": str(ROOT)},
    )
    with (tmp_path / "log").open("wb") as log:
        started = subprocess.Popen(
            command(port, "embedded:int8"), env=os.environ | variables, stdout=log, stderr=log
        )
    started.url = f"http://127.0.0.1:{port}/"
    yield started
    started.terminate()
    started.wait(300)


def visitor(url, replica=None):
    """Who keeps cookies as a browser does, one that names a replica among them."""
    cookies = None if replica is None else {"fillmask-replica": str(replica)}
    return httpx.Client(base_url=url, cookies=cookies, timeout=300, trust_env=False)


def app_id(visitor):
    """Which replica answers: each process has its own; None where it died over this request."""
    answer = visitor.get("gradio_api/app_id")
    return None if answer.status_code == 502 else answer.raise_for_status().json()["app_id"]


def answering(url):
    """Ids of the replicas that answer those who belong to one or the other, if any does."""
    app_ids = set()
    for replica in range(2):
        # A new visitor each time: one whose replica is not up stays with the other.
        with visitor(url, replica) as visiting:
            try:
                app_ids.add(app_id(visiting))
            except httpx.HTTPError:  # nothing listens yet, or not this one
                continue
    return app_ids - {None}


def children(script):
    path = Path(f"/proc/{script.pid}/task/{script.pid}/children")
    return [int(child) for child in path.read_text().split()]


def answer_of(visitor):
    return visitor.post(API, json=QUESTION).raise_for_status().json()["data"][0]


def test_two_replicas_answer_stay_with_their_visitors_and_leave_nothing_behind(script):
    until(lambda: len(answering(script.url)) == 2, SECONDS)
    with visitor(script.url, 0) as first_visitor, visitor(script.url, 1) as second_visitor:
        first, second = app_id(first_visitor), app_id(second_visitor)
        assert {app_id(first_visitor) for _ in range(10)} == {first}
        assert {app_id(second_visitor) for _ in range(10)} == {second}
        # Browsers are dealt out in turn, and one that has come stays.
        dealt = []
        for _ in range(4):
            with visitor(script.url) as browser:
                assert "Fill-mask" in browser.get("/").raise_for_status().text
                dealt.append(app_id(browser))
                assert app_id(browser) == dealt[-1]
        assert sorted(dealt) == sorted([first, first, second, second])
        # Both give the same numbers, also through the queue, whose answer is a second request.
        expected = answer_of(first_visitor)
        assert expected["masks"][0]["candidates"]
        assert all(
            answer_of(visiting) == expected for visiting in [first_visitor, second_visitor] * 10
        )
        for _ in range(2):
            client = Client(script.url, verbose=False)
            assert client.predict(*QUESTION["data"], api_name="/predict") == expected

        killed, survivor = children(script)
        os.kill(killed, signal.SIGKILL)
        # Whoever was with it is answered by the other, and soon by a new process. Only what was
        # sent while it died may be lost.
        until(lambda: app_id(first_visitor) == second, SECONDS)
        assert answer_of(first_visitor) == expected
        assert app_id(second_visitor) == second
        until(lambda: len(answering(script.url) - {first}) == 2, SECONDS)
        assert killed not in children(script)

    running = children(script)
    assert survivor in running
    script.terminate()
    assert script.wait(300) in (0, -signal.SIGTERM)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in running), SECONDS)


def test_a_replica_that_cannot_start_ends_the_script():
    variables = {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    done = ran(*command(free_port(), "no/such"), **variables)
    assert done.returncode == 1
    assert "no/such" in done.stderr
    assert "cannot start" in done.stderr
    assert "Traceback" not in done.stderr
