"""`fillmask-ui predict`, `layers`, `surprise`: words at masks, also by layer; the loss of words."""

from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from threading import Thread
from typing import Any, cast

from fillmask_ui.cli import options
from fillmask_ui.cli.terminal import attempts, load, sentences_of, show_each
from fillmask_ui.errors import FillmaskError, OptionError, TextError
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Filling

_ADVICE = (
    ' in quotes, as in: fillmask-ui predict "The capital of France is [MASK]." or name a --file'
)
_UNMASKED_ADVICE = ' in quotes, as in: fillmask-ui surprise "The cat sat on the mat."'
WINDOW_TEXTS = 64  # that wait for each other's answers
TOP_K = options.option("5", "Words to list: 1 to 100, or all.", "--top-k", "-k", metavar="K")


@options.with_options
def predict(
    texts: list[str] | None = options.MASKED_TEXTS,
    *,
    model: ModelChoice,
    top_k: str = TOP_K,
    candidates: str | None = options.option(
        None, "Also score these words, of one or several sub-tokens.", metavar='"A,B"'
    ),
    candidate: list[str] | None = options.option(
        None, "Also score this word, which may hold a comma; repeatable.", metavar="WORD"
    ),
    joint: int = options.option(
        5, "Joint fillings of all masks together: 0 to 100.", min=0, max=100
    ),
    beam_width: int = options.option(
        16, "Width of the beam search for joint fillings.", metavar="N"
    ),
    file: str | None = options.TEXT_FILE,
    baseline: str | None = options.BASELINE,
    bits: bool = options.IN_BITS,
    as_json: bool = options.JSON,
) -> None:
    """Show the most probable words at each mask, with probability and NLL."""
    from fillmask_ui.cli import printed
    from fillmask_ui.comparing import compare as compare_words
    from fillmask_ui.filling.prompt import split_words

    words = split_words(candidates or "")
    if candidates is not None and not words:
        raise OptionError(f"--candidates {candidates!r} has no word: write them as in: cat, dog")
    words = tuple(dict.fromkeys((*words, *(candidate or ()))))
    choices: dict[str, Any] = {
        "top_k": parse_top_k(top_k),
        "candidates": words,
        "joint": joint,
        "beam_width": beam_width,
    }
    sentences = sentences_of(texts, file, _ADVICE)
    if not as_json:  # what draws the tables is imported while the weights are read
        Thread(target=import_module, args=("rich.table",)).start()
    models = [load(choice) for choice in options.compared(model, baseline)]
    show: Any = printed.print_filling
    if models[1:]:
        show = partial(printed.print_comparison, models=models)
        compare_text = partial(cast("Any", compare_words), *models, **choices)
        results = attempts(compare_text, sentences)
    else:
        # Who writes to standard input may wait for each answer; whole vocabularies take memory.
        together = 1 if sentences.streamed or choices["top_k"] is None else WINDOW_TEXTS
        results = _filled(models[0], iter(sentences), together, choices)
    show = partial(show, unit="bits" if bits else "nats")
    show_each(results, show, as_json=as_json, several=sentences.several)


def _filled(
    model: MaskedLM, texts: Iterator[str], together: int, choices: Mapping[str, Any]
) -> Iterator[Filling | TextError]:
    """What `fill` gives for each text in order, some `together`, or the error of a text alone."""
    from fillmask_ui.filling import fill
    from fillmask_ui.filling.candidates import read_prompt

    def check(text: str) -> None:
        read_prompt(model, text, choices["candidates"])

    for window in _windows(texts, together):
        errors = list(attempts(check, window))
        fit = [text for text, error in zip(window, errors, strict=True) if error is None]
        fillings = iter(fill(model, fit, **choices))
        for error in errors:
            yield error or next(fillings)


def _windows(texts: Iterator[str], size: int) -> Iterator[list[str]]:
    window: list[str] = []
    try:
        for text in texts:
            window.append(text)
            if len(window) == size:
                yield window
                window = []
    except FillmaskError:  # as of a line that is not UTF-8: those before it are answered
        yield window
        raise
    yield window


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


@options.with_options
def layers(
    texts: list[str] | None = options.argument(
        None, "TEXT", "Sentences with or without a mask; - for standard input."
    ),
    *,
    model: ModelChoice,
    top_k: str = TOP_K,
    file: str | None = options.TEXT_FILE,
    as_json: bool = options.JSON,
) -> None:
    """Show what each layer would predict at each mask, through the model's own head."""
    from fillmask_ui.cli import printed
    from fillmask_ui.filling import layers as read_layers

    sentences = sentences_of(texts, file, _ADVICE)
    look = partial(read_layers, load(model), top_k=parse_top_k(top_k))
    results = attempts(look, sentences)
    show_each(results, printed.print_layers, as_json=as_json, several=sentences.several)


@options.with_options
def surprise(
    texts: list[str] | None = options.argument(
        None, "TEXT", "Sentences without a mask; - for standard input."
    ),
    *,
    model: ModelChoice,
    file: str | None = options.TEXT_FILE,
    given: str = options.option(
        "", "Text before each, which the model reads and which is not scored.", metavar="TEXT"
    ),
    given_first: bool = options.option(
        False, "Each text is two with a tab between: score the second, given the first."
    ),
    baseline: str | None = options.BASELINE,
    bits: bool = options.IN_BITS,
    as_json: bool = options.JSON,
) -> None:
    """Show the loss of every word, hidden in turn, and what the model expected there."""
    from fillmask_ui.cli import printed
    from fillmask_ui.comparing.word_contrast import compare_sentence
    from fillmask_ui.filling import surprisal

    if (given or given_first) and baseline is not None:
        raise OptionError("--given and --given-first are of one model: leave out --baseline")
    if given and given_first:
        raise OptionError("--given and --given-first exclude each other: give one of them")
    sentences = sentences_of(texts, file, _UNMASKED_ADVICE)
    models = [load(choice) for choice in options.compared(model, baseline)]
    show: Any = printed.print_surprisal
    look: Any = partial(surprisal, models[0], given=given)
    if models[1:]:
        show, look = printed.print_compared_losses, partial(cast("Any", compare_sentence), *models)
    elif given_first:
        look = partial(_given_first, models[0])
    show = partial(show, unit="bits" if bits else "nats")
    show_each(attempts(look, sentences), show, as_json=as_json, several=sentences.several)


def _given_first(model: MaskedLM, texts: str) -> Any:
    """The surprisal of the second of two texts, given the first."""
    from fillmask_ui.filling import surprisal

    first, tab, second = texts.partition("\t")
    if not tab or not first.strip():
        raise TextError("no text is given: write it, a tab, and the text to score")
    return surprisal(model, second, given=first)
