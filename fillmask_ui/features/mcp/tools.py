"""The functions that programs call, as tools for language models.

Gradio makes a tool of the Model Context Protocol of each public endpoint, from the name, types and
docstring of its function, and shows its answer as a string. So each function has a second endpoint
here, which answers in JSON and is the public one.
"""

import json
from functools import wraps
from inspect import signature
from typing import Any

import gradio as gr

from fillmask_ui.ui import api
from fillmask_ui.ui.session import Session

MOST_LISTED = 50  # words at a mask: their reader pays for each


def build(session: Session) -> None:
    """Add the endpoints of the page and the tools to the page being built."""
    api.build(session, "undocumented")
    for tool in api.tools():
        endpoint = api.served(_in_json(tool), session)
        gr.api(endpoint, api_name=f"tool_{tool.__name__}", concurrency_limit=2)


def _in_json(tool: api.Tool) -> api.Tool:
    """A tool that lists fewer words, with its answer as one line of JSON."""

    @wraps(tool)
    def call(session: Session, *values: Any) -> str:
        top_k = signature(tool).bind(session, *values).arguments.get("top_k")
        if top_k is not None:
            api.check_top_k(top_k, MOST_LISTED)
        return json.dumps(tool(session, *values), ensure_ascii=False, separators=(",", ":"))

    return call
