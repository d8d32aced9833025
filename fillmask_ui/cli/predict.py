"""`fillmask-ui predict`: the words at the masks of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from operator import attrgetter
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

from fillmask_ui.cli.options import (
    Baseline,
    Compare,
    InBits,
    Json,
    MaskedTexts,
    TextFile,
    compared,
    option,
    with_options,
)
from fillmask_ui.cli.terminal import (
    attempts,
    given_texts,
    load,
    print_line,
    print_table,
    show_each,
)
from fillmask_ui.errors import OptionError
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.records import ROLES

if TYPE_CHECKING:
    from fillmask_ui.comparing import Comparison
    from fillmask_ui.filling import Filling
    from fillmask_ui.protocol import MaskedLM

_ADVICE = (
    ' in quotes, as in: fillmask-ui predict "The capital of France is [MASK]." or name a --file'
)


@with_options
def predict(
    texts: MaskedTexts = None,
    *,
    model: ModelChoice,
    top_k: Annotated[str, option("1 to 100, or all.", "--top-k", "-k", metavar="K")] = "5",
    candidates: Annotated[
        str | None, option("Words to score at each mask.", metavar='"A,B"')
    ] = None,
    joint: Annotated[
        int, option("Joint fillings of several masks; 0 for none.", min=0, max=100)
    ] = 5,
    beam_width: Annotated[
        int, option("Hypotheses kept while joint fillings are searched for.", metavar="N")
    ] = 16,
    file: TextFile = None,
    baseline: Baseline = None,
    compare: Compare = None,
    bits: InBits = False,
    as_json: Json = False,
) -> None:
    """Show the most probable words at each mask, with probability and NLL."""
    from fillmask_ui.filling import fill
    from fillmask_ui.filling.prompt import split_words

    words = split_words(candidates or "")
    if candidates is not None and not words:
        raise OptionError(f"--candidates {candidates!r} has no word: write them as in: cat, dog")
    asked = {
        "top_k": parse_top_k(top_k),
        "candidates": words,
        "joint": joint,
        "beam_width": beam_width,
    }
    sentences, several = given_texts(texts, file, _ADVICE)
    if not as_json:  # what draws the tables is imported while the weights are read
        Thread(target=import_module, args=("rich.table",)).start()
    models = [load(own) for own in compared(model, baseline, compare)]
    unit = "bits" if bits else "nats"
    look: Callable[..., Any] = fill
    show = partial(print_filling, unit=unit)
    if len(models) > 1:
        from fillmask_ui.comparing import compare as look

        show = partial(print_comparison, models=models, unit=unit)
    results = attempts(lambda text: look(*models, text, **asked), sentences)
    show_each(results, show, as_json=as_json, several=several)


def parse_top_k(value: str) -> int | None:
    """`all` or a number; `fill` checks its range.

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
    from fillmask_ui.show.numbers import loss_form, percent
    from fillmask_ui.show.table import Column, Table

    loss, brief = loss_form(unit), loss_form(unit, 3)
    chance = Column("probability", percent), Column(f"NLL ({unit})", loss)
    heads = "rank", "word", "token", Column("id", ""), *chance
    scored = "word", Column("rank", missing="-"), *chance, "sub-tokens"
    best = attrgetter("rank", "word", "token", "token_id", "probability", "nll_nats")

    def parts(own: Any, between: str) -> str:
        return between.join(f"{part.token} {brief(part.nll_nats)}" for part in own.parts)

    print_line(filling.encoding.text, "bold")
    for number, mask in enumerate(filling.masks, start=1):
        print_line(
            f"\n{_name(number, filling.masks)} at position {mask.position}: "
            f"entropy {brief(mask.entropy_nats)} {unit}, perplexity {mask.perplexity:,.1f}"
        )
        print_table(Table.of(heads, map(best, mask.candidates)))
        if mask.scored:
            rows = [
                (own.word, own.rank, own.probability, own.nll_nats, parts(own, "  "))
                for own in mask.scored
            ]
            print_table(Table.of(scored, rows, "Your candidates"))
    if filling.joint:
        together = [
            (own.text, own.probability, own.nll_nats, parts(own, " + ")) for own in filling.joint
        ]
        columns = "text", *chance, "each given those before it"
        print_line("")
        print_table(Table.of(columns, together, "All masks together"))
    print_line(f"\n{filling.signature}\n", "dim")


def _name(number: int, masks: Sequence[Any]) -> str:
    return f"Mask {number} of {len(masks)}" if len(masks) > 1 else "Mask"


def print_comparison(found: Comparison, models: Sequence[MaskedLM], unit: str) -> None:
    """The tables of one text under two models."""
    from fillmask_ui.show.numbers import loss_form, percent
    from fillmask_ui.show.table import Column, Table
    from fillmask_ui.show.words import compared_name, first_words, mark, points, rank_change

    first, second = models
    name = partial(compared_name, first=first.vocabulary, second=second.vocabulary)
    loss = loss_form(unit)
    columns: tuple[str | Column, ...] = (
        "word",
        *(Column(role, percent, missing="-") for role in ROLES),
        *(Column(head, right=True) for head in ("difference, points", "rank", "change")),
        "",
    )
    losses = (Column(f"{role} NLL ({unit})", loss, missing="-") for role in ROLES)
    print_line(found.first.encoding.text, "bold")
    print_line(f"Reference: {first.signature.name}, candidate: {second.signature.name}")
    for note in found.notes:
        print_line(f"{note[:1].upper()}{note[1:]}.")
    for number, mask in enumerate(found.masks, start=1):
        own, other = map(name, first_words(mask))
        story = f"first word flipped: {own} → {other}" if mask.flipped else f"both say {own}"
        print_line(f"\n{_name(number, found.masks)}: {story}", "bold")
        said = f"entropy {loss(mask.entropy_nats)} → {loss(mask.other_entropy_nats)} {unit}"
        if mask.kl_nats is not None and mask.js_nats is not None:
            kl, js = loss(mask.kl_nats), loss(mask.js_nats)
            said = f"KL(reference || candidate) {kl}, Jensen-Shannon {js}, {said}"
        print_line(said)
        rows = (
            (
                *(name(row), row.probability, row.other_probability, points(row) or "-"),
                " → ".join(f"{rank:,}" if rank else "-" for rank in (row.rank, row.other_rank)),
                *(rank_change(row).arrow, mark(row)),
            )
            for row in mask.candidates
        )
        print_table(Table.of(columns, rows))
    if found.joint:
        together = ((own.text, own.nll_nats, own.other_nll_nats, mark(own)) for own in found.joint)
        print_line("")
        print_table(Table.of(("text", *losses, ""), together, "All masks together"))
    print_line("\nnew: only the candidate lists it; gone: only the reference lists it", "dim")
    for model in models:
        print_line(str(model.signature), "dim")
    print_line("")
