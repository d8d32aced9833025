"""`fillmask-ui unmask`: many masks filled step by step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fillmask_ui.cli.options import Json, file_option, option, with_options
from fillmask_ui.cli.terminal import (
    check_file,
    file_texts,
    load,
    print_line,
    print_table,
    show_each,
)
from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.files import text_file
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.unmasking.unmasking_options import UnmaskingConfig

if TYPE_CHECKING:
    from fillmask_ui.protocol import MaskedLM, Vocabulary
    from fillmask_ui.show.table import Table
    from fillmask_ui.unmasking import Unmasked

_PROMPTS = '"[MASK] sat on the [MASK]."; --prefix "The cat" --new-tokens 5; or --length 8'


@with_options
def unmask(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT...", help="Sentences with [MASK], <mask> or ___."),
    ] = None,
    *,
    prefix: Annotated[str, option("What stands before the new tokens.")] = "",
    suffix: Annotated[str, option("What stands after the new tokens.")] = "",
    new_tokens: Annotated[
        int | None, option("Tokens to be written behind the prefix, or before the suffix.")
    ] = None,
    length: Annotated[int | None, option("Tokens of a text with nothing given.")] = None,
    file: Annotated[
        str | None,
        option("Read texts from a file, one per line; - for standard input.", metavar="F|-"),
    ] = None,
    model: ModelChoice,
    config: UnmaskingConfig,
    steps: Annotated[bool, option("Print every step.", "--steps")] = False,
    history: Annotated[
        Path | None,
        file_option("Write the whole history of a single text to a file.", metavar="F.jsonl"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Fill many masks step by step: which position first, and with what."""
    from fillmask_ui.unmasking import unmask_all

    given = texts or []
    prompted = _check_prompt(given, prefix, suffix, new_tokens, length, file)
    if file is not None:
        check_file(file)
    if history is not None and (file is not None or len(given) > 1):
        raise OptionError("--history keeps one text: give one, without --file")
    loaded = load(model)
    if prompted is not None:
        given = [_prompt(loaded, prompted, prefix, suffix)]
    of_file: Iterable[str] = () if file is None else file_texts(file, needed=not given)
    several = len(given) > 1 or file is not None

    def kept() -> Iterator[Unmasked | FillmaskError]:
        for result in unmask_all(loaded, chain(given, of_file), config):
            if history is not None and not isinstance(result, FillmaskError):
                _write_history(history, result)
            yield result

    def show(result: Unmasked) -> None:
        print_unmasked(result, loaded.vocabulary, steps=steps)

    show_each(kept(), show, as_json=as_json, several=several)


def _check_prompt(
    given: list[str],
    prefix: str,
    suffix: str,
    new_tokens: int | None,
    length: int | None,
    file: str | None,
) -> int | None:
    """The number of tokens between prefix and suffix; None where texts bring their own masks."""
    around = prefix.strip() or suffix.strip()
    if around and new_tokens is None:
        raise OptionError("--prefix and --suffix need --new-tokens, the number of tokens to write")
    if new_tokens is not None and not around:
        raise OptionError(
            "--new-tokens goes with --prefix or --suffix; for nothing but new tokens give --length"
        )
    if length is not None and new_tokens is not None:
        raise OptionError(
            "--length is a text with nothing given: leave --prefix, --suffix and "
            "--new-tokens out, or --length"
        )
    wanted = new_tokens if new_tokens is not None else length
    if wanted is not None and wanted < 1:
        raise OptionError(f"at least 1 token must be written; {wanted} were asked for")
    if wanted is not None and (given or file is not None):
        raise OptionError("texts with masks of their own, or a prompt: give one of them")
    if wanted is None and not given and file is None:
        raise OptionError(f"no text was given: write one, as in: {_PROMPTS}")
    return wanted


def _prompt(model: MaskedLM, tokens: int, prefix: str, suffix: str) -> str:
    from fillmask_ui.unmasking import masked_prompt

    if tokens > model.max_tokens:
        # Before a text of that length is written.
        raise OptionError(
            f"{tokens:,} new tokens were asked for and this model takes at most "
            f"{model.max_tokens:,} tokens in all: ask for fewer"
        )
    return masked_prompt(model.vocabulary, tokens, prefix=prefix, suffix=suffix)


def _write_history(path: Path, result: Unmasked) -> None:
    from fillmask_ui.unmasking import history_lines

    with text_file(path) as file:
        file.writelines(f"{line}\n" for line in history_lines(result))


def print_unmasked(result: Unmasked, vocabulary: Vocabulary, *, steps: bool) -> None:
    """The text, its figures, and by choice the table of steps."""
    print_line(result.text, "bold")
    if steps:
        print_table(_steps_table(result, vocabulary))
    print_line(
        f"{result.steps_taken} steps; log-probability {result.log_probability_nats:.3f} nats; "
        f"pseudo-perplexity {result.pseudo_perplexity:,.2f}"
    )
    print_line(f"{result.signature}\n", "dim")


def _steps_table(result: Unmasked, vocabulary: Vocabulary) -> Table:
    from fillmask_ui.show.table import Column, Table

    own = [place for place, i in enumerate(result.ids) if i not in vocabulary.special_ids]
    rows = []
    for step in result.steps:
        ids = [step.ids[place] for place in own]
        text = " ".join("·" if i == vocabulary.mask_id else vocabulary.token(i) for i in ids)
        written = [f"{token.token} {token.probability:.3g}" for token in step.filled]
        written += [f"{token.token} hidden again" for token in step.remasked]
        sure = step.total_log_probability_nats
        rows.append((step.number, text, "  ".join(written) or "nothing", sure))
    total = Column("log-probability (nats)", ".3f")
    return Table.of(("step", "text", "written", total), rows)
