"""What the endpoints for programs answer, asked by the client that programs use."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError
from recorded.recording import check_json, parsed
from serving import serving

from fillmask_ui.models import ModelStore
from fillmask_ui.ui import api
from fillmask_ui.ui.page import build_app

TWO = "The [MASK] sat on the [MASK]."
COLD = "A cold [MASK]."
SCHEMA = {str: "string", int: "integer", list[str]: "array"}


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of a page whose model is a recorded one; only the embedded ones are at hand."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with serving(build_app(ModelStore(), "table")) as url:
        yield Client(url, verbose=False, analytics_enabled=False)


def test_answers(page):
    answers = {
        "predict": page.predict(TWO, top_k=2, candidates="cat, walked", api_name="/predict"),
        "default": page.predict(COLD, api_name="/predict"),
        "other": page.predict(COLD, "letters", 3, api_name="/predict"),
        "score": page.predict(TWO, "cat, walked", api_name="/score_candidates"),
        "models": page.predict(api_name="/models"),
    }
    check_json("answers", parsed(json.dumps(answers)))
    answers = {
        "noisy": page.predict(TWO, model="noisy", top_k=2, api_name="/compare"),
        "letters": page.predict(COLD, "table", "letters", 2, "walked", api_name="/compare"),
        "same": page.predict(COLD, top_k=1, api_name="/compare"),
    }
    check_json("answers-compare", parsed(json.dumps(answers)))


def test_each_function_of_the_table_is_a_documented_endpoint(page):
    offered = page.view_api(return_format="dict")["named_endpoints"]
    assert set(offered) == {f"/{tool.__name__}" for tool in api.tools()}
    for tool in api.tools():
        endpoint = offered[f"/{tool.__name__}"]
        kinds = {name: SCHEMA.get(kind) for name, kind in tool.__annotations__.items()}
        del kinds["return"], kinds["session"]
        described = {
            parameter["parameter_name"]: parameter["type"]["type"]
            for parameter in endpoint["parameters"]
        }
        assert described == kinds
        (answer,) = endpoint["returns"]
        assert answer["type"]["type"] in ("object", "array")


def test_refusals(page):
    answers = {}
    for endpoint, values in (
        ("/predict", {"text": "no mask"}),
        ("/predict", {"text": " "}),
        ("/predict", {"text": 7}),
        ("/predict", {"text": "a [MASK]", "top_k": 0}),
        ("/predict", {"text": "a [MASK]", "top_k": "2"}),
        ("/predict", {"text": "a [MASK]", "model": "./missing"}),
        ("/predict", {"text": "cat " * 60 + "[MASK]"}),
        ("/score_candidates", {"text": "a [MASK]", "candidates": " , "}),
        ("/score_candidates", {"text": "a [MASK]", "candidates": "[MASK]"}),
        ("/compare", {"text": "a [MASK]", "model": "./missing"}),
        ("/compare", {"text": "a [MASK]", "top_k": 101}),
        ("/evaluate", {"texts": ["a", 3]}),
        ("/evaluate", {"samples": 201}),
    ):
        with pytest.raises(AppError) as refused:
            page.predict(**values, api_name=endpoint)
        answers[f"{endpoint} {json.dumps(values)[:60]}"] = str(refused.value)
    check_json("answers-refused", answers)
