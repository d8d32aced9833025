"""What a request must be for Gradio to see it: of this site, of a bounded size, with its own files.

A page for its own machine has no login: whatever reaches it can do what its user can, so requests
that a page of another site sends are refused, and names that came to mean this machine ("DNS
rebinding"). A public page has nothing of its user's to guard, but memory, disk and network.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# On a public page, in bytes: of a request, and of the uploads kept for one address and for all.
MOST_BODY, MOST_OF_ADDRESS, MOST_UPLOADS = 1_000_000, 60_000_000, 400_000_000
# How long an upload is kept that no open page has named.
UPLOAD_SECONDS = 300.0
_SAFE = ("GET", "HEAD", "OPTIONS")
_UPLOAD, _HEARTBEAT = "/gradio_api/upload", "/gradio_api/heartbeat/"


@dataclass
class _Upload:
    """A file that a visitor of a public page has sent."""

    address: str
    size: int
    pages: set[str] = field(default_factory=set)  # session hashes of open pages that named it
    begun: float = field(default_factory=time.monotonic)


class RequestGuard:
    """An ASGI app in front of the page, which may be `public`."""

    def __init__(self, app: ASGIApp, public: bool) -> None:
        self.app, self.public = app, public
        self._uploads: dict[str, _Upload] = {}  # by path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in _SAFE:
            try:
                await self.app(scope, receive, send)
            finally:
                # Which lasts as long as a page is open.
                if scope["type"] == "http" and _HEARTBEAT in scope["path"]:
                    self._leave(scope["path"].rpartition("/")[2])
            return
        headers = Headers(scope=scope)
        refusal = None
        if not self.public:
            if _is_foreign(headers):
                refusal = 403, "this page takes no requests from other sites"
        elif scope["path"].endswith(_UPLOAD):
            address, size = (scope.get("client") or ("",))[0], _length(headers)
            if size <= self._room(address):
                send = self._noting(address, size, send)
            else:
                refusal = 413, "this page keeps no more uploads for now: try again in some minutes"
        elif _length(headers) > MOST_BODY:
            refusal = 413, f"a request to this page has at most {MOST_BODY:,} bytes"
        else:
            body = await Request(scope, receive).body()
            receive = _replaying(body, receive)
            if not self._has_own_files(body):
                refusal = 400, "a file must be uploaded to this page before it is used"
        if refusal is not None:
            await PlainTextResponse(refusal[1], refusal[0])(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _room(self, address: str) -> int:
        """Bytes that may still be uploaded from an address."""
        now = time.monotonic()
        self._delete(
            path
            for path, kept in self._uploads.items()
            if not kept.pages and now - kept.begun > UPLOAD_SECONDS
        )
        kept = self._uploads.values()
        own = sum(one.size for one in kept if one.address == address)
        return min(MOST_OF_ADDRESS - own, MOST_UPLOADS - sum(one.size for one in kept))

    def _noting(self, address: str, size: int, send: Send) -> Send:
        """A `send` that notes where Gradio put the files of an upload, as its answer says."""
        answer = bytearray()

        async def noting(message: Message) -> None:
            answer.extend(message.get("body", b""))
            if message["type"] == "http.response.body" and not message.get("more_body"):
                found = _parsed(bytes(answer))
                for path in found if isinstance(found, list) else ():
                    self._uploads[path] = _Upload(address, size)
            await send(message)

        return noting

    def _has_own_files(self, body: bytes) -> bool:
        """Whether all files of a request are uploads; Gradio would fetch an address, or a path."""
        values = _parsed(body)
        page = values.get("session_hash") if isinstance(values, dict) else None
        for sent in _files(values):
            path, url = sent.get("path"), sent.get("url")
            if path not in self._uploads or (url and not str(url).endswith(f"/file={path}")):
                return False
            self._uploads[path].pages.add(str(page))
        return True

    def _leave(self, page: str) -> None:
        """Delete the uploads that only this page has named."""
        own = [path for path, kept in self._uploads.items() if page in kept.pages]
        for path in own:
            self._uploads[path].pages.discard(page)
        self._delete(path for path in own if not self._uploads[path].pages)

    def _delete(self, paths: Iterator[str]) -> None:
        for path in list(paths):
            Path(path).unlink(missing_ok=True)
            del self._uploads[path]


def _is_foreign(headers: Headers) -> bool:
    """Whether a page of another site sends a request; programs do not say where they are from."""
    if site := headers.get("sec-fetch-site"):
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


def _length(headers: Headers) -> int:
    """Of the body; more than any limit if it is not said."""
    length = headers.get("content-length", "")
    return int(length) if length.isdecimal() else MOST_UPLOADS + 1


def _replaying(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives a body which was read already, then what else comes."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return left.pop() if left else await receive()

    return replay


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _files(value: Any) -> Iterator[dict[str, Any]]:
    """All that Gradio takes for a file in a parsed body."""
    if isinstance(value, dict):
        if isinstance(value.get("path"), str) and ("meta" in value or "url" in value):
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _files(part)


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
