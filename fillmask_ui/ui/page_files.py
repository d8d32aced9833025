"""What the browser gets first: the page as it will look, its styles, and its scripts.

Scripts and styles are files that browsers keep, sent compressed. Gradio would send them inside of
every page, and run the scripts after it has read its own plan of the page; here they come first, so
that they can choose the tab that opens. Until Gradio has built the page, a skeleton stands there.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask_ui.extensions import features
from fillmask_ui.show.render import render

# Folders of `ui/`, in the order in which their files are joined.
CORE_TABS = ("explore", "evaluate")
_MEDIA_TYPES = {"css": "text/css", "js": "text/javascript"}


class PageFiles:
    """An ASGI app in front of Gradio's; `tabs` are their labels."""

    def __init__(self, app: ASGIApp, title: str, tabs: Sequence[str]) -> None:
        self.app = app
        folders = page_folders()
        styles = "".join(sources(folders, "css"))
        # Gradio puts these styles behind its own, which they override.
        script = (
            f"{''.join(sources(folders, 'js'))}window.gradio_config.css = {json.dumps(styles)};"
        )
        self.files = {
            _address(text, kind): text for text, kind in ((styles, "css"), (script, "js"))
        }
        style, script = self.files
        link = f'<link rel="stylesheet" href=".{style}" id="first">'
        skeleton = render("ui/skeleton.html", title=title, tabs=tabs)
        self._added = {
            b"</head>": f'{link}<script src=".{script}"></script></head>',
            b"<gradio-app": f"{skeleton}<gradio-app",
        }
        self.packed = GZipMiddleware(self._page, compresslevel=5)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ours = scope["type"] == "http" and scope["path"] in ("/", *self.files)
        await (self.packed if ours else self.app)(scope, receive, send)

    async def _page(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if scope["method"] == "HEAD" and path == "/":  # Gradio would write the whole page first
            answer = HTMLResponse()
            del answer.headers["content-length"]  # which would be that of the page
            await answer(scope, receive, send)
        elif path in self.files:  # another content has another name
            kept = {"cache-control": "public, max-age=31536000, immutable"}
            kind = _MEDIA_TYPES[path.rpartition(".")[2]]
            await Response(self.files[path], media_type=kind, headers=kept)(scope, receive, send)
        elif scope["method"] == "GET":
            await self.app(scope, receive, self._completing(send))
        else:
            await self.app(scope, receive, send)

    def _completing(self, send: Send) -> Send:
        """A `send` that adds the files, behind Gradio's plan, and the skeleton to the page."""
        start: Message = {}

        async def sending(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            if start:
                for place, added in self._added.items():
                    message["body"] = message["body"].replace(place, added.encode(), 1)
                MutableHeaders(scope=start)["content-length"] = str(len(message["body"]))
                await send(start)
                start = {}
            await send(message)

        return sending


def _address(text: str, kind: str) -> str:
    return f"/page-{hashlib.sha256(text.encode()).hexdigest()[:16]}.{kind}"


def page_folders() -> list[Path]:
    """Where scripts and styles of the page lie: for all tabs, of each tab, of features on it."""
    on_page = (own for own in features() if own.tabs or own.modes or own.on_page)
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
