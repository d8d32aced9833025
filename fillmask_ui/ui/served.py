"""What scripts of the page ask its server for: `POST ask/NAME` with JSON, answered with JSON.

A session of Gradio has no part in it: a script may ask before Gradio has built the page, and the
server copies nothing for somebody who asks.
"""

import functools
import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fillmask_ui.ui.components import Served, answered
from fillmask_ui.ui.session import Session


def serve(
    demo: Any, session: Session, functions: Mapping[str, Served]
) -> Callable[[], Coroutine[Any, Any, None]]:
    """What puts the functions, by their names, before Gradio's routes once the page has started."""

    async def answer(request: Request) -> Response:
        function = functions.get(request.path_params["name"])
        if function is None:
            return JSONResponse({"detail": "no such function"}, 404)
        try:
            values = json.loads(await request.body())
        except (ValueError, RecursionError):
            return JSONResponse({"detail": "this address takes JSON"}, 400)
        work = functools.partial(answered, function, session, values)
        return JSONResponse(await anyio.to_thread.run_sync(work, limiter=demo.limiter))

    async def start() -> None:
        demo.app.router.routes[:0] = [Route("/ask/{name}", answer, methods=["POST"])]

    return start
