"""`fillmask-ui models`: what is at hand without a network, and what the files of a model say."""

from dataclasses import asdict
from typing import Annotated

from fillmask_ui.cli.options import JSON, argument, with_options
from fillmask_ui.cli.terminal import print_json, print_line, print_table
from fillmask_ui.models import available_models
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.show.table import Column, Table


@with_options
def models(
    reference: str | None = argument(
        None,
        "REF",
        "Describe this model: its card, and inputs, outputs and operators of its graph.",
    ),
    *,
    choice: Annotated[ModelChoice, ("onnx_file", "runtime")],
    as_json: bool = JSON,
) -> None:
    """List the models that load without a network, or describe one by its files."""
    if reference is not None:
        describe(
            ModelChoice(reference, onnx_file=choice.onnx_file, runtime=choice.runtime), as_json
        )
        return
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


def describe(choice: ModelChoice, as_json: bool) -> None:
    """Print the facts of a model, without its card."""
    from fillmask_ui.models.load import find_files
    from fillmask_ui.models.model_facts import read_facts
    from fillmask_ui.show.model_facts import facts_table, graph_tables

    facts = read_facts(find_files(choice))
    if as_json:
        print_json(facts.to_dict())
        return
    for table in (facts_table(facts), *graph_tables(facts)):
        print_table(table)
    if facts.card:
        print_line(f"Card: README.md, {len(facts.card):,} characters")
