"""`fillmask-ui models`: what is at hand without a network."""

from __future__ import annotations

from dataclasses import asdict

from fillmask_ui.cli.options import Json
from fillmask_ui.cli.printing import print_json, table, wide_console


def models(as_json: Json = False) -> None:
    """List the models at hand: the embedded ones and those in the local cache."""
    from fillmask_ui.models import available_models

    available = available_models()
    if as_json:
        for model in available:
            print_json(asdict(model))
        return
    rows = (
        (m.reference, ", ".join(m.runtimes), m.where, m.note, f"{m.size_bytes / 1e6:,.1f}")
        for m in available
    )
    wide_console().print(table(("Model", "Runtime", "Where", "Note", ">MB"), rows))
