"""`fillmask-ui differ`: the sentences on which two models differ most."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any

from fillmask_ui.cli.options import Json, option, with_options
from fillmask_ui.cli.terminal import load, print_json, print_line, print_table, progress_bar, tell
from fillmask_ui.comparing.divergence_search import WORDS
from fillmask_ui.errors import DataError
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.texts import TextChoice

if TYPE_CHECKING:
    from fillmask_ui.comparing.divergence_search import Divergence, Search
    from fillmask_ui.protocol import MaskedLM

# In a pipe a line of progress no more often than this.
_QUIET_SECONDS = 10.0


@with_options
def differ(
    *,
    model: ModelChoice,
    compare: Annotated[str, option("The second model.", metavar="REF")],
    texts: TextChoice,
    sentences: Annotated[int, option("Sentences looked at.", min=1, metavar="N")] = 200,
    words: Annotated[
        int, option("Words hidden in each sentence, one at a time.", min=1, metavar="N")
    ] = WORDS,
    most: Annotated[int, option("Sentences shown.", min=1, metavar="N")] = 20,
    bits: Annotated[bool, option("Losses and divergences in bits.", "--bits")] = False,
    as_json: Json = False,
) -> None:
    """Find the sentences of texts on which two models differ most."""
    from fillmask_ui.comparing.divergence_search import divergent_sentences
    from fillmask_ui.texts import open_texts

    search: Search | None = None
    stopped: KeyboardInterrupt | None = None
    with open_texts(texts.source()) as examples:
        models = load(model), load(model.second(compare))
        found = divergent_sentences(*models, examples, most=most, words=words)
        try:
            with _progress(sentences) as show:
                for search in found:
                    show(search)
                    if search.looked == sentences:
                        break
        except KeyboardInterrupt as interrupt:
            stopped = interrupt  # what was found so far is shown
        finally:
            found.close()
    if stopped is not None:
        tell(f"\nstopped after {search.looked if search else 0:,} sentences")
    if search is not None and search.looked:
        if as_json:
            print_json(_values(search, models))
        else:
            print_search(search, models, bits=bits)
    elif stopped is None:
        raise DataError(
            "no sentence could be looked at: of "
            f"{0 if search is None else search.left_out:,}, none has enough words and fits into "
            "both models"
        )
    if stopped is not None:
        raise stopped


def _progress(total: int) -> Any:
    """A bar on a terminal, else a line now and then."""
    from rich.progress import MofNCompleteColumn, TextColumn, TimeRemainingColumn

    def values(search: Search) -> dict[str, Any]:
        return {"completed": search.looked, "flipped": f"{search.flipped} first words flipped"}

    columns = (MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.fields[flipped]}"))
    task: dict[str, Any] = {"description": "sentences", "total": total, "flipped": ""}
    return progress_bar(values, _quiet_lines(total), *columns, **task)


def _quiet_lines(total: int) -> Callable[[Search], None]:
    last = time.monotonic()

    def show(search: Search) -> None:
        nonlocal last
        if time.monotonic() - last >= _QUIET_SECONDS:
            last = time.monotonic()
            tell(f"{search.looked:,} of {total:,} sentences")

    return show


def _values(search: Search, models: Iterable[MaskedLM]) -> dict[str, Any]:
    first, second = (model.signature for model in models)
    return {
        "model": first.name,
        "signature": str(first),
        "compare": {"model": second.name, "signature": str(second)},
        **search.to_dict(),
    }


def print_search(search: Search, models: Iterable[MaskedLM], *, bits: bool) -> None:
    """The table of sentences, and how many were looked at."""
    unit, scale = ("bits", 1 / math.log(2)) if bits else ("nats", 1.0)
    if search.best:
        by_word = search.best[0].kl_nats is None
        rows = (_cells(rank, own, scale) for rank, own in enumerate(search.best, start=1))
        heads = ("sentence", "A says", "B says", f">KL ({unit})", f">NLL A ({unit})", ">NLL B")
        print_table((">#", *heads), rows)
        looked = f"{search.looked:,} sentences ({search.words:,} words hidden)"
        print_line(f"Another first word in {search.flipped:,} of {looked}.")
        if by_word:
            print_line(
                "The models have different tokenizers: they are compared by word, without KL."
            )
    else:
        print_line(
            f"They never part on these {search.looked:,} sentences ({search.words:,} words hidden)."
        )
    if search.left_out:
        print_line(f"Left out as too short or too long: {search.left_out:,}.")
    for name, model in zip("AB", models, strict=True):
        print_line(f"{name}: {model.signature}", "dim")


def _cells(rank: int, own: Divergence, scale: float) -> tuple[str, ...]:
    from fillmask_ui.show.numbers import percent

    def number(nats: float | None) -> str:
        return "-" if nats is None else f"{nats * scale:.4f}"

    text = own.sentence.text
    hidden = text[own.start : own.end] if own.word is None else f"[{own.word}]"
    return (
        str(rank),
        text[: own.start] + hidden + text[own.end :],
        f"{own.first.word} {percent(own.first.probability)}",
        f"{own.other_first.word} {percent(own.other_first.probability)}",
        number(own.kl_nats),
        number(own.nll_nats),
        number(own.other_nll_nats),
    )
