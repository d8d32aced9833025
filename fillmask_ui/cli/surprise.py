"""`fillmask-ui surprise`: the surprisal of each word of texts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fillmask_ui.cli.options import Baseline, Compare, InBits, Json, compared, with_options
from fillmask_ui.cli.terminal import attempts, load, print_line, print_table, show_each
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.records import ROLES

if TYPE_CHECKING:
    from fillmask_ui.comparing.word_contrast import ComparedWord, SentenceComparison
    from fillmask_ui.filling.word_surprisal import SentenceSurprisal, WordSurprisal


@with_options
def surprise(
    texts: Annotated[
        list[str], typer.Argument(metavar="TEXT...", help="Sentences without a mask.")
    ],
    *,
    model: ModelChoice,
    baseline: Baseline = None,
    compare: Compare = None,
    bits: InBits = False,
    as_json: Json = False,
) -> None:
    """Show the loss of every word, each hidden in turn, and what the model wanted."""
    from fillmask_ui.comparing.word_contrast import compare_sentence
    from fillmask_ui.filling import surprisal

    models = [load(own) for own in compared(model, baseline, compare)]
    asked: Any = compare_sentence if models[1:] else surprisal
    look: Any = partial(asked, *models)
    show: Any = print_comparison if models[1:] else print_surprisal
    show = partial(show, unit="bits" if bits else "nats")
    show_each(attempts(look, texts), show, as_json=as_json, several=len(texts) > 1)


def print_surprisal(found: SentenceSurprisal, unit: str) -> None:
    """The table and the figures of one text."""
    from fillmask_ui.show.numbers import loss_form, percent
    from fillmask_ui.show.table import Column, Table

    loss = loss_form(unit, 3)
    columns = (
        *("word", Column(f"NLL ({unit})", loss_form(unit)), Column("probability", percent)),
        *(Column("rank", missing="-"), "the model wanted", "sub-tokens"),
    )
    rows = (
        (
            *(_word(own.word.text, own), own.nll_nats, own.probability, own.rank or None),
            "  ".join(map(_guess, own.wanted)),
            "  ".join(f"{part.token} {loss(part.nll_nats)}" for part in own.parts),
        )
        for own in found.words
    )
    print_line(found.encoding.text, "bold")
    print_table(Table.of(columns, rows))
    if summary := found.summary:
        print_line(
            f"Total {loss(summary.total_nll_nats)} {unit}; mean "
            f"{loss(summary.mean_token_nll_nats)} a token ({summary.tokens:,}), "
            f"{loss(summary.mean_word_nll_nats)} a word ({summary.words:,}); "
            f"pseudo-perplexity {summary.pseudo_perplexity:,.1f}"
        )
        print_line(f"Most surprising: {summary.most.word.text}")
    if unknown := [own.word.text for own in found.words if own.unknown]:
        print_line(f"Not counted, as the vocabulary cannot spell them: {', '.join(unknown)}")
    print_line(f"\n{found.signature}\n", "dim")


def _word(text: str, own: WordSurprisal | ComparedWord) -> str:
    return f"{text} (unknown)" if own.unknown else text


def _guess(own: Any) -> str:
    from fillmask_ui.show.numbers import percent

    return f"{own.word} {percent(own.probability)}"


def print_comparison(found: SentenceComparison, unit: str) -> None:
    """The table and the figures of one text under two models."""
    from fillmask_ui.show.numbers import in_unit, loss_form
    from fillmask_ui.show.table import Column, Table

    loss, alike = loss_form(unit), found.alignment.alike

    def signed(nats: float) -> str:
        return f"{in_unit(nats, unit):+.4f}"

    columns: tuple[str | Column, ...] = (
        "word",
        *(Column(f"{role} NLL ({unit})", loss) for role in ROLES),
        Column("difference", signed),
        *(f"{role} wanted" for role in ROLES),
        "best word",
    )
    rows = (
        (
            *(_word(own.text, own), own.nll_nats, own.other_nll_nats, own.difference_nats),
            *(
                " | ".join(_guess(one.wanted[0]) for one in side)
                for side in (own.first, own.second)
            ),
            "flipped" if own.flipped else "",
        )
        for own in found.words
    )
    print_line(found.alignment.text, "bold")
    print_table(Table.of(columns, rows))
    if summary := found.summary:
        first, second, largest = summary.first, summary.second, summary.largest
        means = [("word", summary.mean_word_nll_nats, summary.other_mean_word_nll_nats)]
        if alike and first.tokens > first.words:
            means.append(("token", first.mean_token_nll_nats, second.mean_token_nll_nats))
        elif not alike:
            own, other = summary.mean_character_nll_nats, summary.other_mean_character_nll_nats
            means.append(("character", own, other))
        for name, own, other in means:
            print_line(f"Mean loss a {name}: reference {loss(own)}, candidate {loss(other)} {unit}")
        if alike:
            own, other = first.pseudo_perplexity, second.pseudo_perplexity
            print_line(f"Pseudo-perplexity: reference {own:,.2f}, candidate {other:,.2f}")
        print_line(
            f"Largest difference: {largest.text} {signed(largest.difference_nats)}; the best "
            f"word flipped at {summary.flipped} of {summary.words}"
        )
    if found.note:
        print_line(found.note)
    for role, side in (("\nReference", found.first), ("Candidate", found.second)):
        print_line(f"{role}: {side.signature}", "dim")
    print_line("")
