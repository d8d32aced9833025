"""What a server leaves behind."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import httpx
from serving import free_port

ROOT = Path(__file__).parents[2]


def test_nothing_is_left_by_a_server_that_is_told_to_stop(tmp_path):
    port, folder = free_port(), tmp_path / "tmp"
    folder.mkdir()
    environment = os.environ | {"TMPDIR": str(folder), "PYTHONPATH": str(ROOT)}
    environment.pop("GRADIO_TEMP_DIR", None)  # of the pages in this process
    command = [sys.executable, "-m", "fillmask_ui", "--port", str(port), "--public"]
    page = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    url = f"http://127.0.0.1:{port}/gradio_api"
    try:
        deadline = time.monotonic() + 120
        while not answers(f"{url}/app_id"):
            assert time.monotonic() < deadline
            assert page.poll() is None
            time.sleep(0.1)
        (sent,) = httpx.post(f"{url}/upload", files={"files": ("a.txt", b"a b")}).json()
        assert Path(sent).read_text() == "a b"
        assert Path(sent).is_relative_to(folder)
        # An open page does not hold it up.
        urllib.request.urlopen(f"{url}/heartbeat/somebody")
    finally:
        page.send_signal(signal.SIGTERM)
        _, said = page.communicate(timeout=60)
    assert page.returncode == 0, said
    assert not [path for path in folder.rglob("*") if not path.is_dir()]
    assert not [*folder.glob("fillmask-ui-*")]


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False
