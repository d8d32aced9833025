"""The page by two replicas behind one port, as `docs/serving/replicas.py` serves it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from gradio_client import Client
from serving import free_port

SCRIPT = Path(__file__).parents[2] / "docs" / "serving" / "replicas.py"
API = "gradio_api/run/predict"
QUESTION = {"data": ["The cat sat on the [MASK].", "", 3, ""]}
PATIENCE_SECONDS = 120
OFFLINE = {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(SCRIPT.parents[2])}


@dataclass
class Served:
    url: str
    script: subprocess.Popen[bytes]

    def visitor(self, replica: int | None = None) -> httpx.Client:
        """Who keeps cookies as a browser does, one that names a replica among them."""
        cookies = None if replica is None else {"fillmask-replica": str(replica)}
        return httpx.Client(base_url=self.url, cookies=cookies, timeout=60, trust_env=False)

    def answering(self) -> set[int]:
        """Ids of the replicas that answer those who belong to one or the other, if any does."""
        found = set[int]()
        for replica in range(2):
            # A new visitor each time: one whose replica is not up stays with the other.
            with self.visitor(replica) as visitor:
                try:
                    answer = visitor.get("gradio_api/app_id")
                except httpx.ConnectError:  # nothing listens yet
                    return found
                if answer.status_code == 200:
                    found.add(answer.json()["app_id"])
        return found

    def replicas(self) -> list[int]:
        """Ids of the processes that the script has started."""
        children = f"/proc/{self.script.pid}/task/{self.script.pid}/children"
        return [int(child) for child in Path(children).read_text().split()]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    port = free_port()
    command = [sys.executable, str(SCRIPT), "2", "--port", str(port), "--model", "embedded:int8"]
    environment = os.environ | {
        "FILLMASK_UI_RUNS": str(tmp_path / "runs"),
        "PYTHONPATH": str(SCRIPT.parents[2]),
    }
    with (tmp_path / "log").open("wb") as log:
        script = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield Served(f"http://127.0.0.1:{port}/", script)
    finally:
        script.terminate()
        script.wait(30)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def app_id(visitor: httpx.Client) -> int:
    """Which replica answers: each process has its own."""
    return visitor.get("gradio_api/app_id").raise_for_status().json()["app_id"]


def app_id_or_none(visitor: httpx.Client) -> int | None:
    """None where the replica died over this request."""
    answer = visitor.get("gradio_api/app_id")
    return None if answer.status_code == 502 else answer.raise_for_status().json()["app_id"]


def test_two_replicas_answer_stay_with_their_visitors_and_leave_nothing_behind(
    served: Served,
) -> None:
    until(lambda: len(served.answering()) == 2)
    with served.visitor(0) as one, served.visitor(1) as two:
        first, second = app_id(one), app_id(two)
        assert {app_id(one) for _ in range(10)} == {first}
        assert {app_id(two) for _ in range(10)} == {second}
        # Browsers are dealt out in turn, and one that has come stays.
        dealt = []
        for _ in range(4):
            with served.visitor() as browser:
                assert "Fill-mask" in browser.get("/").raise_for_status().text
                dealt.append(app_id(browser))
                assert app_id(browser) == dealt[-1]
        assert sorted(dealt) == sorted([first, first, second, second])
        # Both give the same numbers, also through the queue, whose answer is a second request.
        expected = one.post(API, json=QUESTION).raise_for_status().json()["data"][0]
        assert expected["masks"][0]["candidates"]
        for _ in range(10):
            for visitor in (one, two):
                answer = visitor.post(API, json=QUESTION).raise_for_status()
                assert answer.json()["data"][0] == expected
        for _ in range(2):
            client = Client(served.url, verbose=False)
            assert client.predict(*QUESTION["data"], api_name="/predict") == expected

        killed, other = served.replicas()
        os.kill(killed, signal.SIGKILL)
        # Whoever was with it is answered by the other, and soon by a new process. Only what was
        # sent while it died may be lost.
        until(lambda: app_id_or_none(one) == second)
        assert one.post(API, json=QUESTION).raise_for_status().json()["data"][0] == expected
        assert app_id(two) == second
        until(lambda: len(served.answering() - {first}) == 2)
        assert killed not in served.replicas()

    running = served.replicas()
    assert other in running
    served.script.terminate()
    assert served.script.wait(30) in (0, -signal.SIGTERM)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in running))


def test_a_replica_that_cannot_start_ends_the_script() -> None:
    command = [sys.executable, str(SCRIPT), "2", "--port", str(free_port()), "--model", "no/such"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=os.environ | OFFLINE
    )
    assert done.returncode == 1
    assert "no/such" in done.stderr
    assert "cannot start" in done.stderr
    assert "Traceback" not in done.stderr
