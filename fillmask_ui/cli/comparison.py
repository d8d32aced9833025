"""What `fillmask-ui predict --compare` prints: two models at the masks of a text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fillmask_ui.cli.terminal import print_line, print_table

if TYPE_CHECKING:
    from fillmask_ui.comparing import Comparison
    from fillmask_ui.protocol import MaskedLM


def print_comparison(found: Comparison, models: Sequence[MaskedLM], *, bits: bool) -> None:
    """The tables of one text."""
    from fillmask_ui.show.compared import compared_name, first_words, mark, points, rank_change
    from fillmask_ui.show.numbers import cell_text

    unit, scale = ("bits", 1 / math.log(2)) if bits else ("nats", 1.0)
    vocabularies = [model.vocabulary for model in models]

    def loss(value: float | None) -> str:
        return "-" if value is None else f"{value * scale:.4f}"

    print_line(found.first.encoding.text, "bold")
    print_line(f"A: {found.first.signature.name}, B: {found.second.signature.name}")
    for note in found.notes:
        print_line(f"{note[:1].upper()}{note[1:]}.")
    for place, mask in enumerate(found.masks, start=1):
        name = f"Mask {place} of {len(found.masks)}" if len(found.masks) > 1 else "Mask"
        own, other = (compared_name(row, *vocabularies) for row in first_words(mask))
        story = f"first word flipped: {own} → {other}" if mask.flipped else f"both say {own}"
        print_line(f"\n{name}: {story}", "bold")
        entropies = f"entropy {loss(mask.entropy_nats)} → {loss(mask.other_entropy_nats)} {unit}"
        apart = f"KL(A || B) {loss(mask.kl_nats)}, Jensen-Shannon {loss(mask.js_nats)}, "
        print_line(entropies if found.by_word else apart + entropies)
        rows = []
        for row in mask.candidates:
            change = rank_change(row)
            ranks = [f"{rank:,}" if rank else "-" for rank in (row.rank, row.other_rank)]
            rows.append(
                (
                    compared_name(row, *vocabularies),
                    cell_text(row.probability) or "-",
                    cell_text(row.other_probability) or "-",
                    points(row) or "-",
                    " → ".join(ranks),
                    change.arrow,
                    mark(row),
                )
            )
        print_table(("word", ">P of A", ">P of B", ">B - A, points", ">rank", ">change", ""), rows)
    if found.joint:
        heads = ("text", f">NLL of A ({unit})", f">NLL of B ({unit})", "")
        together = (
            (own.text, loss(own.nll_nats), loss(own.other_nll_nats), mark(own))
            for own in found.joint
        )
        print_line("")
        print_table(heads, together, "All masks together")
    print_line("\nnew: only B lists it; gone: only A lists it", "dim")
    for signature in (found.first.signature, found.second.signature):
        print_line(str(signature), "dim")
    print_line("")
