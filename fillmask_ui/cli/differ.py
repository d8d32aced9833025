"""`fillmask-ui differ`: the sentences on which two models differ most."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

from fillmask_ui.cli.options import Baseline, Compare, InBits, Json, compared, option, with_options
from fillmask_ui.cli.terminal import Bar, count_bar, load, print_json, print_line, print_table, tell
from fillmask_ui.comparing.divergence_search import WORDS
from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.records import ROLES
from fillmask_ui.texts import TextChoice

if TYPE_CHECKING:
    from fillmask_ui.comparing.divergence_search import Divergence, Search
    from fillmask_ui.protocol import MaskedLM


@with_options
def differ(
    *,
    model: ModelChoice,
    baseline: Baseline = None,
    compare: Compare = None,
    texts: TextChoice,
    sentences: Annotated[int, option("Sentences looked at.", min=1, metavar="N")] = 200,
    words: Annotated[
        int, option("Words hidden in each sentence, one at a time.", min=1, metavar="N")
    ] = WORDS,
    most: Annotated[int, option("Sentences shown.", min=1, metavar="N")] = 20,
    bits: InBits = False,
    as_json: Json = False,
) -> None:
    """Find the sentences of texts on which two models differ most."""
    from fillmask_ui.comparing.divergence_search import divergent_sentences
    from fillmask_ui.texts import open_texts

    choices = compared(model, baseline, compare)
    if len(choices) < 2:
        raise OptionError("two models are compared: name the reference by --baseline")
    search: Search | None = None
    stopped: KeyboardInterrupt | None = None
    with open_texts(texts.source()) as examples:
        reference, candidate = models = [load(own) for own in choices]
        found = divergent_sentences(reference, candidate, examples, most=most, words=words)
        try:
            with closing(found), _bar(sentences) as show:
                for search in found:
                    show(search)
                    if search.looked == sentences:
                        break
        except KeyboardInterrupt as interrupt:
            stopped = interrupt  # what was found so far is shown
            tell(f"\nstopped after {search.looked if search else 0:,} sentences")
    if search is not None and search.looked:
        if as_json:
            print_json(_values(search, models))
        else:
            print_search(search, models, "bits" if bits else "nats")
    elif stopped is None:
        raise DataError(
            "no sentence could be looked at: of "
            f"{search.left_out if search else 0:,}, none has enough words and fits into both models"
        )
    if stopped is not None:
        raise stopped


def _bar(total: int) -> Bar:
    def values(search: Search) -> dict[str, Any]:
        now = f"{search.flipped} first words flipped"
        return {"completed": search.looked, "total": total, "now": now}

    def line(search: Search) -> str:
        return f"{search.looked:,} of {total:,} sentences"

    return count_bar(values, line, description="sentences", total=total)


def _values(search: Search, models: Sequence[MaskedLM]) -> dict[str, Any]:
    own = (model.signature for model in models)
    named = ({"model": signature.name, "signature": str(signature)} for signature in own)
    return dict(zip(ROLES, named, strict=True)) | search.to_dict()


def print_search(search: Search, models: Sequence[MaskedLM], unit: str) -> None:
    """The table of sentences, and how many were looked at."""
    from fillmask_ui.show.numbers import loss_form
    from fillmask_ui.show.table import Column, Table

    looked = f"{search.looked:,} sentences ({search.words:,} words hidden)"
    if search.best:
        heads = (f"KL ({unit})", *(f"{role} NLL ({unit})" for role in ROLES))
        losses = (Column(head, loss_form(unit), missing="-", right=True) for head in heads)
        columns: tuple[str | Column, ...] = (
            "#",
            "sentence",
            *(f"{role} says" for role in ROLES),
            *losses,
        )
        rows = ((rank, *_cells(own)) for rank, own in enumerate(search.best, start=1))
        print_table(Table.of(columns, rows))
        print_line(f"Another first word in {search.flipped:,} of {looked}.")
        if search.best[0].kl_nats is None:
            print_line("The tokenizers differ: the models are compared by word, without KL.")
    else:
        print_line(f"The models do not differ on {looked}.")
    if search.left_out:
        print_line(f"Left out as too short or too long: {search.left_out:,}.")
    for role, model in zip(ROLES, models, strict=True):
        print_line(f"{role.capitalize()}: {model.signature}", "dim")


def _cells(own: Divergence) -> tuple[Any, ...]:
    from fillmask_ui.show.numbers import percent

    text = own.sentence.text
    hidden = text[own.start : own.end] if own.word is None else f"[{own.word}]"
    return (
        text[: own.start] + hidden + text[own.end :],
        *(f"{best.word} {percent(best.probability)}" for best in (own.first, own.other_first)),
        *(own.kl_nats, own.nll_nats, own.other_nll_nats),
    )
