"""Checks between the network and Gradio: the origin, size and files of each request.

A local page has no login: whatever reaches it can do what its user can. So requests sent by pages
of other sites are refused, as are host names made to point to this machine ("DNS rebinding"). A
public page guards memory, disk and network against its visitors.
"""

import asyncio
import json
import logging
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask_ui.ui.throttle import Throttle

# Of a public page, in bytes: a request; the uploads of all visitors, and of one address, within
# `UPLOAD_SECONDS`, when they are deleted (evaluations have links of their own).
MOST_BODY, MOST_UPLOADS, MOST_OF_ADDRESS = 1_000_000, 400_000_000, 60_000_000
_LOG = logging.getLogger(__name__)
LEAST_UPLOAD = 100_000  # what a smaller file counts as, so that their number is bounded too
UPLOAD_SECONDS = 900
LEAST_PASTE = 20_000  # bytes of a request from which it counts with the uploads: it may be kept
# Gradio copies the page for a session: how many it holds, an address begins a second, and at once.
MOST_SESSIONS, SESSION_RATE = 200, (3.0, 60.0)
MOST_NAME = 64  # characters of a session's name
LOOKS, LOOK_SECONDS = 30, 0.5  # whether a session has been named; programs wait for 20 s
# Inline code and `eval` are how Gradio runs the scripts of components.
_POLICY = (
    "default-src 'self' data: blob:; script-src 'self' blob: 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; connect-src 'self' data: blob:; object-src 'none'; "
    "base-uri 'self'; form-action 'self'; frame-ancestors 'self'"
)
_HUB = " https://huggingface.co https://*.hf.space"  # whose pages show a Space


