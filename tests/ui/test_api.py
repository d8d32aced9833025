"""The endpoints, as a program calls them."""

import json
import urllib.request

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from fillmask_ui.comparing import compare
from fillmask_ui.ui import api

PARIS = "The capital of France is [MASK]."


@pytest.fixture(scope="module")
def client(served):
    return Client(served.url, verbose=False, analytics_enabled=False)


def test_compare_answers_what_compare_does(client, served):
    text = "The [MASK] sat on the [MASK]."
    asked = {"top_k": 4, "candidates": "cat, souvenirs"}
    found = client.predict(text, "", "embedded:int8", **asked, api_name="/compare")
    models = [served.store.get(name) for name in ("embedded", "embedded:int8")]
    expected = compare(*models, text, top_k=4, candidates=["cat", "souvenirs"])
    assert found == json.loads(expected.to_json())
    assert set(found) == set(api.ComparisonJson.__annotations__)
    assert set(found["masks"][0]) == set(api.ContrastJson.__annotations__)
    with pytest.raises(AppError, match="nobody/none<b>"):
        client.predict(text, "", "nobody/none<b>", api_name="/compare")


@pytest.mark.parametrize(
    "data", [[f"{PARIS} \ud800", "", 5, ""], [PARIS, "", 5, "\ud800"], [PARIS, "\ud800", 5, ""]]
)
def test_half_a_character_gets_an_answer_that_can_be_sent(served, data):
    """The Python client refuses to send one; a browser sends it as an escape."""
    url = f"{served.url}gradio_api/call/predict"
    body = json.dumps({"data": data}).encode("ascii")
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        event = json.load(answer)["event_id"]
    with urllib.request.urlopen(f"{url}/{event}", timeout=30) as answer:
        said = answer.read().decode("utf-8")
    assert "event: error" in said
    assert "ud800" in said.lower() or "u+d800" in said.lower()
