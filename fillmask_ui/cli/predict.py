"""`fillmask-ui predict`: the words at the masks of texts."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from fillmask_ui.cli.options import (
    Device,
    Dtype,
    Json,
    Model,
    ModelChoice,
    OnnxFile,
    Provider,
    Runtime,
    Threads,
    Tokenizer,
    load,
)
from fillmask_ui.errors import DataError, FillmaskError, OptionError, TextError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from fillmask_ui.records import Filling, MaskFilling, ScoredWord


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict")(predict)


def predict(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT...", help="Sentences with [MASK], <mask> or ___."),
    ] = None,
    model: Model = "embedded",
    top_k: Annotated[
        str, typer.Option("--top-k", "-k", metavar="K", help="1 to 100, or all.")
    ] = "5",
    candidates: Annotated[
        str, typer.Option(metavar='"A,B"', help="Words to score at each mask.")
    ] = "",
    joint: Annotated[
        int, typer.Option(min=0, max=100, help="Joint fillings of several masks; 0 for none.")
    ] = 5,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="F|-", help="Read texts from a file, one a line; - for standard input."
        ),
    ] = None,
    bits: Annotated[bool, typer.Option("--bits", help="NLL and entropy in bits.")] = False,
    as_json: Json = False,
    tokenizer: Tokenizer = None,
    onnx_file: OnnxFile = None,
    runtime: Runtime = "auto",
    provider: Provider = None,
    device: Device = None,
    dtype: Dtype = None,
    threads: Threads = None,
) -> None:
    """Show the most probable words at each mask, with probability and NLL."""
    from fillmask_ui.filling import fill, split_words

    k = parse_top_k(top_k)
    words = split_words(candidates)
    if candidates.strip() and not words:
        raise OptionError(f"--candidates {candidates!r} has no word: write them as in: cat, dog")
    wanted = _read_texts(texts or [], file)
    loaded = load(
        ModelChoice(model, tokenizer, onnx_file, runtime, provider, device, dtype, threads)
    )
    failed: FillmaskError | None = None
    several = False
    for number, text in enumerate(wanted, start=1):
        several = several or number > 1
        try:
            filling = fill(loaded, text, top_k=k, candidates=words, joint=joint)
        except TextError as error:
            # One bad line must not cost the others theirs.
            where = f"text {number}: " if several or (texts and len(texts) > 1) or file else ""
            sys.stderr.write(f"error: {where}{error}\n")
            failed = error
            continue
        if as_json:
            typer.echo(filling.to_json())
        else:
            print_filling(filling, bits=bits)
    if failed is not None:
        raise typer.Exit(2)


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


def _read_texts(texts: Sequence[str], file: str | None) -> Iterator[str]:
    """Texts of the arguments, then those of the file, blank lines of it left out."""
    if not texts and file is None:
        raise OptionError(
            "no text was given: write one in quotes, as in: "
            'fillmask-ui predict "The capital of France is [MASK]." or name a --file'
        )
    from fillmask_ui.texts.lines import is_file

    if file is not None and file != "-" and not is_file(file):
        raise OptionError(f"no file {file!r}: give an existing text file, or - for standard input")
    return _all_texts(texts, file)


def _all_texts(texts: Sequence[str], file: str | None) -> Iterator[str]:
    yield from texts
    if file is None:
        return
    from fillmask_ui.texts.lines import file_bytes, standard_input

    data = standard_input() if file == "-" else file_bytes(file, name=repr(file))
    found = bool(texts)
    for line in data.lines():
        if line.strip():
            found = True
            yield line
    if not found:
        raise DataError(f"{data.name} has no text: one sentence a line is wanted")


def print_filling(filling: Filling, *, bits: bool) -> None:
    """The tables of one text; text of the user and of the model is never markup."""
    from rich.console import Console
    from rich.text import Text

    console = Console()
    console.print(Text(filling.encoding.text, style="bold"))
    for number, mask in enumerate(filling.masks, start=1):
        name = f"Mask {number} of {len(filling.masks)}" if len(filling.masks) > 1 else "Mask"
        unit, scale = ("bits", 1 / math.log(2)) if bits else ("nats", 1.0)
        console.print(
            f"\n{name} at position {mask.position}: entropy {mask.entropy_nats * scale:.3f} {unit},"
            f" perplexity {mask.perplexity:,.1f}"
        )
        console.print(_candidate_table(mask, unit, scale))
        if mask.scored:
            console.print(_scored_table(mask.scored, unit, scale))
    if filling.joint:
        _print_joint(console, filling, unit, scale)
    console.print(Text(f"\n{filling.signature}\n", style="dim"), soft_wrap=True)


def _candidate_table(mask: MaskFilling, unit: str, scale: float) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table()
    table.add_column("Rank", justify="right")
    table.add_column("Word")
    table.add_column("Token")
    table.add_column("Id", justify="right")
    table.add_column("Probability", justify="right")
    table.add_column(f"NLL ({unit})", justify="right")
    for candidate in mask.candidates:
        table.add_row(
            str(candidate.rank),
            Text(candidate.word),
            Text(candidate.token),
            str(candidate.token_id),
            f"{candidate.probability:.4f}",
            f"{candidate.nll_nats * scale:.4f}",
        )
    return table


def _scored_table(scored: Sequence[ScoredWord], unit: str, scale: float) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title="Your candidates", title_justify="left")
    table.add_column("Word")
    table.add_column("Rank", justify="right")
    table.add_column("Probability", justify="right")
    table.add_column(f"NLL ({unit})", justify="right")
    table.add_column("Sub-tokens")
    for word in scored:
        parts = "  ".join(f"{part.token} {part.nll_nats * scale:.3f}" for part in word.parts)
        table.add_row(
            Text(word.word),
            "-" if word.rank is None else f"{word.rank:,}",
            f"{word.probability:.3g}",
            f"{word.nll_nats * scale:.4f}",
            Text(parts),
        )
    return table


def _print_joint(console: Console, filling: Filling, unit: str, scale: float) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title="All masks together", title_justify="left")
    table.add_column("Text")
    table.add_column("Probability", justify="right")
    table.add_column(f"NLL ({unit})", justify="right")
    table.add_column("Each given those before it")
    for joint in filling.joint:
        parts = " + ".join(f"{part.token} {part.nll_nats * scale:.3f}" for part in joint.parts)
        table.add_row(
            Text(joint.text),
            f"{joint.probability:.3g}",
            f"{joint.nll_nats * scale:.4f}",
            Text(parts),
        )
    console.print()
    console.print(table)
