"""`fillmask-ui surprise`: how much each word of texts surprises a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fillmask_ui.cli.options import Json, option, with_options
from fillmask_ui.cli.terminal import attempts, load, print_line, print_table, show_each
from fillmask_ui.models.model_choice import ModelChoice

if TYPE_CHECKING:
    from fillmask_ui.comparing.word_contrast import SentenceComparison
    from fillmask_ui.filling.word_surprisal import SentenceSurprisal, WordSurprisal


@with_options
def surprise(
    texts: Annotated[
        list[str], typer.Argument(metavar="TEXT...", help="Sentences without a mask.")
    ],
    *,
    model: ModelChoice,
    compare: Annotated[
        str | None, option("A second model: the loss of every word under both.", metavar="REF")
    ] = None,
    bits: Annotated[bool, option("Losses in bits.", "--bits")] = False,
    as_json: Json = False,
) -> None:
    """Show the loss of every word, each hidden in turn, and what the model wanted."""
    from fillmask_ui.comparing.word_contrast import compare_sentence
    from fillmask_ui.filling import surprisal

    loaded = load(model)
    other = None if compare is None else load(model.second(compare))
    unit = "bits" if bits else "nats"

    def look(text: str) -> SentenceSurprisal | SentenceComparison:
        if other is None:
            return surprisal(loaded, text)
        return compare_sentence(loaded, other, text)

    def show(found: Any) -> None:
        if other is None:
            print_surprisal(found, unit)
        else:
            print_comparison(found, unit)

    show_each(attempts(look, texts), show, as_json=as_json, several=len(texts) > 1)


def print_surprisal(found: SentenceSurprisal, unit: str) -> None:
    """The table and the figures of one text."""
    from fillmask_ui.show.numbers import loss_form, percent
    from fillmask_ui.show.table import Column, Table

    loss = loss_form(unit, 3)
    print_line(found.encoding.text, "bold")
    columns = (
        *("word", Column(f"NLL ({unit})", loss_form(unit)), Column("probability", ".3g")),
        *(Column("rank", ",", missing="-"), "the model wanted", "sub-tokens"),
    )
    rows = (
        (
            _word(own.word.text, unknown=own.unknown),
            own.nll_nats,
            own.probability,
            own.rank or None,
            "  ".join(f"{wanted.word} {percent(wanted.probability)}" for wanted in own.wanted),
            "  ".join(f"{part.token} {loss(part.nll_nats)}" for part in own.parts),
        )
        for own in found.words
    )
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


def _word(text: str, *, unknown: bool) -> str:
    return f"{text} (unknown)" if unknown else text


def print_comparison(found: SentenceComparison, unit: str) -> None:
    """The table and the figures of one text under two models."""
    from fillmask_ui.show.numbers import in_unit, loss_form, percent
    from fillmask_ui.show.table import Column, Table

    loss = loss_form(unit)

    def signed(nats: float) -> str:
        return f"{in_unit(nats, unit):+.4f}"

    def best(words: Iterable[WordSurprisal]) -> str:
        wanted = (own.wanted[0] for own in words)
        return " | ".join(f"{own.word} {percent(own.probability)}" for own in wanted)

    print_line(found.alignment.text, "bold")
    columns = (
        *("word", Column(f"NLL A ({unit})", loss), Column("NLL B", loss), Column("A - B", signed)),
        *("A wanted", "B wanted", "best word"),
    )
    rows = (
        (
            _word(own.text, unknown=own.unknown),
            *(own.nll_nats, own.other_nll_nats, own.difference_nats),
            *(best(own.first), best(own.second), "flipped" if own.flipped else ""),
        )
        for own in found.words
    )
    print_table(Table.of(columns, rows))
    if summary := found.summary:
        first, second = summary.first, summary.second
        means = [("word", summary.mean_word_nll_nats, summary.other_mean_word_nll_nats)]
        if found.alignment.alike and first.tokens > first.words:
            means.append(("token", first.mean_token_nll_nats, second.mean_token_nll_nats))
        elif not found.alignment.alike:
            own, other = summary.mean_character_nll_nats, summary.other_mean_character_nll_nats
            means.append(("character", own, other))
        for name, own, other in means:
            print_line(f"Mean loss a {name}: A {loss(own)}, B {loss(other)} {unit}")
        if found.alignment.alike:
            own, other = first.pseudo_perplexity, second.pseudo_perplexity
            print_line(f"Pseudo-perplexity: A {own:,.2f}, B {other:,.2f}")
        largest = summary.largest
        print_line(
            f"Largest difference: {largest.text} {signed(largest.difference_nats)}; the best "
            f"word flipped at {summary.flipped} of {summary.words}"
        )
    if found.note:
        print_line(found.note)
    print_line(f"\nA: {found.first.signature}\nB: {found.second.signature}\n", "dim")
