"""Serve the page by several processes of this machine, behind one port.

    python docs/serving/replicas.py 4 --port 7860 --model embedded:int8 --public

Each replica is `fillmask-ui` on a port of its own (those after --port), with all other options; one
that dies is started again. A browser stays with its replica by a cookie, a program without cookies
by its address; where that replica does not answer, the next one takes over. Ctrl-C or SIGTERM ends
all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import logging
import signal
import sys
import time
import zlib
from collections.abc import AsyncIterator

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

COOKIE = "fillmask-replica"
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"]
# Where a browser or `gradio_client` begins: without a cookie it goes to the next in turn.
BEGINNINGS = ("/", "/config")
STARTING_SECONDS, ENDING_SECONDS = 60, 5
log = logging.getLogger("uvicorn.error")


class Front:
    """Starts replicas, keeps them running and passes requests on to them.

    Args:
        ports: of the replicas, on 127.0.0.1.
        options: of `fillmask-ui`, the same for each.
    """

    def __init__(self, ports: list[int], options: list[str]) -> None:
        self.ports, self.options = ports, options
        self.stopping = asyncio.Event()
        self._turn = itertools.cycle(range(len(ports)))
        # An idle connection is given up before the replica, which waits 5 s, closes it. No limit:
        # each open page holds one.
        limits = httpx.Limits(max_connections=None, keepalive_expiry=2)
        patience = httpx.Timeout(None, connect=5)
        self._client = httpx.AsyncClient(timeout=patience, trust_env=False, limits=limits)

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        kept = [asyncio.create_task(self._keep(port)) for port in self.ports]
        try:
            yield
        finally:
            for task in kept:
                task.cancel()
            await asyncio.gather(*kept, return_exceptions=True)
            await self._client.aclose()

    async def _keep(self, port: int) -> None:
        """Run a replica and start it again when it dies, until this task is cancelled."""
        command = [sys.executable, "-m", "fillmask_ui", "--host", "127.0.0.1", "--port", str(port)]
        while True:
            begun = time.monotonic()
            process = await asyncio.create_subprocess_exec(*command, *self.options)
            log.info("replica on port %d: process %d", port, process.pid)
            try:
                status = await process.wait()
            finally:
                await _end(process)
            if status >= 0 and time.monotonic() - begun < STARTING_SECONDS:
                # It was not killed: it has said what is wrong with its options or its port.
                log.error("the replica on port %d cannot start (status %d)", port, status)
                self.stopping.set()
                return
            log.warning("the replica on port %d died (status %d): starting it again", port, status)
            await asyncio.sleep(1)

    async def forward(self, request: Request) -> Response:
        """The answer of the visitor's replica, or of the next that can be reached."""
        named, first = request.cookies.get(COOKIE), self._first(request)
        for number in [*range(first, len(self.ports)), *range(first)]:
            try:
                answer = await self._client.send(self._request(request, number), stream=True)
            except httpx.ConnectError:
                continue  # nothing was sent yet
            except httpx.TransportError as error:
                return PlainTextResponse(f"the replica died over this request: {error}\n", 502)
            response = StreamingResponse(_body(answer), answer.status_code)
            response.raw_headers = list(answer.headers.raw)
            if named != str(number):
                response.set_cookie(COOKIE, str(number), httponly=True, samesite="lax")
            return response
        headers = {"Retry-After": "2"}
        return PlainTextResponse("no replica is up: ask again in a moment\n", 503, headers)

    def _first(self, request: Request) -> int:
        named = request.cookies.get(COOKIE, "")
        if named.isdecimal() and len(named) < 5 and int(named) < len(self.ports):
            return int(named)
        if request.url.path in BEGINNINGS:
            return next(self._turn)
        address = request.client.host if request.client else ""
        return zlib.crc32(address.encode()) % len(self.ports)

    def _request(self, request: Request, number: int) -> httpx.Request:
        url = request.url.replace(scheme="http", netloc=f"127.0.0.1:{self.ports[number]}")
        sends = {"content-length", "transfer-encoding"}.intersection(request.headers.keys())
        body = request.stream() if sends else None
        headers = request.headers.raw
        return self._client.build_request(request.method, str(url), headers=headers, content=body)


async def _body(answer: httpx.Response) -> AsyncIterator[bytes]:
    """As it comes; closed also when the visitor leaves, so that the replica learns of it."""
    try:
        async for piece in answer.aiter_raw():
            yield piece
    finally:
        await answer.aclose()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a replica as Ctrl-C does, so that it removes its files; kill it if it does not heed."""
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        await asyncio.wait_for(process.wait(), ENDING_SECONDS)
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()


async def serve(count: int, host: str, port: int, options: list[str]) -> bool:
    """Serve until a signal ends it; whether all replicas could start."""
    front = Front([port + number for number in range(1, count + 1)], options)
    routes = [Route("/{path:path}", front.forward, methods=METHODS)]
    app = Starlette(routes=routes, lifespan=front.lifespan)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            access_log=False,
            date_header=False,
            server_header=False,
            timeout_graceful_shutdown=2,  # open pages hold their connections
        )
    )

    async def stop() -> None:
        await front.stopping.wait()
        server.should_exit = True

    watching = asyncio.create_task(stop())
    await server.serve()
    watching.cancel()
    return not front.stopping.is_set()


def main() -> None:
    """Read the options and serve."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int, help="number of replicas")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=7860)
    given, options = parser.parse_known_args()
    if given.count < 1 or not 0 < given.port <= 65535 - given.count:
        parser.error("at least one replica, and as many ports after --port below 65536")
    if not asyncio.run(serve(given.count, given.host, given.port, options)):
        sys.exit(1)


if __name__ == "__main__":
    main()