class RequestGuard:
    """An ASGI app in front of the page, which may be `public`."""

    def __init__(self, app: ASGIApp, public: bool) -> None:
        self.app, self.public = app, public
        self._sent: list[tuple[float, str, int]] = []  # when, from which address, bytes
        self._users: dict[Path, int] = {}  # of each upload: hash of the last session that named it
        self._new_sessions = Throttle(*SESSION_RATE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    hub = _HUB if "SPACE_ID" in os.environ else ""
                    headers["content-security-policy"] = _POLICY + hub
            await send(message)

        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, path = Headers(scope=scope), scope["path"]
        address = (scope.get("client") or ("",))[0]
        session = path.rpartition("/")[2] if self.public and "/heartbeat/" in path else None
        reads = scope["method"] in ("GET", "HEAD", "OPTIONS")
        try:
            if self.public and path.endswith("/deep_link"):
                raise HTTPException(404)  # each would write a file, and the page has its own links
            if not self.public and not reads and _is_foreign(headers):
                raise HTTPException(403, "this page takes no requests from other sites")
            if self.public and path.strip("/").endswith("gradio_api/upload"):
                self._admit_upload(headers, address)
            elif self.public and not reads:
                receive = await self._checked_body(Request(scope, receive), receive, address)
            if session is not None and not await _is_named(session, scope, receive):
                await Response(media_type="text/event-stream")(scope, receive, send)
                return
            await self.app(scope, receive, with_policy)
        except HTTPException as error:
            await JSONResponse({"detail": error.detail}, error.status_code)(scope, receive, send)
        except ClientDisconnect:
            pass
        except Exception as error:  # what Gradio makes of a number or a name that is none
            if not (self.public and not reads and "/gradio_api/" in path):
                raise
            _LOG.warning("a request was refused: %s", f"{error!r:.200}")
            await JSONResponse({"detail": "no such thing"}, 400)(scope, receive, send)
        finally:
            if session is not None:  # a heartbeat is open as long as a page is
                self._end(session)

    def _admit_session(self, session: Any, scope: Scope, address: str) -> None:
        if not isinstance(session, str) or len(session) > MOST_NAME:
            raise HTTPException(400, f"a session is a name of at most {MOST_NAME} characters")
        is_new = session not in scope["app"].state_holder
        if is_new and not self._new_sessions.admit(address, time.monotonic()):
            raise HTTPException(429, "too many visitors from this address: wait a little")

    def _admit_upload(self, headers: Headers, address: str) -> None:
        length = headers.get("content-length", "")
        if "transfer-encoding" in headers or not (length.isdecimal() and len(length) < 16):
            raise HTTPException(411, "an upload to this page says its length")
        self._count(max(int(length), LEAST_UPLOAD), address)

    def _count(self, size: int, address: str) -> None:
        """Count what may be kept on the disk; 413 if it is too much."""
        timestamp = time.monotonic()
        self._sent = [sent for sent in self._sent if timestamp - sent[0] < UPLOAD_SECONDS]
        for path in _received().rglob("*"):  # Gradio leaves what was broken off
            if path.is_file() and time.time() - path.stat().st_ctime > UPLOAD_SECONDS:
                path.unlink(missing_ok=True)
        self._users = {path: user for path, user in self._users.items() if path.exists()}
        total = sum(upload_size for *_, upload_size in self._sent)
        of_address = sum(upload_size for _, sender, upload_size in self._sent if sender == address)
        if total + size > MOST_UPLOADS or of_address + size > MOST_OF_ADDRESS:
            raise HTTPException(413, "too many uploads: try again in some minutes")
        self._sent.append((timestamp, address, size))

    async def _checked_body(self, request: Request, receive: Receive, address: str) -> Receive:
        """A `receive` that replays the body: small JSON of a session, which names only uploads."""
        body, named = bytearray(), set[Path]()

        def check(value: dict[str, Any]) -> dict[str, Any]:
            if "path" in value and ("meta" in value or "url" in value):
                named.add(_upload(value))
            return value

        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BODY:
                raise HTTPException(413, f"a request to this page has at most {MOST_BODY:,} bytes")
        try:
            payload = json.loads(body or b"{}", object_hook=check)
        except (ValueError, RecursionError):
            raise HTTPException(400, "this page takes JSON") from None
        session = payload.get("session_hash") if isinstance(payload, dict) else None
        if len(body) >= LEAST_PASTE and not request.url.path.endswith("/component_server"):
            self._count(len(body), address)
        if session is not None:
            self._admit_session(session, request.scope, address)
        if named:
            self._users |= dict.fromkeys(named, hash(str(session)))
        left: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def replay() -> Message:
            return left.pop() if left else await receive()

        return replay

    def _end(self, session: str) -> None:
        """Delete the uploads of an ended session, unless another session has named them since."""
        for path, user in [*self._users.items()]:
            if user == hash(session):
                path.unlink(missing_ok=True)
                del self._users[path]


async def _is_named(session: str, scope: Scope, receive: Receive) -> bool:
    """Whether a request names the session of a heartbeat, before that ends or has waited long.

    Else Gradio would copy the page for it. A page that opens names its session in a moment.
    """
    for _ in range(LOOKS):
        if session in scope["app"].state_holder:
            return True
        with suppress(asyncio.TimeoutError):
            message = await asyncio.wait_for(receive(), LOOK_SECONDS)
            if message["type"] == "http.disconnect":
                return False
    return False


def _is_foreign(headers: Headers) -> bool:
    """Whether a page of another site sent the request; programs send no origin."""
    if site := headers.get("sec-fetch-site"):
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


def _received() -> Path:
    return Path(os.environ["GRADIO_TEMP_DIR"])


def _upload(file: dict[str, Any]) -> Path:
    """The path of an uploaded file; others are refused, as Gradio would fetch a `url`."""
    path = Path(named := str(file["path"]))
    url = str(file.get("url") or f"/file={named}")
    if not (
        os.path.normpath(named) == named
        and _received() in path.parents
        and path.is_file()
        and any(form.endswith(f"/file={named}") for form in (url, unquote(url)))
    ):
        raise HTTPException(400, "a file must be uploaded to this page before it is used")
    return path


def middleware(server_name: str | None, *, public: bool) -> list[Middleware]:
    """The guard of a page that listens on `server_name`."""
    host = (server_name or os.environ.get("GRADIO_SERVER_NAME") or "127.0.0.1").lower()
    local = {"localhost", "127.0.0.1", "[::1]", "::1"}
    guards = [Middleware(RequestGuard, public=public)]
    if not public and (host.startswith("127.") or host in local):
        named = os.environ.get("FILLMASK_UI_HOSTS", "").lower().split(",")
        hosts = local | {host, *(name.strip().partition(":")[0] for name in named)} - {""}
        guards.insert(0, Middleware(TrustedHostMiddleware, allowed_hosts=[*hosts]))
    return guards
