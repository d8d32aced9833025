"""`fillmask-ui` without a command: the page."""

from __future__ import annotations

import os
import signal
import time
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import typer

from fillmask_ui import __version__
from fillmask_ui.cli import options
from fillmask_ui.errors import OptionError, first_line

if TYPE_CHECKING:
    from collections.abc import Mapping


def serve(
    context: typer.Context,
    host: str | None = options.HOST,
    port: int | None = options.PORT,
    model: str = options.PICKED_MODEL,
    public: bool = options.PUBLIC,
    open_browser: bool = options.option(False, "Open the page in the browser.", "--open"),
    show_version: bool = options.option(False, "Print the version.", "--version", "-V"),
    traceback: bool = options.option(  # noqa: ARG001 - `cli.main.run` heeds it, behind any command
        False, "Show a traceback for errors; works after any command.", "--traceback"
    ),
) -> None:
    """Look inside masked language models. Without a command: start the page."""
    if show_version:
        version()
        raise typer.Exit
    if command := context.invoked_subcommand:
        if flags := options.typed_flags(context):
            raise OptionError(
                f"{', '.join(flags)} before {command!r} is an option of the page: write it after "
                f"{command!r}, or leave it out"
            )
        return
    start_page(model, host=host, port=port, public=public, open_browser=open_browser)


def version() -> None:
    """Print the version."""
    typer.echo(f"fillmask-ui {__version__}")


def start_page(
    model: str,
    *,
    host: str | None = None,
    port: int | None = None,
    public: bool = False,
    query: str = "",
    open_browser: bool = False,
    endpoint: str = "",
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Serve the page until it is interrupted; an `OptionError` if it cannot listen there.

    Its address is printed, and opened in the browser, with the `query` that chooses a tab. An
    `endpoint` for programs is the path below it. Features read their `settings` from the session.
    """
    check_address(host)
    import webbrowser

    from fillmask_ui.cli.terminal import download_progress, say
    from fillmask_ui.models import ModelStore
    from fillmask_ui.ui.page import build_app, launch, launch_options

    store = ModelStore()
    with download_progress() as update:  # a failure is told here, not to the first visitor
        store.get(model, on_progress=update)
    demo = build_app(store, model, public=public, settings=settings)
    _pass_proxies_by(host)
    # A service manager's way to say Ctrl-C; by itself Python would end without tidying up.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        launch_settings = launch_options(public, host) | (settings or {}).get("launch", {})
        with redirect_stdout(StringIO()):  # Gradio tells of its tools also where it is quiet
            url = launch(demo, server_port=port, quiet=True, **launch_settings)
        address = f"{url}?{query}" if query else url
        say(f"The page is at {address} (Ctrl-C stops it)")
        if endpoint:
            say(f"Programs find the tools at {url}{endpoint}")
        if open_browser:
            webbrowser.open(address)
        while demo.is_running:
            time.sleep(0.1)
    except KeyboardInterrupt:
        pass
    except OSError as error:
        port_text = f"port {port}" if port else "any port from 7860"
        in_use = "empty port" in str(error)  # Gradio's words, with advice for programmers
        reason = "another program uses it" if in_use else error
        raise OptionError(
            f"the page cannot listen on {host or '127.0.0.1'}, {port_text}: {reason}; choose "
            "another with --host or --port"
        ) from error
    demo.close(verbose=False)


def check_address(host: str | None = None) -> None:
    """An `OptionError` if nothing can listen there; Gradio itself would fail late, or hang."""
    import socket

    port = os.environ.get("GRADIO_SERVER_PORT", "7860")
    if not (port.isdecimal() and len(port) < 6 and 0 < int(port) < 65_536):
        raise OptionError(f"GRADIO_SERVER_PORT is {port!r}: set it to a port from 1 to 65535")
    name = host or os.environ.get("GRADIO_SERVER_NAME") or "127.0.0.1"
    try:
        (family, _, _, _, address), *_ = socket.getaddrinfo(
            name.strip("[]"), None, type=socket.SOCK_STREAM
        )
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind(address)  # at any free port
    except (OSError, ValueError) as error:
        raise OptionError(
            f"the page cannot listen on {name}: {first_line(error)}; give an address of this "
            "machine (--host, GRADIO_SERVER_NAME)"
        ) from error


def _pass_proxies_by(host: str | None) -> None:
    """Let Gradio, which asks the page whether it is up, reach this machine without a proxy."""
    from urllib.request import getproxies_environment

    proxies = getproxies_environment()
    if not proxies.keys() - {"no"}:  # the variable alone would hide the system's proxies
        return
    direct = dict.fromkeys([proxies.get("no", ""), "localhost", "127.0.0.1", host or ""])
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = ",".join(name for name in direct if name)
