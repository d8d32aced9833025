"""The page as a whole: what it loads, opens and leaves behind, how it starts."""

import asyncio
import json
import os
import re
import runpy
import subprocess
import sys
import time
import urllib.request
from functools import partial
from pathlib import Path

import gradio as gr
import httpx
import pytest
from gradio import networking
from gradio.state_holder import SessionState
from recorded.program import ran
from serving import serving, started
from table_model import TableModel

from fillmask_ui.errors import ModelError, NetworkError
from fillmask_ui.models import ModelStore
from fillmask_ui.ui import page
from fillmask_ui.ui.page import build_app, launch_options

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def store():
    return ModelStore(loader=lambda reference, **_: TableModel())


def test_the_space_has_its_page_at_the_top_of_app_py():
    assert isinstance(runpy.run_path(str(ROOT / "app.py"))["demo"], gr.Blocks)


def test_a_command_of_app_py_builds_no_page():
    program = (
        "import runpy, sys\n"
        f"sys.argv = [{str(ROOT / 'app.py')!r}, 'predict', 'The opposite of hot is [MASK].']\n"
        "try:\n    runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit as end:\n    print(end.code or 0, 'gradio' in sys.modules)\n"
    )
    done = ran(sys.executable, "-c", program, cwd=ROOT)
    assert done.stderr == ""
    assert "cold" in done.stdout
    assert done.stdout.splitlines()[-1] == "0 False"


def test_a_page_that_answers_late_is_waited_for(store, monkeypatch):
    monkeypatch.setattr(networking, "url_ok", lambda url: False)  # as Gradio asks
    late = iter([False, False, True])
    monkeypatch.setattr(page, "url_ok", lambda url: next(late))
    with serving(build_app(store, "table")) as url:
        assert urllib.request.urlopen(url).status == 200
    monkeypatch.setattr(page, "url_ok", lambda url: False)
    demo = build_app(store, "table")
    with pytest.raises(NetworkError, match="has started, but http"), serving(demo):
        pass
    assert not demo.is_running


def test_a_public_page_is_hardened(store):
    demo = build_app(store, "table", public=True)
    assert demo._queue.max_size == 64
    assert demo.api_open is False
    assert demo.analytics_enabled is False
    options = launch_options(public=True)
    assert options["run_history"] is False
    assert options["ssr_mode"] is False
    assert options["enable_monitoring"] is False
    assert options["max_threads"] <= 16
    assert "allowed_paths" not in options
    assert "share" not in options


def test_a_default_model_that_cannot_load_is_said_on_the_page_and_stops_nothing():
    def refuse(*_, **__):
        raise ModelError("no such model")

    assert isinstance(build_app(ModelStore(loader=refuse), "nowhere"), gr.Blocks)


def test_what_the_browser_gets_first_is_small_and_kept(served):
    """Of the sizes: an outside measure is what the browser receives, as httpx counts it."""
    with httpx.Client(base_url=served.url, headers={"accept-encoding": "gzip"}) as client:
        page = client.get("/")
        assert page.headers["content-encoding"] == "gzip"
        assert page.num_bytes_downloaded < 60_000
        (address,) = re.findall(r"\./(page-\w+\.js)", page.text)
        script = client.get(address)
        assert ".fm-header" in script.text and "window.fillmask" in script.text
        assert script.headers["cache-control"].endswith("immutable")
        assert client.head("/").status_code == 200
        assert len(client.get("/config").json()["components"]) <= 130


def test_scripts_ask_by_an_address_of_their_own(served):
    """It starts no session of Gradio; what is asked wrongly gets an answer."""
    with httpx.Client(base_url=served.url, timeout=300) as client:
        answer = client.post("/ask/answer", json={"text": "the cat [MASK].", "model": "table"})
        assert answer.json()["mask"]["candidates"]
        assert client.post("/ask/nothing", json={}).status_code == 404
        assert client.post("/ask/answer", content="{").status_code == 400
        assert client.post("/ask/answer", json={"top_k": 0}).json()["kind"] == "error"


def test_the_page_starts_while_the_cores_are_busy(store):
    """Gradio, which asks it for 3 s, would wait longer if it wrote the whole page for that."""
    demo, burning = build_app(store, "table"), []
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()

    async def burn():
        burning.extend(
            subprocess.Popen([sys.executable, "-ISc", "while True: pass"]) for _ in range(60)
        )

    demo.extra_startup_events.append(burn)  # once the server listens, before it is asked
    try:
        if cores:  # two, however many there are; later threads and processes have the same
            os.sched_setaffinity(0, [*cores][:2])
        with serving(demo) as url:
            assert urllib.request.urlopen(urllib.request.Request(url, method="HEAD")).status == 200
            for process in burning:
                process.kill()
            assert len(burning) == 60
            assert b"</gradio-app>" in urllib.request.urlopen(url).read()
    finally:
        for process in burning:
            process.kill()
        if cores:
            os.sched_setaffinity(0, cores)


PARIS = "The capital of France is [MASK]."


@pytest.mark.parametrize(
    "data", [[f"{PARIS} \ud800", "", 5, ""], [PARIS, "", 5, "\ud800"], [PARIS, "\ud800", 5, ""]]
)
def test_half_a_character_gets_an_answer_that_can_be_sent(served, data):
    """The Python client refuses to send one; a browser sends it as an escape."""
    url = f"{served.url}gradio_api/call/predict"
    body = json.dumps({"data": data}).encode("ascii")
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        event = json.load(answer)["event_id"]
    with urllib.request.urlopen(f"{url}/{event}", timeout=300) as answer:
        body = answer.read().decode("utf-8")
    assert "event: error" in body
    assert "ud800" in body.lower() or "u+d800" in body.lower()


def test_nothing_is_left_by_a_server_that_is_told_to_stop(tmp_path):
    folder = tmp_path / "tmp"
    folder.mkdir()
    environment = os.environ | {"TMPDIR": str(folder), "PYTHONPATH": str(ROOT)}
    environment.pop("GRADIO_TEMP_DIR", None)  # of the pages in this process
    with started("--public", env=environment) as (url, page):
        (sent,) = httpx.post(f"{url}gradio_api/upload", files={"files": ("a.txt", b"a b")}).json()
        assert Path(sent).read_text() == "a b"
        assert Path(sent).is_relative_to(folder)
        # An open page does not hold it up.
        urllib.request.urlopen(f"{url}gradio_api/heartbeat/somebody")
    assert page.returncode == 0
    assert not [path for path in folder.rglob("*") if not path.is_dir()]
    assert not [*folder.glob("fillmask-ui-*")]


def test_a_session_builds_one_tab_after_the_other():
    """Gradio walks over the components of a session while another thread would add some."""
    running, most = [], []

    def build(name):
        running.append(name)
        most.append(len(running))
        time.sleep(0.2)
        gr.HTML(name)
        running.remove(name)

    with page._Page() as demo:
        openers = [gr.HTML(), gr.HTML()]
        for number, opener in enumerate(openers):
            gr.render(triggers=[opener.submit], queue=False)(partial(build, str(number)))
    state = SessionState(demo)

    async def both():
        calls = [demo.process_api(block_fn=fn, inputs=[], state=state) for fn in demo.fns.values()]
        return await asyncio.gather(*calls)

    assert all("render_config" in answer for answer in asyncio.run(both()))
    assert most == [1, 1]
