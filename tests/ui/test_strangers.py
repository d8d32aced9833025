"""What strangers send to a public page that is served: no freeze, no full disk, no hidden word."""

import asyncio
import secrets
import tempfile
import threading
import time
from argparse import Namespace
from contextlib import contextmanager

import httpx
import pytest
from evaluate_page import HeldModel
from serving import serving, started
from table_model import TableModel
from ui.soak import STRANGER, Page, Site, memory_mb

from fillmask_ui.models import ModelStore
from fillmask_ui.ui import job, page, request_guard

INVENTED, MOST_MEGABYTES, MOST_SECONDS = 300, 60.0, 5.0


@contextmanager
def public(model=None, **options):
    """The address of a public page of a table model, and the page itself."""
    model = model or TableModel()
    store = ModelStore(loader=lambda reference, **_: model)
    demo = page.build_app(store, "table", public=True, **options)
    with serving(demo, public=True) as url:
        yield url, demo


@pytest.fixture
def http():
    with httpx.Client(trust_env=False, timeout=300) as client:
        yield client


def soon(true):
    return any(true() or time.sleep(0.1) for _ in range(100))


def heartbeat(url, session):
    return f"{url}gradio_api/heartbeat/{session}"


# ---- Sessions


def test_invented_sessions_cost_no_memory_and_nobody_waits_for_them():
    async def look(client, seconds):
        while True:
            begun = time.monotonic()
            (await client.get("config")).raise_for_status()
            seconds.append(time.monotonic() - begun)
            await asyncio.sleep(0.1)

    async def invent(client):
        """Ask, and leave before there is an answer."""
        with pytest.raises(httpx.ReadTimeout):
            await client.get(f"gradio_api/heartbeat/{secrets.token_hex(8)}", timeout=READING)

    async def attack(url, process):
        limits, seconds = httpx.Limits(max_connections=None), []
        options = {"limits": limits, "timeout": 120, "trust_env": False}
        async with httpx.AsyncClient(base_url=url, **options) as client:
            for _ in range(5):
                (await client.get("/")).raise_for_status()
            before = memory_mb(process)
            looking = asyncio.create_task(look(client, seconds))
            await asyncio.gather(*(invent(client) for _ in range(INVENTED)))
            await asyncio.sleep(3)  # in which Gradio would close them
            looking.cancel()
            return memory_mb(process) - before, max(seconds)

    with started("--public") as (url, server):
        grown, longest = asyncio.run(attack(url, server.pid))
    assert grown < MOST_MEGABYTES
    assert longest < MOST_SECONDS


READING = httpx.Timeout(60, read=1.0)


def test_gradio_hears_of_a_session_once_a_request_names_it(http, monkeypatch):
    left = []
    monkeypatch.setattr(job.Jobs, "forget", lambda _, opened: left.append(opened))
    with public() as (url, demo):
        sessions = demo.server_app.state_holder.session_data
        with pytest.raises(httpx.ReadTimeout):
            http.get(heartbeat(url, "nobody"), timeout=1)
        opened = threading.Event()

        def open_page():
            with http.stream("GET", heartbeat(url, "visitor")) as answer:
                next(answer.iter_lines())
                opened.set()

        beating = threading.Thread(target=open_page)
        beating.start()
        time.sleep(0.2)  # a browser asks for the heartbeat first
        event = {"fn_index": 3, "data": [], "session_hash": "visitor"}
        assert http.post(f"{url}gradio_api/queue/join", json=event).status_code == 200
        beating.join(300)
        assert opened.is_set()
        assert soon(lambda: left == ["visitor"])
        assert [*sessions] == ["visitor"]


def test_sessions_are_bounded_in_all_and_for_one_address(http, monkeypatch):
    monkeypatch.setattr(page, "MOST_SESSIONS", 3)
    monkeypatch.setattr(request_guard, "SESSION_RATE", (0.0, 5))
    with public() as (url, demo):

        def name(session, **headers):
            event = {"fn_index": 3, "data": [], "session_hash": session}
            return http.post(f"{url}gradio_api/queue/join", json=event, headers=headers)

        codes = [name(f"visitor {number}").status_code for number in range(6)]
        assert codes == [200] * 5 + [429]
        assert name("visitor 4").status_code == 200  # which is known
        assert name("visitor 7", **STRANGER).status_code == 200
        assert soon(lambda: len(demo.server_app.state_holder.session_data) == 3)
        for wrong in (5, ["visitor"], {"a": 1}, "v" * 65):
            assert name(wrong).status_code == 400


