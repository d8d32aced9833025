"""What the shell and files have: words by sentences, and every number in a row of its own."""

from collections.abc import Sequence

from fillmask_ui.features.slots.word_spread import SlotTable
from fillmask_ui.show.numbers import loss_form, percent
from fillmask_ui.show.table import Column, Table


def wide_table(table: SlotTable, unit: str) -> Table:
    """Probabilities and spreads of words by sentences; the longer of the two lists is the rows."""
    loss = loss_form(unit, 2)
    if len(table.words) > len(table.sentences):
        names = [Column(sentence.name, percent, is_name=True) for sentence in table.sentences]
        words = [(word.word, *word.probability, loss(word.spread_nats)) for word in table.words]
        return Table.of(["word", *names, Column(f"spread ({unit})", right=True)], words)
    columns: list[str | Column] = ["sentence"]
    columns += (Column(word.word, percent, is_name=True) for word in table.words)
    rows: list[tuple[object, ...]] = []
    for index, sentence in enumerate(table.sentences):
        rows.append((sentence.text, *(word.probability[index] for word in table.words)))
    rows.append((f"spread ({unit})", *(loss(word.spread_nats) for word in table.words)))
    return Table.of(columns, rows)


def long_table(tables: Sequence[SlotTable]) -> Table:
    """A row per model, word and sentence."""
    columns = (
        Column("model", is_name=True),
        "sentence",
        "filling_1",
        "filling_2",
        "word",
        Column("probability", percent),
        Column("nll_nats", ".4f"),
    )
    rows = []
    for table in tables:
        for word in table.words:
            for index, sentence in enumerate(table.sentences):
                first, second = (*sentence.fillings, None)[:2]
                numbers = (word.probability[index], word.nll_nats[index])
                name = table.signature.name
                rows.append((name, sentence.text, first, second, word.word, *numbers))
    return Table.of(columns, rows)
