"""The endpoints, as a program calls them."""

import json
import urllib.request

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from fillmask_ui.comparing import compare
from fillmask_ui.filling import fill, score_candidates
from fillmask_ui.models import available_models
from fillmask_ui.ui import api
from fillmask_ui.ui.session import MAX_CHARACTERS, MAX_WORDS

PARIS = "The capital of France is [MASK]."


@pytest.fixture(scope="module")
def client(served):
    return Client(served.url, verbose=False, analytics_enabled=False)


def test_four_endpoints_are_offered_with_their_types(client):
    offered = client.view_api(return_format="dict")["named_endpoints"]
    assert set(offered) == {"/predict", "/score_candidates", "/compare", "/models"}
    parameters = {
        name: {p["parameter_name"]: p["type"]["type"] for p in endpoint["parameters"]}
        for name, endpoint in offered.items()
    }
    assert parameters["/predict"] == {
        "text": "string",
        "model": "string",
        "top_k": "integer",
        "candidates": "string",
    }
    assert parameters["/score_candidates"] == {
        "text": "string",
        "candidates": "string",
        "model": "string",
    }
    assert [*parameters["/compare"]] == ["text", "model", "other", "top_k", "candidates"]
    assert parameters["/models"] == {}
    assert all(endpoint["description"] for endpoint in offered.values())
    filling = offered["/predict"]["returns"][0]["type"]["properties"]
    candidate = filling["masks"]["items"]["properties"]["candidates"]["items"]["properties"]
    assert candidate["token_id"] == {"type": "integer"}
    assert offered["/models"]["returns"][0]["type"]["items"]["required"]


def test_predict_answers_what_fill_does(client, served):
    found = client.predict(PARIS, top_k=4, candidates="paris, souvenirs", api_name="/predict")
    model = served.store.get("embedded")
    expected = fill(model, PARIS, top_k=4, candidates=["paris", "souvenirs"])
    assert found == json.loads(expected.to_json())


def test_score_candidates_answers_one_list_a_mask(client, served):
    text = "The [MASK] sat on the [MASK]."
    found = client.predict(text, "cat, souvenirs", api_name="/score_candidates")
    expected = score_candidates(served.store.get("embedded"), text, ["cat", "souvenirs"])
    assert [[word["nll_nats"] for word in mask] for mask in found] == [
        [word.nll_nats for word in mask] for mask in expected
    ]
    assert found[0][1]["parts"][0]["token"] == expected[0][1].parts[0].token


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


def test_models_lists_what_is_at_hand(client):
    found = client.predict(api_name="/models")
    assert [model["reference"] for model in found] == [m.reference for m in available_models()]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("no mask",), ["has no mask"]),
        (("",), ["empty"]),
        (("a " * 50_000,), ["100,000", f"{MAX_CHARACTERS:,}"]),
        ((PARIS, "nobody/none<b>"), ["nobody/none<b>"]),
        ((PARIS, "", 0), ["top_k was 0", "1 to 100"]),
        ((PARIS, "", -1), ["-1"]),
        ((PARIS, "", 10**9), ["1000000000"]),
        ((PARIS, "", 5, ",".join(map(str, range(101)))), [str(MAX_WORDS)]),
    ],
)
def test_what_cannot_be_answered_is_said(client, arguments, parts):
    with pytest.raises(AppError) as error:
        client.predict(*arguments, api_name="/predict")
    assert all(part in str(error.value) for part in parts), error.value


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


def test_events_of_the_page_are_no_endpoints(client):
    with pytest.raises(ValueError, match="Cannot find a function"):
        client.predict(api_name="/on_example")
