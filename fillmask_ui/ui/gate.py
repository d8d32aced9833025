"""What a request must be for Gradio to see it.

A page for its own machine has no login: whoever reaches it can do what its user can. Its address is
no wall against a site in the user's browser, whose name may come to mean 127.0.0.1 ("DNS
rebinding"): the browser then takes both for one site. Such a request carries that name as its Host.
"""

import os
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

# Gradio answers longer addresses with an error of its own, httpx cannot read 65,536 characters.
LONGEST_ADDRESS = 60_000

_LOCAL = ("localhost", "127.0.0.1", "[::1]")


class Gate:
    """An ASGI app in front of the page.

    Args:
        app: the page.
        hosts: names, lower case, that a request may call the page by; empty for any.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := self._refusal(scope)) is not None:
            await refusal(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        length = len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"])
        if length > LONGEST_ADDRESS:
            said = f"The address has {length:,} characters; {LONGEST_ADDRESS:,} is the most."
            return PlainTextResponse(said, 414)
        host = Headers(scope=scope).get("host", "")
        if self.hosts and host_name(host) not in self.hosts:
            known = ", ".join(sorted(self.hosts))
            said = (
                f"This page answers to {known}, not to {host[:100]!r}: start it with further names "
                "in FILLMASK_UI_HOSTS, separated by commas, or with --public."
            )
            return PlainTextResponse(said, 400)
        return None


def host_name(host: str) -> str:
    """The name of a Host header, without its port, in lower case.

    >>> host_name("Localhost:7860"), host_name("[::1]:7860"), host_name("[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    name, colon, port = host.rpartition(":")
    return (name if colon and "]" not in port else host).lower()


def hosts_of(server_name: str | None, *, public: bool) -> frozenset[str]:
    """Names by which a page may be called; empty where any will do.

    Args:
        server_name: what it listens on; None for `GRADIO_SERVER_NAME`, else 127.0.0.1.
        public: whether it is for strangers, as which it guards nothing of its user's.
    """
    own = (server_name or os.environ.get("GRADIO_SERVER_NAME") or "127.0.0.1").lower()
    is_local = own.startswith("127.") or own in (*_LOCAL, "::1")
    if public or not is_local:
        return frozenset()
    named = os.environ.get("FILLMASK_UI_HOSTS", "").lower().split(",")
    return frozenset({*_LOCAL, own, *(host_name(name.strip()) for name in named)} - {"", "::1"})
