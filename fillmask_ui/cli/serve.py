"""`fillmask-ui` without a command: the page."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from fillmask_ui.cli.options import given_options, typer_option
from fillmask_ui.errors import OptionError
from fillmask_ui.models.choice import ModelChoice
from fillmask_ui.options import options_of


def serve(
    context: typer.Context,
    host: Annotated[
        str | None,
        typer.Option(
            help="Address to listen on, 127.0.0.1 if not given; 0.0.0.0 for all of this machine's."
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Port; the first free one from 7860 if not given."),
    ] = None,
    model: Annotated[str, typer_option(options_of(ModelChoice)["reference"])] = "embedded",
    public: Annotated[
        bool,
        typer.Option("--public", help="Hardened settings for a page that strangers can reach."),
    ] = False,
    open_browser: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Look inside masked language models. Without a command: start the page."""
    if version:
        from fillmask_ui import __version__

        typer.echo(f"fillmask-ui {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is not None:
        _refuse_options_before(context)
        return
    from fillmask_ui.cli.progress import download_progress
    from fillmask_ui.models import ModelStore
    from fillmask_ui.ui.app import build_app, launch_options

    store = ModelStore()
    with download_progress() as update:
        # A model that cannot be loaded is said here, not to the first visitor.
        store.get(model, on_progress=update)
    demo = build_app(store, model, public=public)
    _pass_proxies_by(host)
    try:
        demo.launch(
            server_name=host, server_port=port, inbrowser=open_browser, **launch_options(public)
        )
    except OSError as error:
        raise OptionError(
            f"the page cannot listen on {host or '127.0.0.1'}, "
            f"{f'port {port}' if port else 'any port from 7860'}: {error}; choose another with "
            "--host or --port"
        ) from error


def _refuse_options_before(context: typer.Context) -> None:
    """An option of the page does nothing for a command, and is most likely meant for it."""
    given, command = given_options(context), context.invoked_subcommand
    if given:
        raise OptionError(
            f"{', '.join(given)} before {command!r} belongs to the page, which is not started: "
            f"write it after {command!r}, or leave it out"
        )


def _pass_proxies_by(host: str | None) -> None:
    """Let Gradio, which asks the page whether it is up, reach this machine without a proxy.

    Only where the environment names a proxy: the variable alone would hide those of the system.
    """
    from urllib.request import getproxies_environment

    named = getproxies_environment()
    if not named.keys() - {"no"}:
        return
    direct = dict.fromkeys([named.get("no", ""), "localhost", "127.0.0.1", host or ""])
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = ",".join(filter(None, direct))
