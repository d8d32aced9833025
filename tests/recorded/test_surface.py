"""What users and programs call is still there: commands, options, Python names, endpoints.

More may be added to each of them.
"""

import dataclasses
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from recorded.program import environment
from recorded.recording import check_json, parsed
from serving import started

import fillmask_ui
from fillmask_ui.cli.main import app

STANDARD = ("--help", "--install-completion", "--show-completion")


def commands(command: Any, name: str = "fillmask-ui") -> Iterator[tuple[str, Any]]:
    yield name, command
    for sub, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{name} {sub}")


def described(parameter: Any) -> dict[str, Any]:
    default = parameter.default
    limited = getattr(parameter, "type", parameter)
    return {
        "argument": parameter.param_type_name == "argument",
        "default": default if isinstance(default, bool | int | float | str) else None,
        "type": type_name(parameter),
        "limits": [getattr(limited, name, None) for name in ("min", "max")],
        "metavar": parameter.metavar,
        "flag": bool(getattr(parameter, "is_flag", False)),
        "required": parameter.required,
        "several": bool(getattr(parameter, "multiple", False)) or parameter.nargs == -1,
    }


def type_name(parameter: Any) -> str:
    """`str`, `int`, ...: what the typer of today says itself, and older ones through click."""
    if hasattr(parameter, "type_descriptor"):
        return parameter.type_descriptor.annotation.__name__
    old = {"text": "str", "integer": "int", "integer range": "int", "boolean": "bool"}
    return old.get(parameter.type.name, parameter.type.name)


def test_commands_and_options():
    found = {
        command: {
            # An argument has no name that anyone writes.
            spelling if spelling.startswith("-") else str(parameter.metavar): described(parameter)
            for parameter in inner.params
            for spelling in (*parameter.opts, *parameter.secondary_opts)
            if parameter.opts[0] not in STANDARD
        }
        for command, inner in commands(typer.main.get_command(app))
    }
    check_json("command-line", found, more=True)


def test_public_names():
    found = {name: parameters(getattr(fillmask_ui, name)) for name in sorted(fillmask_ui.__all__)}
    check_json("python", found, more=True)
    assert issubclass(fillmask_ui.FillmaskError, Exception)


def parameters(thing: Any) -> dict[str, list[Any]]:
    if isinstance(thing, type) and issubclass(thing, Exception):
        return {}
    return {
        entry.name: [entry.kind.name, plain_default(entry)]
        for entry in inspect.signature(thing).parameters.values()
    }


def plain_default(entry: inspect.Parameter) -> Any:
    if entry.default is entry.empty:
        return "required"
    known = entry.default is None or isinstance(entry.default, bool | int | float | str)
    return entry.default if known else "some object"


def test_what_can_be_read_from_the_records_of_the_python_interface():
    model = fillmask_ui.load_model("table")
    text = "The [MASK] sat on the [MASK]."
    filling = fillmask_ui.fill(model, text, candidates=["walked"])
    texts = Path("texts.txt").read_text("utf-8").splitlines()
    rows = list(fillmask_ui.evaluate(model, texts, baseline=fillmask_ui.load_model("noisy")))
    found: dict[str, dict[str, Any]] = {"load_model": dict.fromkeys(public(model))}
    collect("load_model.signature", model.signature, found)
    collect("fill", filling, found)
    collect("score_candidates", fillmask_ui.score_candidates(model, text, ["walked"]), found)
    collect("evaluate", rows, found)
    collect("summarize", fillmask_ui.summarize(rows), found)
    collect("available_models", fillmask_ui.available_models()[:1], found)
    check_json("records", found, more=True)


def collect(where: str, record: Any, found: dict[str, dict[str, Any]]) -> None:
    """Names of a record's fields and properties, and of those within."""
    if isinstance(record, list | tuple):
        for entry in record:
            collect(f"{where}[]", entry, found)
    elif dataclasses.is_dataclass(record) and type(record).__module__.startswith("fillmask_ui"):
        names = public(record)
        found[where] = found.get(where, {}) | dict.fromkeys(names)
        for name in names:
            value = getattr(record, name)
            if not callable(value):
                collect(f"{where}.{name}", value, found)


def public(record: Any) -> list[str]:
    return sorted(name for name in dir(record) if not name.startswith("_"))


@pytest.fixture(scope="module")
def page(workshop: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of the page, as the shell starts it, with a recorded model."""
    from gradio_client import Client

    cache = tmp_path_factory.mktemp("cache")
    # No other models than the embedded ones at hand.
    own = environment(HF_HUB_CACHE=str(cache), FILLMASK_UI_RUNS=str(cache / "runs"))
    with started("-m", "table", cwd=workshop, env=own) as (url, _):
        yield Client(url, verbose=False, analytics_enabled=False)


def test_endpoints(page):
    offered = page.view_api(return_format="dict")["named_endpoints"]
    found = {
        name: {
            "parameters": {
                entry["parameter_name"]: [
                    entry["type"]["type"],
                    entry["parameter_default"] if entry["parameter_has_default"] else "required",
                ]
                for entry in endpoint["parameters"]
            },
            "returns": [entry["type"] for entry in endpoint["returns"]],
        }
        for name, endpoint in offered.items()
    }
    check_json("endpoints", found, more=True)


def test_answers_of_the_endpoints(page):
    text = "The [MASK] sat on the [MASK]."
    found = {
        "predict": page.predict(text, top_k=2, candidates="cat, walked", api_name="/predict"),
        "default": page.predict("A cold [MASK].", api_name="/predict"),
        "other": page.predict("A cold [MASK].", "letters", 3, api_name="/predict"),
        "score": page.predict(text, "cat, walked", api_name="/score_candidates"),
        "models": page.predict(api_name="/models"),
    }
    check_json("answers", parsed(json.dumps(found)))


def test_comparisons_of_the_endpoint(page):
    text = "The [MASK] sat on the [MASK]."
    found = {
        "noisy": page.predict(text, other="noisy", top_k=2, api_name="/compare"),
        "letters": page.predict(
            "A cold [MASK].", "table", "letters", 2, "walked", api_name="/compare"
        ),
        "same": page.predict("A cold [MASK].", top_k=1, api_name="/compare"),
    }
    check_json("answers-compare", parsed(json.dumps(found)))


def test_what_the_endpoints_refuse(page):
    from gradio_client.exceptions import AppError

    found = {}
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
        ("/compare", {"text": "a [MASK]", "other": "./missing"}),
        ("/compare", {"text": "a [MASK]", "top_k": 101}),
    ):
        with pytest.raises(AppError) as refused:
            page.predict(**values, api_name=endpoint)
        found[f"{endpoint} {json.dumps(values)[:60]}"] = str(refused.value)
    check_json("answers-refused", found)
