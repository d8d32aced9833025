"""`fillmask-ui slots`: words over the sentences of a template."""

from pathlib import Path

from fillmask_ui.cli.options import (
    BASELINE,
    IN_BITS,
    JSON,
    argument,
    compared,
    file_option,
    option,
    with_options,
)
from fillmask_ui.cli.terminal import load, print_json, print_line, print_table, warn
from fillmask_ui.errors import OptionError
from fillmask_ui.features.slots import word_spread
from fillmask_ui.features.slots.slot_tables import long_table, wide_table
from fillmask_ui.files import write_text
from fillmask_ui.filling import MAX_TOP_K
from fillmask_ui.filling.prompt import split_words
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.records import ROLES


@with_options
def slots(
    template: str = argument(
        ..., "TEMPLATE", "Up to two slots and a mask, as in '{He|She} works as a [MASK].'"
    ),
    *,
    model: ModelChoice,
    candidates: str | None = option(
        None, "Compare these words, of one or several sub-tokens.", metavar='"A,B"'
    ),
    top_k: int = option(
        12, "Number of words, unless --candidates is given.", "--top-k", "-k", min=1, max=MAX_TOP_K
    ),
    baseline: str | None = BASELINE,
    csv: Path | None = file_option(None, "Write a line per word and sentence to this file."),
    bits: bool = IN_BITS,
    as_json: bool = JSON,
) -> None:
    """Compare the probability of words over the sentences of a template."""
    chosen = split_words(candidates or "")
    if candidates is not None and not chosen:
        raise OptionError(f"--candidates {candidates!r} has no word: write them as in: cat, dog")
    models = [load(choice) for choice in compared(model, baseline)]
    if len(models) > 1 and not chosen:
        # Both models have the words that the reference chooses, as far as they know them.
        reference = word_spread.slots(models[0], template, top_k=top_k)
        chosen_words = [word.word for word in reference.words]
        chosen, problems = word_spread.spellable_words(models, template, chosen_words)
        for problem in problems:
            warn(problem)
    tables = [word_spread.slots(loaded, template, chosen, top_k=top_k) for loaded in models]
    if csv is not None:
        write_text(long_table(tables).to_csv(), csv)
    records = [table.to_dict() for table in tables]
    if as_json:
        print_json(records[0] if len(records) == 1 else dict(zip(ROLES, records, strict=True)))
        return
    print_line(template, "bold")
    for table in tables:
        print_table(wide_table(table, "bits" if bits else "nats"))
        print_line(f"{table.signature}\n", "dim")
