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
from fillmask_ui.ui.explore.explore_state import Json, LoadedQuestion, Question
from fillmask_ui.ui.explore.prediction_view import model_name
from fillmask_ui.ui.explore.sentence_strip import version_of
from fillmask_ui.ui.session import MAX_WORK, Session

# Other words with a bar each, the most important ones.
MAX_ROWS = 10


@dataclass(frozen=True)
class _Word:
    """A measured word."""

    record: Any  # for the templates, as `word`
    tint: Json  # in the strip
    tokens: tuple[int, ...]  # the first of each of its buttons there


def _words_answer(
    loaded: LoadedQuestion,
    story: str,
    words: Sequence[_Word],
    values: Json,
    total: int | None = None,
) -> Json:
    """The words new to the browser, and a `story`, a template, of all words measured so far.

    The templates of its table and of a word have names like it, and get `values`, too. `total` is
    the number of words in the end, that of the text by default. In the answer `next` is the
    `start` of the next call, None at the end.
    """
    name, measured = Path(story).stem, len(words)
    if total is None:
        total = len(text_words(loaded.model.vocabulary.encode(loaded.text)))
    new = words[min(loaded.question.start, measured) :]
    values |= {"unit": loaded.question.unit, "vocabulary": loaded.model.vocabulary}
    values |= {"known": measured, "total": total}
    entries = []
    for word in new:
        html = render(f"explore/{name}_word.html", word=word.record, **values)
        entries += [{"token": token, **word.tint, "html": html} for token in word.tokens]
    records = [word.record for word in new]
    story_and_table = {
        "story": render(story, **values),
        "table": render(f"explore/{name}_table.html", words=records, **values),
    }
    return words_answer(loaded, entries, measured, total, story_and_table)


def words_answer(
    loaded: LoadedQuestion, words: list[Json], measured: int, total: int, html: Json
) -> Json:
    """The answer of a mode that shows a sentence word by word, some words at a time.

    Args:
        loaded: what was asked.
        words: their tints and tooltips, of this answer alone.
        measured: words measured so far.
        total: words of the sentence.
        html: `story` and `table`.
    """
    return {
        "version": version_of(loaded.text),
        "words": words,
        "known": measured,
        "total": total,
        "next": measured if measured < total else None,
        "html": html,
    }


def occlusion(session: Session, question: Question) -> Json:
    """What the guess at a mask loses without each other word, some words at a time."""
    loaded = LoadedQuestion.read(session, question)
    unit, measured = loaded.question.unit, measured_occlusion(session, loaded)
    most = sorted(measured.words, key=lambda word: -word.kl_nats)[:MAX_ROWS]
    sizes = [in_unit(word.kl_nats, unit) for word in most]
    axis = Axis.fitted(sizes, unit, digits=3)
    marks = [(axis.mark(size, "reference", f"{size:.3f}"),) for size in sizes]
    rows = [
        BarRow(word.word.text, mark, (Cell(percent(word.probability)),))
        for word, mark in zip(most, marks, strict=True)
    ]
    tinted = [
        _Word(word, {"level": CHANGES.of(word.kl_nats)}, word.word.tokens[:1])
        for word in measured.words
    ]
    labels, largest = CHANGES.labels(unit), most[0] if most else None
    values = {"found": measured, "most": largest, "labels": labels, "rows": rows, "axis": axis}
    return _words_answer(loaded, "explore/mattered.html", tinted, values)


def measured_occlusion(session: Session, loaded: LoadedQuestion) -> Occlusion:
    """The measured words, with more measured if word `start` of the question is not among them."""
    text, mask = loaded.text, loaded.mask
    word = loaded.draft.word(mask) or ""

    def longer(model: MaskedLM, cached: Occlusion | None) -> Occlusion:
        words = cached.words if cached else ()
        window = next(occlusion_windows(model, text, mask, word=word, start=len(words)))
        return replace(window, words=(*words, *window.words))

    key = (occlusion_windows, text, mask, word)
    return session.further(loaded.model, key, loaded.question.start, longer)


def surprisal(session: Session, question: Question) -> Json:
    """How surprising each word of a sentence is, some words at a time."""
    loaded = LoadedQuestion.read(session, question)
    words = measured_words(session, loaded.model, loaded.text, loaded.question.start)
    tinted = []
    for word in words:
        level = 0 if word.unknown else LOSSES.of(word.nll_nats)
        tinted.append(_Word(word, {"level": level}, word.word.tokens[:1]))
    values = surprisal_values(words, loaded.model.vocabulary, loaded.question.unit)
    return _words_answer(loaded, "page/surprise.html", tinted, values)


def measured_words(
    session: Session, model: MaskedLM, text: str, start: int
) -> tuple[WordSurprisal, ...]:
    """The known words of a text, with more measured if word `start` is not among them."""

    def longer(model: MaskedLM, cached: SentenceSurprisal | None) -> SentenceSurprisal:
        words = cached.words if cached else ()
        windows = surprisal_windows(model, text, start=len(words), most_work=MAX_WORK)
        encoding = cached.encoding if cached else encode_unmasked(model, text)
        return SentenceSurprisal(encoding, model.signature, (*words, *next(windows, ())))

    return session.further(model, (surprisal_windows, text), start, longer).words


def contrast_words(session: Session, question: Question) -> Json:
    """A sentence without a mask under two models, some words at a time."""
    if not question.compare:
        return ONE_MODEL
    loaded = LoadedQuestion.read(session, question)
    models = loaded.model, session.model_soon(loaded.question.compare)
    unit, tint = loaded.question.unit, loaded.question.tint
    alignment = align_text(*models, loaded.text)
    words: tuple[ComparedWord, ...] = ()
    total = len(alignment.stretches)
    if total:
        stretch = alignment.stretches[min(loaded.question.start, total - 1)]
        measured_by_model = []
        for model, numbers in zip(models, (stretch.reference, stretch.candidate), strict=True):
            # Reuses what was measured for either model alone.
            measured = measured_words(session, model, loaded.text, numbers.stop - 1)
            while len(measured) < numbers.stop:
                measured = measured_words(session, model, loaded.text, numbers.stop - 1)
            measured_by_model.append(measured)
        words = compared_words(alignment, *measured_by_model)

    tinted = []
    for word in words:
        column = compared_column(word, tint, unit)
        look = {"level": column.level, "sign": column.role, "label": column.text}
        tinted.append(_Word(word, look, tuple(part.word.tokens[0] for part in word.reference)))
    values = compared_values(words, alignment.alike, tint, unit)
    values["vocabularies"] = [model.vocabulary for model in models]
    values["models"] = [model_name(model) for model in models]
    return {"tint": tint, **_words_answer(loaded, "page/apart.html", tinted, values, total)}
