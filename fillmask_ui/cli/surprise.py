"""`fillmask-ui surprise`: how much each word of texts surprises a model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fillmask_ui.cli.options import Json, option, with_options
from fillmask_ui.cli.terminal import load, print_json, print_line, print_table, tell, wide_console
from fillmask_ui.errors import TextError
from fillmask_ui.files import visible
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
    failed = False
    for number, text in enumerate(texts, start=1):
        try:
            found: Any = (
                surprisal(loaded, text) if other is None else compare_sentence(loaded, other, text)
            )
        except TextError as error:
            # One bad text must not cost the others theirs.
            where = f"text {number}: " if len(texts) > 1 else ""
            tell(f"error: {where}{error}")
            failed = True
            continue
        if as_json:
            print_json(found.to_dict())
        elif other is None:
            print_surprise(found, bits=bits)
        else:
            print_comparison(found, bits=bits)
    if failed:
        raise typer.Exit(2)


def print_surprise(found: SentenceSurprisal, *, bits: bool) -> None:
    """The table and the figures of one text."""
    from rich.text import Text

    from fillmask_ui.show.numbers import percent

    unit, scale = ("bits", 1 / math.log(2)) if bits else ("nats", 1.0)
    console = wide_console()
    console.print(Text(visible(found.encoding.text), style="bold"))
    rows = (
        (
            f"{own.word.text} (unknown)" if own.unknown else own.word.text,
            f"{own.nll_nats * scale:.4f}",
            f"{own.probability:.3g}",
            f"{own.rank:,}" if own.rank else "-",
            "  ".join(f"{wanted.word} {percent(wanted.probability)}" for wanted in own.wanted),
            "  ".join(f"{part.token} {part.nll_nats * scale:.3f}" for part in own.parts),
        )
        for own in found.words
    )
    heads = ("word", f">NLL ({unit})", ">probability", ">rank", "the model wanted", "sub-tokens")
    print_table(heads, rows)
    if summary := found.summary:
        print_line(
            f"Total {summary.total_nll_nats * scale:.3f} {unit}; mean "
            f"{summary.mean_token_nll_nats * scale:.3f} a token ({summary.tokens:,}), "
            f"{summary.mean_word_nll_nats * scale:.3f} a word ({summary.words:,}); "
            f"pseudo-perplexity {summary.pseudo_perplexity:,.1f}"
        )
        print_line(f"Most surprising: {summary.most.word.text}")
    if unknown := [own.word.text for own in found.words if own.unknown]:
        print_line(f"Not counted, as the vocabulary cannot spell them: {', '.join(unknown)}")
    print_line(f"\n{found.signature}\n", "dim")


def print_comparison(found: SentenceComparison, *, bits: bool) -> None:
    """The table and the figures of one text under two models."""
    from rich.text import Text

    from fillmask_ui.show.numbers import percent

    unit, scale = ("bits", 1 / math.log(2)) if bits else ("nats", 1.0)
    wide_console().print(Text(visible(found.alignment.text), style="bold"))

    def best(own: WordSurprisal) -> str:
        return f"{own.wanted[0].word} {percent(own.wanted[0].probability)}"

    rows = (
        (
            f"{own.text} (unknown)" if own.unknown else own.text,
            f"{own.nll_nats * scale:.4f}",
            f"{own.other_nll_nats * scale:.4f}",
            f"{own.difference_nats * scale:+.4f}",
            " | ".join(best(word) for word in own.first),
            " | ".join(best(word) for word in own.second),
            "flipped" if own.flipped else "",
        )
        for own in found.words
    )
    losses = (f">NLL A ({unit})", ">NLL B", ">A - B")
    print_table(("word", *losses, "A wanted", "B wanted", "best word"), rows)
    if summary := found.summary:
        first, second = summary.first, summary.second
        means = [("word", summary.mean_word_nll_nats, summary.other_mean_word_nll_nats)]
        if found.alignment.alike and first.tokens > first.words:
            means.append(("token", first.mean_token_nll_nats, second.mean_token_nll_nats))
        elif not found.alignment.alike:
            own, other = summary.mean_character_nll_nats, summary.other_mean_character_nll_nats
            means.append(("character", own, other))
        for name, own, other in means:
            print_line(f"Mean loss a {name}: A {own * scale:.4f}, B {other * scale:.4f} {unit}")
        if found.alignment.alike:
            own, other = first.pseudo_perplexity, second.pseudo_perplexity
            print_line(f"Pseudo-perplexity: A {own:,.2f}, B {other:,.2f}")
        largest = summary.largest
        print_line(
            f"Largest difference: {largest.text} {largest.difference_nats * scale:+.4f}; the best "
            f"word flipped at {summary.flipped} of {summary.words}"
        )
    if found.note:
        print_line(found.note)
    print_line(f"\nA: {found.first.signature}\nB: {found.second.signature}\n", "dim")
