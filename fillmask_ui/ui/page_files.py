"""What the browser gets first: the page as it will look, its styles, and its scripts.

Scripts and styles are files that browsers keep, sent compressed. Gradio would send them inside of
every page, and run the scripts after it has read its own plan of the page; here they come first, so
that the first sight works before Gradio has built the page.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask_ui.extensions import features

# Folders of `ui/`, in the order in which their files are joined.
CORE_TABS = ("explore", "evaluate")
_SHEET = re.compile(rb'<link rel="stylesheet"[^>]*>')


class PageFiles:
    """An ASGI app in front of Gradio's."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        folders = page_folders()
        styles = json.dumps("".join(sources(folders, "css")))
        # A sheet that the page adopts comes after all of Gradio's, whenever those come. Inside of
        # Gradio's page its rules also have to be more specific than Gradio's.
        adopt = (
            f"const styles = {styles}; const sheet = new CSSStyleSheet(); "
            "const inside = '.gradio-container.gradio-container .contain'; "
            "sheet.replaceSync(`${styles} ${inside} {${styles}}`); "
            "document.adoptedStyleSheets.push(sheet);"
        )
        self.script = f"{{{adopt}}}{''.join(sources(folders, 'js'))}"
        digest = hashlib.sha256(self.script.encode()).hexdigest()[:16]
        self.address = f"/page-{digest}.js"
        self._head = f'<script src=".{self.address}"></script></head>'.encode()
        self.packed = GZipMiddleware(self._page, compresslevel=5)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ours = scope["type"] == "http" and scope["path"] in ("/", self.address)
        await (self.packed if ours else self.app)(scope, receive, send)

    async def _page(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if scope["method"] == "HEAD" and path == "/":  # Gradio would write the whole page first
            answer = HTMLResponse()
            del answer.headers["content-length"]  # which would be that of the page
            await answer(scope, receive, send)
        elif path == self.address:  # another content has another name
            headers = {"cache-control": "public, max-age=31536000, immutable"}
            script = Response(self.script, media_type="text/javascript", headers=headers)
            await script(scope, receive, send)
        elif scope["method"] == "GET":
            page = scope["app"].get_blocks()
            await self.app(scope, receive, self._completing(send, page.first_sight))
        else:
            await self.app(scope, receive, send)

    def _completing(self, send: Send, first_sight: str) -> Send:
        """A `send` that completes the page."""
        start: Message = {}

        async def sending(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            if start:
                message["body"] = self._complete(message["body"], first_sight.encode())
                MutableHeaders(scope=start)["content-length"] = str(len(message["body"]))
                await send(start)
                start = {}
            await send(message)

        return sending

    def _complete(self, page: bytes, first_sight: bytes) -> bytes:
        """Gradio's page with the script, behind its plan, and the first sight.

        Gradio's sheets come after that: a script waits for the sheets before it.
        """
        sheets = b"".join(_SHEET.findall(page))
        page = _SHEET.sub(b"", page).replace(b"</head>", self._head, 1)
        return page.replace(b"<gradio-app", first_sight + sheets + b"<gradio-app", 1)


def page_folders() -> list[Path]:
    """Where scripts and styles of the page lie: for all tabs, of each tab, of features on it."""
    on_page = (
        feature for feature in features() if feature.tabs or feature.modes or feature.on_page
    )
    return [*core_folders(*CORE_TABS), *(feature.folder for feature in on_page)]


def core_folders(*tabs: str) -> list[Path]:
    """The folders of scripts and styles for all tabs, and of some tabs of the core."""
    home = Path(__file__).parent
    return [home / "static", *(home / name for name in tabs)]


def sources(folders: Iterable[Path], ending: str) -> Iterator[str]:
    """The files of one kind, in the order in which they are joined: `page` and a namesake first."""
    for folder in folders:
        first = {f"page.{ending}", f"{folder.name}.{ending}"}
        for path in sorted(
            folder.glob(f"*.{ending}"), key=lambda path: (path.name not in first, path.name)
        ):
            yield path.read_text(encoding="utf-8")
