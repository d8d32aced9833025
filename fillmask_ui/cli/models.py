"""`fillmask-ui models`: what is at hand without a network."""

from __future__ import annotations

import json
from dataclasses import asdict

import typer

from fillmask_ui.cli.options import Json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("models")(models)


def models(as_json: Json = False) -> None:
    """List the models at hand: the embedded ones and those in the local cache."""
    from fillmask_ui.models import available_models

    available = available_models()
    if as_json:
        for model in available:
            typer.echo(json.dumps(asdict(model), ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("Model", "Runtime", "Where", "Note")
    table.add_column("MB", justify="right")
    for model in available:
        table.add_row(
            Text(model.reference),
            ", ".join(model.runtimes),
            model.where,
            Text(model.note),
            f"{model.size_bytes / 1e6:,.1f}",
        )
    Console().print(table)
