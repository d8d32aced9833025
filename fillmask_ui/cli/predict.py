"""`fillmask-ui predict`: the words at the masks of texts."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fillmask_ui.cli.comparison import print_comparison
from fillmask_ui.cli.lines import check_file, file_texts
from fillmask_ui.cli.options import Json, option, with_options
from fillmask_ui.cli.terminal import load, print_line, print_table, tell, wide_console
from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.files import visible
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.records import Filling

if TYPE_CHECKING:
    from fillmask_ui.comparing import Comparison


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
    failed = False
    of_file = () if file is None else file_texts(file, needed=not given)
    for number, text in enumerate(chain(given, of_file), start=1):
        try:
            found = look(*models, text, top_k=k, candidates=words, joint=joint)
        except TextError as error:
            # One bad line must not cost the others theirs.
            where = f"text {number}: " if len(given) > 1 or file else ""
            tell(f"error: {where}{error}")
            failed = True
            continue
        if as_json:
            typer.echo(found.to_json())
        elif isinstance(found, Filling):
            print_filling(found, bits=bits)
        else:
            print_comparison(found, models, bits=bits)
    if failed:
        raise typer.Exit(2)


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


def print_filling(filling: Filling, *, bits: bool) -> None:
    """The tables of one text."""
    from rich.text import Text

    console = wide_console()
    unit, scale = ("bits", 1 / math.log(2)) if bits else ("nats", 1.0)
    chance = (">probability", f">NLL ({unit})")

    def cells(entry: Any, form: str = ".3g") -> tuple[str, str]:
        return format(entry.probability, form), f"{entry.nll_nats * scale:.4f}"

    def parts_text(between: str, parts: Iterable[Any]) -> str:
        return between.join(f"{part.token} {part.nll_nats * scale:.3f}" for part in parts)

    console.print(Text(visible(filling.encoding.text), style="bold"))
    for number, mask in enumerate(filling.masks, start=1):
        name = f"Mask {number} of {len(filling.masks)}" if len(filling.masks) > 1 else "Mask"
        console.print(
            f"\n{name} at position {mask.position}: entropy {mask.entropy_nats * scale:.3f} {unit},"
            f" perplexity {mask.perplexity:,.1f}"
        )
        best = ((c.rank, c.word, c.token, c.token_id, *cells(c, ".4f")) for c in mask.candidates)
        print_table((">rank", "word", "token", ">id", *chance), best)
        if mask.scored:
            scored = (
                (c.word, f"{c.rank:,}" if c.rank else "-", *cells(c), parts_text("  ", c.parts))
                for c in mask.scored
            )
            print_table(("word", ">rank", *chance, "sub-tokens"), scored, "Your candidates")
    if filling.joint:
        together = ((j.text, *cells(j), parts_text(" + ", j.parts)) for j in filling.joint)
        console.print()
        print_table(("text", *chance, "each given those before it"), together, "All masks together")
    print_line(f"\n{filling.signature}\n", "dim")
