"""Every event of the page with values and data that no page sends: answered, or refused."""

import asyncio
import inspect
from contextlib import suppress
from functools import partial

import gradio as gr
import pytest
from gradio.events import EventData
from gradio.exceptions import ComponentProcessingError
from gradio.state_holder import SessionState
from pydantic import ValidationError
from table_model import TableModel

from fillmask_ui.models.shared import ModelStore
from fillmask_ui.ui.app import build_app

VALUES = ([1], {"a": 1}, 5, True, float("nan"), "x", "\ud800", None)
DATA = (
    "x",
    [1],
    {},
    {"parameters": None},
    {"parameters": "view=%00"},
    {"parameters": {"run": ["../.."], "text": 5, "tab": [1]}},
    {"parameters": [1], "key": [1], "low": [1], "high": {"a": 1}},
    {"key": "show:" + "9" * 30, "low": "nan", "high": "inf"},
)
# What a component of Gradio refuses before the page sees it.
REFUSED = (gr.Error, ComponentProcessingError, ValidationError)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FILLMASK_UI_RUNS", str(tmp_path_factory.mktemp("runs")))
        patch.setenv("FILLMASK_UI_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield build_app(ModelStore(loader=lambda reference, **_: TableModel()), "table")


async def _sent(demo, event, values, data):
    """One event; of a job its first steps."""
    visit, iterator = gr.Request(session_hash="visitor", query_params={}), None
    ask = partial(
        demo.process_api,
        event,
        state=SessionState(demo),
        request=visit,
        event_data=EventData(None, data),
    )
    with suppress(*REFUSED):
        for _ in range(2):
            answer = await ask(list(values), iterator=iterator)
            iterator = answer["iterator"]
            if not answer["is_generating"]:
                return


def _events(demo):
    return [event for event in demo.fns.values() if event.fn]


def test_values_that_no_page_sends_are_read_or_refused(demo):
    async def send():
        for event in _events(demo):
            usual = [None if isinstance(own, gr.State) else own.value for own in event.inputs]
            boxes = [n for n, own in enumerate(event.inputs) if not isinstance(own, gr.State)]
            for place, value in enumerate(VALUES):
                every = [value if n in boxes else None for n in range(len(usual))]
                await _sent(demo, event, every, {})
                # Each job of an evaluation makes a run: of its many boxes a part per value.
                for n in boxes if len(boxes) < 20 else boxes[place % 8 :: 8]:
                    await _sent(demo, event, [*usual[:n], value, *usual[n + 1 :]], {})

    asyncio.run(send())


def test_data_that_no_page_sends_with_an_event_is_read_or_refused(demo):
    async def send():
        for event in _events(demo):
            if inspect.isgeneratorfunction(event.fn) and len(event.inputs) > 5:
                continue  # a job that no event's data says anything to
            for data in DATA:
                await _sent(demo, event, [None] * len(event.inputs), data)

    asyncio.run(send())
