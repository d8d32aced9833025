"""The tools for language models, called by the client of the MCP package."""

import asyncio
import json
import re

import httpx
import pytest
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from serving import serving
from table_model import TableModel

from fillmask_ui import compare, evaluate, fill, summarize, surprisal, unmask
from fillmask_ui.errors import OptionError, how_to_install
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.evaluation.catalogue import SPLITS
from fillmask_ui.features.mcp import command
from fillmask_ui.features.mcp.command import SETTINGS
from fillmask_ui.models import ModelStore
from fillmask_ui.ui import api
from fillmask_ui.ui.page import build_app, launch_options

TABLE, NOISY = TableModel(1), TableModel(1, noise=0.3)
MASKED, PLAIN = "The [MASK] sat on the ____.", "The cat sat on the mat."


@pytest.fixture(scope="module", params=[False, True], ids=["private", "public"])
def page(request):
    """Whether it is public, and the address of its tools."""
    store = ModelStore(loader=lambda own, **_: {"table": TABLE, "noisy": NOISY}[own.reference])
    demo = build_app(store, "table", public=request.param, settings=SETTINGS)
    with serving(demo, public=request.param, **SETTINGS["launch"]) as url:
        yield request.param, f"{url}gradio_api/mcp/"


def within(url, use):
    async def connected():
        connect = sse_client if url.endswith("/sse") else streamable_http_client
        async with connect(url) as (read, write, *_), ClientSession(read, write) as session:
            await session.initialize()
            return await use(session)

    return asyncio.run(connected())


def called(url, name, progress=None, /, **arguments):
    answer = within(url, lambda own: own.call_tool(name, arguments, progress_callback=progress))
    return (str if answer.isError else json.loads)(answer.content[0].text)


def test_the_tools_are_described_and_answer_as_the_commands_print(page):
    public, url = page
    tools = within(url, lambda own: own.list_tools()).tools
    assert {own.name for own in tools} == {function.__name__ for function in api.tools()}
    assert {own.name for own in tools} >= {"predict", "surprise", "compare", "evaluate", "unmask"}
    for tool in tools:
        arguments = tool.inputSchema["properties"]
        assert all(own["description"] and own["type"] for own in arguments.values())
        assert "session" not in arguments
    expected = fill(TABLE, MASKED, top_k=3, candidates=["cat", "dog"]).to_json()
    for address in (url, f"{url}sse"):
        result = called(address, "predict", text=MASKED, top_k=3, candidates="cat, dog")
        assert result == json.loads(expected)
    expected = json.loads(json.dumps(surprisal(TABLE, PLAIN).to_dict()))
    assert called(url, "surprise", text=PLAIN, top_k=5) == expected
    assert len(called(url, "surprise", text=PLAIN)["words"][0]["expected"]) == 1
    assert "embedded:int8" in [own["reference"] for own in called(url, "models")]
    expected = [step.to_dict() for step in unmask(TABLE, MASKED)]
    assert called(url, "unmask", text=MASKED)["steps"] == expected
    questions = {"predict": MASKED, "surprise": PLAIN, "unmask": MASKED}
    for tool in tools:
        if tool.name in questions:  # keys that its description names are in its answer
            answer = json.dumps(called(url, tool.name, text=questions[tool.name]))
            for key in re.findall(r"`(\w+)`", tool.description):
                assert key in tool.inputSchema["properties"] or f'"{key}"' in answer, key
    result = called(url, "compare", text=MASKED, baseline="noisy", top_k=2)
    if public:
        assert "'noisy' is not offered on this public page; offered: table, embedded" in result
    else:
        assert result == json.loads(compare(NOISY, TABLE, MASKED, top_k=2).to_json())
        steps, size = [], TABLE.signature.vocabulary_size
        texts, config = [PLAIN, "Snow!"], EvaluationConfig("uniform", max_tokens=TABLE.max_tokens)
        asked = {"texts": texts, "metric": "uniform", "baseline": "noisy"}
        result = called(
            url, "evaluate", lambda *step: asyncio.sleep(0, steps.append(step)), **asked
        )
        rows = evaluate(NOISY, texts, config, candidate=TABLE)
        expected = summarize(rows, config=config, vocabulary_size=size).to_dict()
        for split in SPLITS:
            del expected[split], expected["reference"][split], expected["comparison"][split]
        expected["signature"] = result["signature"]
        assert (result, bool(steps)) == (expected, True)
    assert called(url, "evaluate", samples=9)["texts"] <= 9


SLIPS = [
    ("predict", {"text": ""}, "the text is empty"),
    ("predict", {"text": PLAIN}, "put [MASK] (or ___)"),
    ("predict", {"text": MASKED, "top_k": 0}, "a whole number from 1 to 50"),
    ("compare", {"text": MASKED, "top_k": 51}, "a whole number from 1 to 50"),
    ("predict", {"text": MASKED, "top_k": "five"}, "'five' is not of type 'integer'"),
    ("surprise", {"text": "a" * 50_001}, "at most 50,000"),
    ("evaluate", {"metric": "unmasking", "samples": 51}, "at most 50 texts by unmasking"),
    ("tool_predict", {"text": MASKED}, "Unknown tool"),
]


def test_a_slip_gets_one_line_and_the_server_goes_on(page, capfd):
    for name, arguments, words in SLIPS:
        line = called(page[1], name, **arguments)
        assert (words in line, "\n" in line) == (True, False), line
    assert called(page[1], "predict", text=MASKED)["masks"]
    assert "Traceback" not in "".join(capfd.readouterr())


def test_the_guard_of_the_page_stands_before_the_tools(page):
    public, url = page
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for own, refused in ("A: b", 200), ("Origin: https://b.org", 403), ("Host: b", 400):
        headers = dict([own.split(": "), ("Accept", "application/json, text/event-stream")])
        sent = httpx.post(url, json=asked, headers=headers, timeout=300)
        assert sent.status_code == (200 if public else refused)
    assert (httpx.post(url, json=" " * 1_000_000, timeout=300).status_code == 413) is public


def test_without_the_package_there_is_one_line_with_the_remedy(monkeypatch):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    with pytest.raises(OptionError, match=re.escape(how_to_install("mcp"))):
        command.mcp("127.0.0.1", None, "embedded", False)
    monkeypatch.setenv("GRADIO_MCP_SERVER", "true")
    assert launch_options()["mcp_server"] is False  # else every endpoint would be a tool
