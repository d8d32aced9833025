"""Which requests the page refuses before Gradio sees them."""

from __future__ import annotations

import httpx
import pytest
from serving import serving
from table_model import TableModel

from fillmask_ui.models import ModelStore
from fillmask_ui.ui.app import build_app
from fillmask_ui.ui.gate import LONGEST_ADDRESS, hosts_of


@pytest.fixture(scope="module")
def url():
    store = ModelStore(loader=lambda reference, **_: TableModel())
    with serving(build_app(store, "table")) as address:
        yield address


def asked(url: str, host: str, path: str = "config") -> httpx.Response:
    return httpx.get(url + path, headers={"Host": host}, trust_env=False, timeout=30)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:7860", "127.0.0.1:1", "[::1]:7860"])
def test_the_page_answers_to_names_of_this_machine(url, host):
    assert asked(url, host).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "[::2]:7860"])
def test_a_name_that_came_to_mean_this_machine_is_refused(url, host):
    answer = asked(url, host)
    assert answer.status_code == 400
    assert repr(host) in answer.text
    assert "FILLMASK_UI_HOSTS" in answer.text


def test_an_address_that_gradio_cannot_read_is_refused_and_a_long_one_opened(url):
    answer = asked(url, "localhost", "?text=" + "a" * LONGEST_ADDRESS)
    assert answer.status_code == 414
    assert f"{LONGEST_ADDRESS:,} is the most" in answer.text
    assert asked(url, "localhost", "?text=" + "a" * (LONGEST_ADDRESS - 100)).status_code == 200


@pytest.mark.parametrize(
    ("server_name", "public", "environment", "wanted"),
    [
        (None, False, {}, True),
        ("127.0.0.2", False, {}, True),
        (None, True, {}, False),
        ("0.0.0.0", False, {}, False),
        (None, False, {"GRADIO_SERVER_NAME": "192.0.2.1"}, False),
    ],
)
def test_only_a_page_for_its_own_machine_minds_its_name(
    monkeypatch, server_name, public, environment, wanted
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert bool(hosts_of(server_name, public=public)) is wanted


def test_further_names_can_be_given(monkeypatch):
    monkeypatch.setenv("FILLMASK_UI_HOSTS", "Fill.example.org, other.example:8443")
    assert {"fill.example.org", "other.example", "localhost"} <= hosts_of(None, public=False)
