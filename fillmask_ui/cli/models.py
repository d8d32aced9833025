"""`fillmask-ui models`: what is at hand without a network."""

from __future__ import annotations

from dataclasses import asdict

from fillmask_ui.cli.options import Json
from fillmask_ui.cli.terminal import print_json, print_table
from fillmask_ui.models import available_models


def models(as_json: Json = False) -> None:
    """List the models at hand: the embedded ones and those in the local cache."""
    available = available_models()
    if as_json:
        for model in available:
            print_json(asdict(model))
        return
    rows = (
        (m.reference, ", ".join(m.runtimes), m.where, m.note, f"{m.size_bytes / 1e6:,.1f}")
        for m in available
    )
    print_table(("Model", "Runtime", "Where", "Note", ">MB"), rows)
