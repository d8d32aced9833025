"""What tints the words of a sentence: surprisal, under one model or two, and occlusion.

The tints do not depend on the sentence, so that two sentences can be compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fillmask_ui.comparing.word_contrast import ComparedWord, align_text, compared_words
from fillmask_ui.filling import occlusion_windows
from fillmask_ui.filling.occlusion import Occlusion
from fillmask_ui.filling.prompt import encode_unmasked
from fillmask_ui.filling.word_surprisal import SentenceSurprisal, WordSurprisal, surprisal_windows
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.answers import (
    CHANGES,
    LOSSES,
    compared_column,
    compared_values,
    surprisal_values,
)
from fillmask_ui.show.bars import Axis, BarRow, Cell
from fillmask_ui.show.numbers import in_unit, percent
from fillmask_ui.show.render import render
from fillmask_ui.text_words import text_words
from fillmask_ui.ui.explore.contrast_view import ONE_MODEL
from fillmask_ui.ui.explore.explore_state import Asked, Json, Question
from fillmask_ui.ui.explore.prediction_view import model_name
from fillmask_ui.ui.explore.sentence_strip import version_of
from fillmask_ui.ui.session import MAX_WORK, Session

# Other words with a bar each, the most important ones.
MAX_ROWS = 10


@dataclass(frozen=True)
class _Word:
    """A word that is known."""

    record: Any  # for the templates, as `own`
    tint: Json  # in the strip
    tokens: tuple[int, ...]  # the first of each of its buttons there


def _shown(
    asked: Asked, story: str, words: Sequence[_Word], values: Json, total: int | None = None
) -> Json:
    """The words new to the browser, and a `story`, a template, of all words known.

    The templates of its table and of a word have names like it, and get `values`, too; `total`
    words are known in the end, those of the text unless given. In the answer `next` is the `start`
    of the next call, None at the end.
    """
    name, known = Path(story).stem, len(words)
    if total is None:
        total = len(text_words(asked.model.vocabulary.encode(asked.text)))
    new = words[min(asked.question.start, known) :]
    values |= {"unit": asked.question.unit, "vocabulary": asked.model.vocabulary}
    values |= {"known": known, "total": total}
    entries = []
    for word in new:
        html = render(f"explore/{name}_word.html", own=word.record, **values)
        entries += [{"token": token, **word.tint, "html": html} for token in word.tokens]
    records = [word.record for word in new]
    return {
        "version": version_of(asked.text),
        "words": entries,
        "known": known,
        "total": total,
        "next": known if known < total else None,
        "html": {
            "story": render(story, **values),
            "table": render(f"explore/{name}_table.html", words=records, **values),
        },
    }


def occlusion(session: Session, question: Question) -> Json:
    """What the guess at a mask loses without each other word, some words at a time."""
    asked = Asked.read(session, question)
    text, mask, unit = asked.text, asked.mask, asked.question.unit
    word = asked.draft.word(mask) or ""

    def longer(model: MaskedLM, known: Occlusion | None) -> Occlusion:
        words = known.words if known else ()
        window = next(occlusion_windows(model, text, mask, word=word, start=len(words)))
        return replace(window, words=(*words, *window.words))

    key = (occlusion_windows, text, mask, word)
    found = session.further(asked.model, key, asked.question.start, longer)
    most = sorted(found.words, key=lambda own: -own.kl_nats)[:MAX_ROWS]
    sizes = [in_unit(own.kl_nats, unit) for own in most]
    axis = Axis.fitted(sizes, unit, digits=3)
    marks = [(axis.mark(size, "reference", f"{size:.3f}"),) for size in sizes]
    rows = [
        BarRow(own.word.text, mark, (Cell(percent(own.probability)),))
        for own, mark in zip(most, marks, strict=True)
    ]
    tinted = [
        _Word(own, {"level": CHANGES.of(own.kl_nats)}, own.word.tokens[:1]) for own in found.words
    ]
    labels, largest = CHANGES.labels(unit), most[0] if most else None
    values = {"found": found, "most": largest, "labels": labels, "rows": rows, "axis": axis}
    return _shown(asked, "explore/mattered.html", tinted, values)


def surprisal(session: Session, question: Question) -> Json:
    """How surprising each word of a sentence is, some words at a time."""
    asked = Asked.read(session, question)
    words = measured_words(session, asked.model, asked.text, asked.question.start)
    tinted = []
    for word in words:
        level = 0 if word.unknown else LOSSES.of(word.nll_nats)
        tinted.append(_Word(word, {"level": level}, word.word.tokens[:1]))
    values = surprisal_values(words, asked.model.vocabulary, asked.question.unit)
    return _shown(asked, "page/surprise.html", tinted, values)


def measured_words(
    session: Session, model: MaskedLM, text: str, start: int
) -> tuple[WordSurprisal, ...]:
    """The known words of a text, with more measured if word `start` is not among them."""

    def longer(own: MaskedLM, known: SentenceSurprisal | None) -> SentenceSurprisal:
        words = known.words if known else ()
        windows = surprisal_windows(own, text, start=len(words), most_work=MAX_WORK)
        encoding = known.encoding if known else encode_unmasked(own, text)
        return SentenceSurprisal(encoding, own.signature, (*words, *next(windows, ())))

    return session.further(model, (surprisal_windows, text), start, longer).words


def contrast_words(session: Session, question: Question) -> Json:
    """A sentence without a mask under two models, some words at a time."""
    if not question.compare:
        return ONE_MODEL
    asked = Asked.read(session, question)
    models = asked.model, session.model_soon(asked.question.compare)
    unit, tint = asked.question.unit, asked.question.tint
    alignment = align_text(*models, asked.text)
    words: tuple[ComparedWord, ...] = ()
    total = len(alignment.stretches)
    if total:
        wanted = alignment.stretches[min(asked.question.start, total - 1)]
        sides = []
        for model, numbers in zip(models, (wanted.reference, wanted.candidate), strict=True):
            # Reuses what was measured for either model alone.
            found = measured_words(session, model, asked.text, numbers.stop - 1)
            while len(found) < numbers.stop:
                found = measured_words(session, model, asked.text, numbers.stop - 1)
            sides.append(found)
        words = compared_words(alignment, *sides)

    tinted = []
    for word in words:
        column = compared_column(word, tint, unit)
        look = {"level": column.level, "sign": column.role, "label": column.text}
        tinted.append(_Word(word, look, tuple(part.word.tokens[0] for part in word.reference)))
    values = compared_values(words, alignment.alike, tint, unit)
    values["vocabularies"] = [model.vocabulary for model in models]
    values["models"] = [model_name(model) for model in models]
    return {"tint": tint, **_shown(asked, "page/apart.html", tinted, values, total)}
