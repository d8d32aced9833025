"""`fillmask-ui predict`: the words at the masks of texts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fillmask_ui.cli.options import Json, option, with_options
from fillmask_ui.cli.terminal import (
    attempts,
    check_file,
    file_texts,
    load,
    print_line,
    print_table,
    show_each,
    tell,
)
from fillmask_ui.errors import OptionError
from fillmask_ui.models.model_choice import ModelChoice

if TYPE_CHECKING:
    from fillmask_ui.comparing import Comparison
    from fillmask_ui.protocol import MaskedLM
    from fillmask_ui.records import Filling


@with_options
def predict(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT...", help="Sentences with [MASK], <mask> or ___."),
    ] = None,
    *,
    model: ModelChoice,
    top_k: Annotated[str, option("1 to 100, or all.", "--top-k", "-k", metavar="K")] = "5",
    candidates: Annotated[
        str | None, option("Words to score at each mask.", metavar='"A,B"')
    ] = None,
    joint: Annotated[
        int, option("Joint fillings of several masks; 0 for none.", min=0, max=100)
    ] = 5,
    file: Annotated[
        str | None,
        option("Read texts from a file, one per line; - for standard input.", metavar="F|-"),
    ] = None,
    compare: Annotated[
        str | None, option("A second model: both side by side at each mask.", metavar="REF")
    ] = None,
    bits: Annotated[bool, option("NLL and entropy in bits.", "--bits")] = False,
    as_json: Json = False,
) -> None:
    """Show the most probable words at each mask, with probability and NLL."""
    # `--help` needs none of this.
    from fillmask_ui.filling import fill
    from fillmask_ui.filling.prompt import split_words

    k = parse_top_k(top_k)
    words = split_words(candidates or "")
    if candidates is not None and not words:
        raise OptionError(f"--candidates {candidates!r} has no word: write them as in: cat, dog")
    given = texts or []
    if not given and file is None:
        raise OptionError(
            "no text was given: write one in quotes, as in: "
            'fillmask-ui predict "The capital of France is [MASK]." or name a --file'
        )
    if file is not None:
        check_file(file)
    if not as_json:
        # What draws the tables comes in while the weights are read, which leaves a core idle.
        threading.Thread(target=_import_tables).start()
    models = [load(model)]
    look: Callable[..., Filling | Comparison] = fill
    if compare is not None:
        from fillmask_ui.comparing import compare as look

        models.append(load(model.second(compare)))
    if len(words) >= _MANY_WORDS:
        tell(f"scoring {len(words):,} candidates at each mask, about 100 a second...")
    of_file = () if file is None else file_texts(file, needed=not given)

    def look_at(text: str) -> Filling | Comparison:
        return look(*models, text, top_k=k, candidates=words, joint=joint)

    unit = "bits" if bits else "nats"

    def show(found: Any) -> None:
        if compare is None:
            print_filling(found, unit)
        else:
            print_comparison(found, models, unit)

    several = len(given) > 1 or file is not None
    results = attempts(look_at, chain(given, of_file))
    show_each(results, show, as_json=as_json, several=several)


# From so many candidates on it takes seconds, as each word of several sub-tokens is looked up.
_MANY_WORDS = 500


def _import_tables() -> None:
    with suppress(Exception):  # else it is said where a table is drawn
        import_module("rich.table")


def parse_top_k(value: str) -> int | None:
    """`all` or a number; its range is checked where it is used.

    >>> parse_top_k("all") is None, parse_top_k("7")
    (True, 7)
    """
    if value.strip().lower() == "all":
        return None
    try:
        return int(value)
    except ValueError:
        raise OptionError(f"--top-k was {value!r}: give a number from 1 to 100, or 'all'") from None


def print_filling(filling: Filling, unit: str) -> None:
    """The tables of one text."""
    from fillmask_ui.show.numbers import loss_form
    from fillmask_ui.show.table import Column, Table

    loss, brief = loss_form(unit), loss_form(unit, 3)

    def chance(form: str = ".3g") -> tuple[Column, Column]:
        return Column("probability", form), Column(f"NLL ({unit})", loss)

    def parts(between: str) -> Callable[[Any], str]:
        return lambda own: between.join(f"{part.token} {brief(part.nll_nats)}" for part in own)

    rank, token_id = (Column(name, form) for name, form in (("rank", ","), ("id", "")))
    print_line(filling.encoding.text, "bold")
    for number, mask in enumerate(filling.masks, start=1):
        name = f"Mask {number} of {len(filling.masks)}" if len(filling.masks) > 1 else "Mask"
        print_line(
            f"\n{name} at position {mask.position}: entropy {brief(mask.entropy_nats)} {unit},"
            f" perplexity {mask.perplexity:,.1f}"
        )
        best = (
            (own.rank, own.word, own.token, own.token_id, own.probability, own.nll_nats)
            for own in mask.candidates
        )
        print_table(Table.of((rank, "word", "token", token_id, *chance(".4f")), best))
        if mask.scored:
            heads: tuple[str | Column, ...] = ("word", replace(rank, missing="-"), *chance())
            scored = (
                (own.word, own.rank, own.probability, own.nll_nats, own.parts)
                for own in mask.scored
            )
            heads = (*heads, Column("sub-tokens", parts("  ")))
            print_table(Table.of(heads, scored, "Your candidates"))
    if filling.joint:
        columns = ("text", *chance(), Column("each given those before it", parts(" + ")))
        together = ((own.text, own.probability, own.nll_nats, own.parts) for own in filling.joint)
        print_line("")
        print_table(Table.of(columns, together, "All masks together"))
    print_line(f"\n{filling.signature}\n", "dim")


def print_comparison(found: Comparison, models: Sequence[MaskedLM], unit: str) -> None:
    """The tables of one text under two models."""
    from fillmask_ui.show.numbers import loss_form
    from fillmask_ui.show.table import Column, Table
    from fillmask_ui.show.words import compared_name, first_words, mark, points, rank_change

    vocabularies = [model.vocabulary for model in models]
    loss = loss_form(unit)
    print_line(found.first.encoding.text, "bold")
    print_line(f"A: {found.first.signature.name}, B: {found.second.signature.name}")
    for note in found.notes:
        print_line(f"{note[:1].upper()}{note[1:]}.")
    for place, mask in enumerate(found.masks, start=1):
        name = f"Mask {place} of {len(found.masks)}" if len(found.masks) > 1 else "Mask"
        own, other = (compared_name(row, *vocabularies) for row in first_words(mask))
        story = f"first word flipped: {own} → {other}" if mask.flipped else f"both say {own}"
        print_line(f"\n{name}: {story}", "bold")
        said = f"entropy {loss(mask.entropy_nats)} → {loss(mask.other_entropy_nats)} {unit}"
        if mask.kl_nats is not None and mask.js_nats is not None:
            said = f"KL(A || B) {loss(mask.kl_nats)}, Jensen-Shannon {loss(mask.js_nats)}, {said}"
        print_line(said)
        columns: tuple[str | Column, ...] = (
            *("word", Column("P of A", missing="-"), Column("P of B", missing="-")),
            *(Column(name, right=True) for name in ("B - A, points", "rank", "change")),
            "",
        )
        rows = (
            (
                compared_name(row, *vocabularies),
                row.probability,
                row.other_probability,
                points(row) or "-",
                " → ".join(f"{rank:,}" if rank else "-" for rank in (row.rank, row.other_rank)),
                rank_change(row).arrow,
                mark(row),
            )
            for row in mask.candidates
        )
        print_table(Table.of(columns, rows))
    if found.joint:
        losses = (Column(f"NLL of {name} ({unit})", loss, missing="-") for name in "AB")
        together = ((own.text, own.nll_nats, own.other_nll_nats, mark(own)) for own in found.joint)
        print_line("")
        print_table(Table.of(("text", *losses, ""), together, "All masks together"))
    print_line("\nnew: only B lists it; gone: only A lists it", "dim")
    for signature in (found.first.signature, found.second.signature):
        print_line(str(signature), "dim")
    print_line("")
