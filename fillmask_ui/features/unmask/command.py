"""`fillmask-ui unmask`: many masks filled step by step."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from fillmask_ui.cli.options import JSON, MASKED_TEXTS, TEXT_FILE, file_option, option, with_options
from fillmask_ui.cli.terminal import (
    InputSentences,
    load,
    print_line,
    print_table,
    sentences_of,
    show_each,
)
from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.features.unmask.decoding_history import DecodingStep, Unmasked, history_lines
from fillmask_ui.features.unmask.unmask_texts import masked_prompt, unmask_all
from fillmask_ui.features.unmask.unmasking_options import UnmaskingConfig
from fillmask_ui.files import write_text
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.show.numbers import percent, with_minus
from fillmask_ui.show.table import Column, Table

_ADVICE = ', as in: "[MASK] sat on the [MASK]."; --prefix "The cat" --new-tokens 5; or --length 8'
_MOST_TOKENS = 10_000  # tokens that are written for a prompt


@with_options
def unmask(
    texts: list[str] | None = MASKED_TEXTS,
    *,
    prefix: str = option("", "Text before the new tokens."),
    suffix: str = option("", "Text after the new tokens."),
    new_tokens: int | None = option(
        None, "Number of new tokens after the prefix or before the suffix."
    ),
    length: int | None = option(None, "Number of masks, in a text of only masks."),
    file: str | None = TEXT_FILE,
    model: ModelChoice,
    config: UnmaskingConfig,
    show_steps: bool = option(False, "Print every step.", "--show-steps"),
    history: Path | None = file_option(
        None,
        "Write every step of a single text to a file, which read_history reads.",
        metavar="F.jsonl",
    ),
    as_json: bool = JSON,
) -> None:
    """Fill many masks step by step."""
    if bool(prefix.strip() or suffix.strip()) != (new_tokens is not None):
        raise OptionError(
            "--new-tokens goes with --prefix or --suffix, and they need it; without a prefix and a "
            "suffix, give --length"
        )
    if length is not None and new_tokens is not None:
        raise OptionError("--length and --new-tokens exclude each other: give one of them")
    written = length if new_tokens is None else new_tokens
    if written is not None and not 1 <= written <= _MOST_TOKENS:
        raise OptionError(
            f"the number of tokens must be from 1 to {_MOST_TOKENS:,}; it was {written:,}"
        )
    if written is not None and (texts or file is not None):
        raise OptionError("texts with masks and a prompt exclude each other: give one of them")
    sentences = InputSentences((), several=False)
    if written is None:
        sentences = sentences_of(texts, file, _ADVICE)
    if history is not None and sentences.several:
        raise OptionError("--history keeps one text: give a single text, without --file")
    loaded = load(model)
    if written is not None:
        prompt = masked_prompt(loaded.vocabulary, written, prefix=prefix, suffix=suffix)
        sentences = InputSentences([prompt], several=False)

    def results() -> Iterator[Unmasked | FillmaskError]:
        for result in unmask_all(loaded, sentences, config):
            if history is not None and not isinstance(result, FillmaskError):
                write_text("".join(f"{line}\n" for line in history_lines(result)), history)
            yield result

    show = partial(print_unmasked, vocabulary=loaded.vocabulary, steps=show_steps)
    show_each(results(), show, as_json=as_json, several=sentences.several)


def print_unmasked(result: Unmasked, vocabulary: Vocabulary, *, steps: bool) -> None:
    """A text that was filled, its figures, and with `steps` the table of them."""
    print_line(result.text, "bold")
    if steps:
        rows = (
            (
                step.number,
                _text(step, vocabulary),
                _written(step),
                step.total_log_probability_nats,
            )
            for step in result.steps
        )
        total = Column("log-probability (nats)", ".3f")
        print_table(Table.of(("step", "text", "written", total), rows))
    print_line(
        f"{result.steps_taken} steps; log-probability "
        f"{with_minus(format(result.log_probability_nats, '.3f'))} nats; "
        f"pseudo-perplexity {result.pseudo_perplexity:,.2f}"
    )
    print_line(f"{result.signature}\n", "dim")


def _text(step: DecodingStep, vocabulary: Vocabulary) -> str:
    """The tokens after a step, a dot for each that is still hidden."""
    return " ".join(
        "·" if token_id == vocabulary.mask_id else vocabulary.token(token_id)
        for token_id in step.ids
        if token_id not in vocabulary.special_ids or token_id == vocabulary.mask_id
    )


def _written(step: DecodingStep) -> str:
    written = [f"{token.token} {percent(token.probability)}" for token in step.filled]
    written += [f"{token.token} hidden again" for token in step.remasked]
    return "  ".join(written) or "nothing"