def test_pages_of_sessions_that_nobody_opened_are_forgotten(monkeypatch):
    monkeypatch.setattr(job, "MOST_PAGES", 3)
    jobs = job.Jobs(public=True)
    first = jobs.page("first")
    for number in range(5):
        jobs.page(str(number))
        assert jobs.page("first") is first  # it still asks
    assert len(jobs._pages) == 3
    jobs.page("5"), jobs.page("6"), jobs.page("7")
    assert jobs.page("first") is not first


# ---- Texts that are pasted


def test_pasted_texts_are_written_in_their_turn_counted_and_few_wait(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(job, "MOST_JOBS", 4)
    held = HeldModel(1, free_calls=0)
    small = "a cat sat on the mat\n" * 5

    async def start(site, text):
        """The notice of an evaluation of pasted texts that a new visitor begins."""
        visitor = Page(site)
        await visitor.open_evaluate()
        texts = {"Texts": "paste", "Texts to paste": text}
        texts |= {"Number of texts": 5, "Max tokens": 64}
        return str(await visitor.event("evaluate-run", texts))

    async def flood(url):
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=300) as client:
            site = Site(Namespace(model=[], pause=0))
            await site.reach(client)
            notices = [await start(site, small)]
            assert await asyncio.to_thread(held.reached.wait, 60)
            much = [f"{number} is much " * 60_000 for number in range(5)]
            notices += [await start(site, text) for text in much]
            monkeypatch.setattr(request_guard, "MOST_OF_ADDRESS", 4_000_000)
            with pytest.raises(httpx.HTTPStatusError, match="413"):
                for _ in range(3):
                    await start(site, "too much " * 90_000)
            return notices

    with public(held) as (url, _):
        try:
            notices = asyncio.run(flood(url))
            waiting = [thread for thread in threading.enumerate() if thread.name == "page-job"]
            written = [path.read_text() for path in tmp_path.rglob("uploads/*-pasted.txt")]
        finally:
            held.open.set()
            held.free_calls = 10**9
    assert written == [f"{small}\n"]  # of the one that runs
    assert len(waiting) == 4
    assert ["runs wait already" in notice for notice in notices] == [False] * 4 + [True] * 2


# ---- Values that no control can hold, and hidden words


def test_a_value_that_no_menu_has_is_a_line_of_the_log(http, capfd, caplog):
    async def open_evaluate(url):
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=300) as client:
            site = Site(Namespace(model=[], pause=0))
            await site.reach(client)
            visitor = Page(site)
            visitor.hash = "visitor"
            await visitor.open_evaluate()
            return visitor.event_of("evaluate-run")

    with public() as (url, _):
        event = asyncio.run(open_evaluate(url))
        hostile = ["no\nchoice <b>"] * len(event["inputs"])
        for data in (hostile, hostile[:2]):
            content = {"fn_index": event["id"], "data": data, "session_hash": "visitor"}
            assert http.post(f"{url}gradio_api/queue/join", json=content).status_code == 200
        completed, parameters = [], {"session_hash": "visitor"}
        with http.stream("GET", f"{url}gradio_api/queue/data", params=parameters) as stream:
            completed = [line for line in stream.iter_lines() if "process_completed" in line]
        for wrong in (
            {"fn_index": 9999, "data": [], "session_hash": "visitor"},
            {"data": {}, "component_id": 9999, "fn_name": "answer", "session_hash": "visitor"},
        ):
            path = "component_server" if "component_id" in wrong else "queue/join"
            assert http.post(f"{url}gradio_api/{path}", json=wrong).status_code == 400
    assert "Traceback" not in capfd.readouterr().err + caplog.text
    assert caplog.text.count("a request was refused: ") == 4
    assert len(completed) == 2
    assert not any('"success":true' in line or "<b>" in line for line in completed)
