"""The endpoints, as a program calls them."""

import json
import urllib.request

import pytest

PARIS = "The capital of France is [MASK]."


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
