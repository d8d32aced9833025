"""`fillmask-ui` without a command: the page."""

from __future__ import annotations

from typing import Annotated

import typer

from fillmask_ui.cli.options import Model
from fillmask_ui.errors import OptionError


def register(app: typer.Typer) -> None:
    """Add the options of the page to the program itself."""
    app.callback(invoke_without_command=True)(serve)


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
        typer.Option(min=0, max=65535, help="Port; the first free one from 7860 if not given."),
    ] = None,
    model: Model = "embedded",
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
        return
    from fillmask_ui.cli.progress import download_progress
    from fillmask_ui.models import ModelStore
    from fillmask_ui.ui.app import build_app, launch_options

    store = ModelStore()
    with download_progress() as update:
        # A model that cannot be loaded is said here, not to the first visitor.
        store.get(model, on_progress=update)
    demo = build_app(store, model, public=public)
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
