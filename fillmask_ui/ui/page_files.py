"""The scripts and styles of the page: one file that browsers keep, named in the page.

Both are sent compressed. Gradio would send the scripts inside of every page, and run them after it
has read its own plan of the page; here they come first, so that they can choose the tab that opens.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class PageFiles:
    """An ASGI app in front of Gradio's; `folders` of `ui/` hold the scripts and styles."""

    def __init__(self, app: ASGIApp, folders: Sequence[str]) -> None:
        self.app = app
        styles = json.dumps("".join(_sources(folders, "css")))
        # Gradio puts these styles behind its own, which they override.
        script = f"{''.join(_sources(folders, 'js'))}window.gradio_config.css = {styles};"
        digest = hashlib.sha256(script.encode()).hexdigest()[:16]
        self.path, self.script = f"/page-{digest}.js", script

        self.packed = GZipMiddleware(self._page, compresslevel=5)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ours = scope["type"] == "http" and scope["path"] in ("/", self.path)
        await (self.packed if ours else self.app)(scope, receive, send)

    async def _page(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == self.path:  # another content has another name
            kept = {"cache-control": "public, max-age=31536000, immutable"}
            file = Response(self.script, media_type="text/javascript", headers=kept)
            await file(scope, receive, send)
        elif scope["method"] == "GET":
            await self.app(scope, receive, self._naming_it(send))
        else:
            await self.app(scope, receive, send)

    def _naming_it(self, send: Send) -> Send:
        """A `send` that puts the script at the end of the head, behind Gradio's plan."""
        start: Message = {}
        tag = f'<script src=".{self.path}"></script></head>'.encode()

        async def sending(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            if start:
                body = message["body"] = message["body"].replace(b"</head>", tag, 1)
                MutableHeaders(scope=start)["content-length"] = str(len(body))
                await send(start)
                start = {}
            await send(message)

        return sending


def _sources(folders: Sequence[str], ending: str) -> Iterator[str]:
    """The files of one kind, in the order in which they are joined: `page` and a namesake first."""
    for folder in (Path(__file__).parent / name for name in folders):
        first = {f"page.{ending}", f"{folder.name}.{ending}"}
        for path in sorted(
            folder.glob(f"*.{ending}"), key=lambda path: (path.name not in first, path.name)
        ):
            yield path.read_text(encoding="utf-8")
