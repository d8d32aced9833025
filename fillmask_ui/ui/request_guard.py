"""What stands between the network and Gradio: whose requests, how large, with which files.

A page for its own machine has no login: whatever reaches it can do what its user can. So requests
that a page of another site sends are refused, and host names that were made to point to this
machine ("DNS rebinding"). A public page guards memory, disk and network against its visitors.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Of a public page, in bytes: a request, and the uploads kept for one address and for all.
MOST_BODY, MOST_OF_ADDRESS, MOST_UPLOADS = 1_000_000, 60_000_000, 400_000_000
LEAST_UPLOAD = 100_000  # what a smaller one counts as, so that their number is bounded too
UPLOAD_SECONDS = 300.0  # that an upload is kept which no open page has used
_SAFE = ("GET", "HEAD", "OPTIONS")
_API = "/gradio_api/"
# Inline code and `eval` are how Gradio runs the scripts of components.
_POLICY = (
    "default-src 'self' data: blob:; script-src 'self' blob: 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; connect-src 'self' data: blob:; object-src 'none'; "
    "base-uri 'self'; form-action 'self'; frame-ancestors 'self'"
)
_HUB = " https://huggingface.co https://*.hf.space"  # whose pages show a Space


@dataclass(eq=False)
class _Upload:
    """The files of one upload to a public page."""

    address: str
    size: int  # of the request
    paths: list[str] = field(default_factory=list)
    pages: set[str] = field(default_factory=set)  # session hashes of the pages that used it
    ended: float = math.inf  # when it had arrived


class RequestGuard:
    """An ASGI app in front of the page, which may be `public`."""

    def __init__(self, app: ASGIApp, public: bool) -> None:
        self.app, self.public = app, public
        self._uploads: list[_Upload] = []
        self._open = Counter[str]()  # heartbeats by session hash; one lasts as long as its page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send, headers = _with_policy(send), Headers(scope=scope)
        name = scope["path"].rpartition(_API)[2].strip("/")
        try:
            if scope["method"] in _SAFE:
                await self._read(name, scope, receive, send)
            elif not self.public:
                if _is_foreign(headers):
                    raise HTTPException(403, "this page takes no requests from other sites")
                await self.app(scope, receive, send)
            elif name == "upload":
                await self._upload(headers, scope, receive, send)
            else:
                body = await _body(Request(scope, receive))
                self._check_files(body)
                await self.app(scope, _replaying(body, receive), send)
        except HTTPException as error:
            await JSONResponse({"detail": error.detail}, error.status_code)(scope, receive, send)
        except ClientDisconnect:
            pass

    async def _read(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what changes nothing; uploads that a page used end with its last heartbeat."""
        if self.public and name == "deep_link":
            raise HTTPException(404)  # each call would write a file, and the page has its own links
        kind, _, page = name.partition("/")
        if kind != "heartbeat":
            await self.app(scope, receive, send)
            return
        self._open[page] += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self._open -= Counter([page])
            self._delete([own for own in self._uploads if page in own.pages])

    async def _upload(self, headers: Headers, scope: Scope, receive: Receive, send: Send) -> None:
        """Take an upload if there is room; its room is taken before it is read."""
        address, length = (scope.get("client") or ("",))[0], headers.get("content-length", "")
        if "transfer-encoding" in headers or not (length.isdecimal() and len(length) < 16):
            raise HTTPException(411, "an upload to this page says its length")
        now = time.monotonic()
        self._delete([own for own in self._uploads if now - own.ended > UPLOAD_SECONDS])
        _delete_broken_off()
        upload = _Upload(address, max(int(length), LEAST_UPLOAD))
        own = sum(other.size for other in self._uploads if other.address == address)
        total = sum(other.size for other in self._uploads)
        if own + upload.size > MOST_OF_ADDRESS or total + upload.size > MOST_UPLOADS:
            raise HTTPException(413, "this page keeps no more uploads: try again in some minutes")
        self._uploads.append(upload)
        answer = bytearray()

        async def noting(message: Message) -> None:
            answer.extend(message.get("body", b""))
            if message["type"] == "http.response.body" and not message.get("more_body"):
                # The paths; a refusal is no list.
                upload.paths = json.loads(answer) if answer.startswith(b"[") else []
            await send(message)

        try:
            await self.app(scope, receive, noting)
        finally:
            upload.ended = time.monotonic()

    def _check_files(self, body: bytes) -> None:
        """Refuse files that were not uploaded: Gradio would fetch an address."""
        files: list[dict[str, Any]] = []

        def note(value: dict[str, Any]) -> dict[str, Any]:
            if "path" in value and ("meta" in value or "url" in value):
                files.append(value)
            return value

        try:
            values = json.loads(body or b"{}", object_hook=note)
        except (ValueError, RecursionError):
            raise HTTPException(400, "this page takes JSON") from None
        for file in files:
            path, url = file["path"], str(file.get("url") or f"/file={file['path']}")
            uploads = [own for own in self._uploads if path in own.paths]
            its_own = any(form.endswith(f"/file={path}") for form in (url, unquote(url)))
            if not uploads or not its_own:
                raise HTTPException(400, "a file must be uploaded to this page before it is used")
            for own in uploads:
                own.pages.add(str(values.get("session_hash")))

    def _delete(self, uploads: list[_Upload]) -> None:
        """Delete uploads, but those that an open page has used."""
        gone = [own for own in uploads if not own.pages & self._open.keys()]
        self._uploads = [own for own in self._uploads if own not in gone]
        # Files of the same content are one.
        kept = {path for own in self._uploads for path in own.paths}
        for path in {path for own in gone for path in own.paths} - kept:
            Path(path).unlink(missing_ok=True)


def _delete_broken_off() -> None:
    """Delete what Gradio leaves of uploads that were broken off."""
    for path in Path(os.environ["GRADIO_TEMP_DIR"]).glob("tmp*"):
        if path.is_file() and time.time() - path.stat().st_mtime > UPLOAD_SECONDS:
            path.unlink(missing_ok=True)


def _is_foreign(headers: Headers) -> bool:
    """Whether a page of another site sends a request; programs do not say where they are from."""
    if site := headers.get("sec-fetch-site"):
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


async def _body(request: Request) -> bytes:
    """The body, read no further than a page takes."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY:
            raise HTTPException(413, f"a request to this page has at most {MOST_BODY:,} bytes")
    return bytes(body)


def _replaying(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives a body which was read already, then what else comes."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return left.pop() if left else await receive()

    return replay


def _with_policy(send: Send) -> Send:
    """A `send` that adds to every page from where it may load and who may frame it."""

    async def adding(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if headers.get("content-type", "").startswith("text/html"):
                # A Space is shown inside a page of the hub.
                hub = (
                    " https://huggingface.co https://*.hf.space" if "SPACE_ID" in os.environ else ""
                )
                headers["content-security-policy"] = _POLICY + hub
        await send(message)

    return adding


def middleware(server_name: str | None, *, public: bool) -> list[Middleware]:
    """What stands in front of a page that listens on `server_name`."""
    own = (server_name or os.environ.get("GRADIO_SERVER_NAME") or "127.0.0.1").lower()
    local = {"localhost", "127.0.0.1", "[::1]", "::1"}
    guards = [Middleware(RequestGuard, public=public)]
    if not public and (own.startswith("127.") or own in local):
        named = os.environ.get("FILLMASK_UI_HOSTS", "").lower().split(",")
        hosts = local | {own, *(name.strip().partition(":")[0] for name in named)} - {""}
        guards.insert(0, Middleware(TrustedHostMiddleware, allowed_hosts=[*hosts]))
    return guards
