"""What the server keeps for open and closed pages, and for programs."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from datetime import datetime, timedelta
from pathlib import Path

import gradio as gr
import httpx
import pytest
from gradio_client import Client
from serving import free_port, serving
from table_model import TableModel

from fillmask_ui.models import ModelStore
from fillmask_ui.ui import visitors
from fillmask_ui.ui.app import build_app
from fillmask_ui.ui.visitors import PageState, PageStates

ROOT = Path(__file__).parents[2]


@pytest.fixture
def states():
    with gr.Blocks() as demo:
        gr.State("fresh")
        gr.Dropdown(["a"])
    return PageStates(demo)


def ids(states):
    kinds = (gr.State, gr.Dropdown)
    return [own._id for own in states.blocks.blocks.values() if isinstance(own, kinds)]


def moment(ago):
    """So many seconds ago, as Gradio notes it."""
    return datetime.now() - timedelta(seconds=ago)  # noqa: DTZ005


def use(states, page, *, ago=0.0):
    """A page that an event has changed, last used so many seconds ago."""
    value, choice = ids(states)
    states[page][value] = "mine"
    states[page][choice] = gr.Dropdown(["a", "b"], render=False)
    states.time_last_used[page] = moment(ago)
    return states.session_data[page]


def test_a_page_has_values_and_components_of_its_own_and_no_configuration(states):
    value, choice = ids(states)
    assert states["one"][value] == "fresh"
    use(states, "one")
    assert states["one"][value] == "mine"
    assert [own for own, _ in states["one"][choice].choices] == ["a", "b"]
    assert [own for own, _ in states["two"][choice].choices] == ["a"]
    states["one"]._update_value_in_config(choice, "b")
    assert not states["one"].config_values


def test_a_component_that_an_event_left_as_it_is_is_not_kept_twice(states):
    _, choice = ids(states)
    first = states["one"][choice]
    states["one"][choice] = gr.Dropdown(["a"], value="a", render=False)
    assert states["one"][choice] is first
    assert states["one"].blank


def test_what_holds_nothing_of_its_own_is_soon_forgotten(states):
    for page, ago in (("program", 61), ("new", 1)):
        states[page]
        states.time_last_used[page] = moment(ago)
    use(states, "open", ago=100_000)
    states.delete_all_expired_state()
    assert set(states.session_data) == set(states.time_last_used) == {"new", "open"}


def test_closed_pages_are_forgotten_after_an_hour_or_when_there_are_many(states, monkeypatch):
    monkeypatch.setattr(visitors, "MOST_CLOSED", 2)
    for page, ago in (("a", 10), ("b", 5), ("c", 1)):
        use(states, page, ago=ago).is_closed = True
    use(states, "open", ago=9_999)
    states.delete_all_expired_state()
    assert [*states.session_data] == ["b", "c", "open"]
    use(states, "b", ago=3_601)
    states.delete_all_expired_state()
    assert sorted(states.session_data) == ["c", "open"]


def test_no_more_pages_than_the_bound(states, monkeypatch):
    states.capacity = 3
    for page in "abcde":
        use(states, page)
    states["last"]
    assert len(states.session_data) == len(states.time_last_used) == 3


def test_the_page_uses_them_and_programs_leave_nothing_of_their_own():
    demo = build_app(ModelStore(loader=lambda *_, **__: TableModel()), "table")
    with serving(demo) as url:
        client = Client(url, verbose=False, analytics_enabled=False)
        client.predict("A [MASK].", api_name="/predict")
        state = demo.app.state_holder.session_data[client.session_hash]
    assert isinstance(state, PageState)
    assert state.blank
    assert not state.config_values


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
