"""`fillmask-ui models`: what is at hand without a network."""

from dataclasses import asdict

from fillmask_ui.cli.options import JSON
from fillmask_ui.cli.terminal import print_json, print_table
from fillmask_ui.models import available_models
from fillmask_ui.show.table import Column, Table


def models(as_json: bool = JSON) -> None:
    """List the models that load without a network: embedded ones and the local cache."""
    available = available_models()
    if as_json:
        for model in available:
            print_json(asdict(model))
        return
    rows = []
    for model in available:
        runtimes, megabytes = ", ".join(model.runtimes), model.size_bytes / 1e6
        rows.append((model.reference, runtimes, model.where, model.note, megabytes))
    columns = ("model", "runtime", "where", "note", Column("MB", ",.1f"))
    print_table(Table.of(columns, rows))
