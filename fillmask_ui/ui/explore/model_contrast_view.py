"""The masks of a sentence under a second model: the chart, joint fillings, files."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fillmask_ui.comparing import Comparison, Contrast, ContrastedWord, compare
from fillmask_ui.filling import unscorable
from fillmask_ui.filling.prompt import split_words
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.render import render
from fillmask_ui.ui.explore.attribution_view import Json
from fillmask_ui.ui.explore.contrast_chart import Sides, contrast_html
from fillmask_ui.ui.explore.explore_state import Question
from fillmask_ui.ui.explore.prediction_view import current_draft, model_name
from fillmask_ui.ui.explore.sentence_strip import version_of
from fillmask_ui.ui.figure import finished
from fillmask_ui.ui.session import Session

_CSV_COLUMNS = ("mask", "position", "other_position", *ContrastedWord.__dataclass_fields__)


@dataclass(frozen=True, eq=False)
class Pair:
    """The text of a question under its two models."""

    question: Question
    models: tuple[MaskedLM, MaskedLM]  # reference, candidate
    text: str
    selected: int  # number of the chosen mask, from 0
    hidden: str | None  # the word behind it, if known
    words: tuple[str, ...]  # typed words that both can score
    notes: tuple[str, ...]  # why the others cannot be compared

    @property
    def names(self) -> tuple[str, str]:
        return model_name(self.models[0]), model_name(self.models[1])


def read(session: Session, question: Question) -> Pair:
    """Load both models and prepare the comparison; a `FillmaskError` if impossible."""
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
    """The chosen mask under both models as `html`; `Unfinished` while the candidate loads."""
    question = Question.read(values)
    finished(session.model_soon(question.compare))
    pair = read(session, question)
    asked = dict.fromkeys([*([pair.hidden] if pair.hidden else []), *pair.words])
    choices = {"top_k": question.top_k, "candidates": tuple(asked), "joint": 0}
    found = session.ask(pair.models, compare, pair.text, **choices)
    several = len(found.masks) > 1
    return shown(pair, found.masks[pair.selected], found.notes, several=several)


def shown(pair: Pair, mask: Contrast, notes: Sequence[str] = (), *, several: bool = False) -> Json:
    """One mask under both models, in the form of `compared`; `several` has its number told."""
    first, second = (model.vocabulary for model in pair.models)
    html = contrast_html(
        mask,
        Sides("models", ("reference", "candidate"), pair.names, (first, second)),
        pair.question,
        number=pair.selected if several else None,
        hidden=pair.hidden,
        key=f"{version_of(pair.text)}:{pair.selected}",
        notes=[*(f"{note[:1].upper()}{note[1:]}." for note in notes), *pair.notes],
    )
    return {"kind": "none", "html": html}


def joint_html(session: Session, question: Question) -> str:
    """The joint fillings of both models as a table; blank if there are none."""
    pair = read(session, question)
    found = session.ask(pair.models, compare, pair.text, top_k=1)
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
    return session.ask(pair.models, compare, pair.text, top_k=top_k, candidates=pair.words)


def comparison_csv(found: Comparison) -> str:
    """All words of all masks, one per line, unrounded; columns with `other` are the candidate's."""
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
