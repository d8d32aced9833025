"""The masks of the sentence under a second model: paired words, joint fillings, files."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fillmask_ui.comparing import Comparison, Contrast, ContrastedWord
from fillmask_ui.filling import unscorable
from fillmask_ui.filling.prompt import split_words
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.bars import MAX_BARS
from fillmask_ui.show.compared import (
    MARKS,
    RankChange,
    compared_name,
    first_words,
    mark,
    points,
    rank_change,
)
from fillmask_ui.show.render import render
from fillmask_ui.ui.background import Waiting
from fillmask_ui.ui.explore.lenses import Json
from fillmask_ui.ui.explore.question import Question
from fillmask_ui.ui.explore.strip import version_of
from fillmask_ui.ui.explore.view import current_draft, model_name
from fillmask_ui.ui.session import Session

_CSV_COLUMNS = ("mask", "position", "other_position", *ContrastedWord.__dataclass_fields__)


@dataclass(frozen=True)
class Row:
    """One word as it is shown."""

    own: ContrastedWord
    name: str
    notes: tuple[str, ...]  # what a reader should know of it
    points: str
    change: RankChange
    key: str  # `mask:token id` of a token that a click writes; blank for none


@dataclass(frozen=True, eq=False)
class Pair:
    """The text of a question under its two models."""

    question: Question
    models: tuple[MaskedLM, MaskedLM]
    text: str
    selected: int  # number of the chosen mask, from 0
    hidden: str | None  # the word behind it, where it is known
    words: tuple[str, ...]  # asked about, that both can score
    notes: tuple[str, ...]  # why others cannot be compared

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(model_name(model) for model in self.models)


def read(session: Session, question: Question) -> Pair:
    """Both models loaded, and what is compared; a `FillmaskError` where it cannot be."""
    models = session.model(question.model), session.model(question.compare)
    draft = current_draft(question, models[0])
    selected = question.selected if question.selected < len(draft.hidden) else 0
    asked, problems = split_words(question.words), dict[str, str]()
    hidden = draft.word(selected)
    for model in models:
        text = draft.text.replace(models[0].vocabulary.mask_token, model.vocabulary.mask_token)
        bad = unscorable(model, text, [*asked, *([hidden] if hidden else [])])
        problems |= {word: f"{model.signature.name}: {why}" for word, why in bad.items()}
    words = tuple(word for word in asked if word not in problems)
    notes = tuple(f"{problems[word]}." for word in asked if word in problems)
    return Pair(
        question, models, draft.text, selected, None if hidden in problems else hidden, words, notes
    )


def compared(session: Session, values: Mapping[str, object]) -> Json:
    """The chosen mask under both models: its `story` and `html`.

    While the second model is being loaded the answer is of kind `busy`, with how far that is, and
    asks to be asked for again; where it cannot be had one of kind `error` says why.
    """
    question = Question.read(values)
    state = session.model_soon(question.compare)
    if isinstance(state, Waiting):
        message = state.message or "Loading the second model…"
        return {"kind": "busy", "notice": message, "fraction": state.fraction}
    pair = read(session, question)
    asked = dict.fromkeys([*([pair.hidden] if pair.hidden else []), *pair.words])
    found = session.compare(
        pair.models, pair.text, top_k=question.top_k, words=tuple(asked), joint=0
    )
    several = len(found.masks) > 1
    return shown(pair, found.masks[pair.selected], found.notes, several=several)


def shown(
    pair: Pair,
    mask: Contrast,
    notes: Sequence[str] = (),
    *,
    several: bool = False,
    writes: int = 0,
) -> Json:
    """One mask under both models, as `compared` gives it.

    Args:
        pair: what is compared.
        mask: how.
        notes: what a reader should know.
        several: whether the mask is named by its number.
        writes: whose tokens a click on a word writes, 0 for A's and 1 for B's.
    """
    vocabularies = [model.vocabulary for model in pair.models]
    values = {
        "mask": mask,
        "selected": pair.selected,
        "several": several,
        "first": [compared_name(row, *vocabularies) for row in first_words(mask)],
    }
    return {
        "kind": "none",
        "story": render("page/explore/compare_story.html", **values),
        "html": render(
            "page/explore/compare.html",
            rows=[_row(row, pair, writes) for row in mask.candidates],
            most=MAX_BARS,
            names=pair.names,
            notes=[*(f"{note[:1].upper()}{note[1:]}." for note in notes), *pair.notes],
            unit=pair.question.unit,
            zoom=pair.question.zoom,
            version=version_of(pair.text),
            **values,
        ),
    }


def _row(row: ContrastedWord, pair: Pair, writes: int) -> Row:
    token_id = row.other_token_id if writes else row.token_id
    kind, notes = mark(row), []
    if row.asked and row.word == pair.hidden:
        notes.append("the hidden word")
    elif row.asked and not kind:
        notes.append("asked")
    if kind and not (kind == "asked" and notes):
        notes.append(kind if kind == "asked" else MARKS[kind])
    return Row(
        row,
        compared_name(row, *(model.vocabulary for model in pair.models)),
        tuple(notes),
        points(row),
        rank_change(row),
        "" if token_id is None else f"{pair.selected}:{token_id}",
    )


def joint_html(session: Session, question: Question) -> str:
    """The joint fillings of both models as a table; nothing where there are none."""
    pair = read(session, question)
    found = session.compare(pair.models, pair.text, top_k=1)
    return render(
        "page/explore/compare_joint.html",
        joint=found.joint,
        names=pair.names,
        unit=question.unit,
        version=version_of(pair.text),
    )


def comparison(session: Session, question: Question, top_k: int | None) -> Comparison:
    """All masks under both models, for a file."""
    pair = read(session, question)
    return session.compare(pair.models, pair.text, top_k=top_k, words=pair.words)


def comparison_csv(found: Comparison) -> str:
    """All words of all masks, one per line, numbers unrounded; what begins with `other` is of B."""
    out = io.StringIO()
    writer = csv.DictWriter(out, (*_CSV_COLUMNS, "model", "other_model"), lineterminator="\n")
    writer.writeheader()
    names = {
        "model": found.first.signature.name,
        "other_model": found.second.signature.name,
    }
    for number, mask in enumerate(found.masks, start=1):
        place = {
            "mask": number,
            "position": mask.position,
            "other_position": mask.other_position,
        }
        writer.writerows(place | vars(row) | names for row in mask.candidates)
    return out.getvalue()
