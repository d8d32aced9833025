"""What tints the words of a sentence: surprisal, under one model or two, and occlusion.

The tints do not depend on the sentence, so that two sentences can be compared.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
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
from fillmask_ui.show.bars import Axis, Cell, Row
from fillmask_ui.show.numbers import in_unit, percent
from fillmask_ui.show.render import render
from fillmask_ui.text_words import TextWord, text_words
from fillmask_ui.ui.explore.explore_state import Asked, Json, Question
from fillmask_ui.ui.explore.prediction_view import model_name
from fillmask_ui.ui.explore.sentence_strip import version_of
from fillmask_ui.ui.session import MAX_WORK, Session

# Other words with a bar each, the most important ones.
MAX_ROWS = 10


def _shown(
    asked: Asked,
    lens: str,
    words: Sequence[Any],
    tint: Callable[[Any], Json],
    parts: Callable[[Any], Iterable[TextWord]] = lambda own: [own.word],
    total: int | None = None,
    /,
    **values: Any,
) -> Json:
    """The words new to the browser, and a summary of all words known.

    `lens` names the templates, which also get `values`; `tint` is that of a word in the strip, and
    `parts` are those of a word that are buttons there; `total` words are known in the end, those of
    the text unless given. In the answer `next` is the `start` of the next call, None at the end.
    """
    vocabulary, known = asked.model.vocabulary, len(words)
    if total is None:
        total = len(text_words(vocabulary.encode(asked.text)))
    new = words[min(asked.question.start, known) :]
    values |= {"unit": asked.question.unit, "vocabulary": vocabulary}
    values |= {"known": known, "total": total}
    entries = []
    for own in new:
        entry = {**tint(own), "html": render(f"page/explore/{lens}_word.html", own=own, **values)}
        entries += [{"token": part.tokens[0], **entry} for part in parts(own)]
    return {
        "version": version_of(asked.text),
        "words": entries,
        "known": known,
        "total": total,
        "next": known if known < total else None,
        "html": {
            "story": render(f"page/explore/{lens}.html", **values),
            "table": render(f"page/explore/{lens}_table.html", words=new, **values),
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
        Row(own.word.text, mark, (Cell(percent(own.probability)),))
        for own, mark in zip(most, marks, strict=True)
    ]
    return _shown(
        asked,
        "mattered",
        found.words,
        lambda own: {"level": CHANGES.of(own.kl_nats)},
        found=found,
        most=most[0] if most else None,
        labels=CHANGES.labels(unit),
        rows=rows,
        axis=axis,
    )


def surprisal(session: Session, question: Question) -> Json:
    """How surprising each word of a sentence is, some words at a time."""
    asked = Asked.read(session, question)
    unit, vocabulary = asked.question.unit, asked.model.vocabulary
    words = measured_words(session, asked.model, asked.text, asked.question.start)
    return _shown(
        asked,
        "surprise",
        words,
        lambda own: {"level": 0 if own.unknown else LOSSES.of(own.nll_nats)},
        **surprisal_values(words, vocabulary, unit),
    )


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
    asked = Asked.read(session, question)
    models = asked.model, session.model_soon(asked.question.compare)
    unit, tint = asked.question.unit, asked.question.tint
    alignment = align_text(*models, asked.text)
    words: tuple[ComparedWord, ...] = ()
    total = len(alignment.stretches)
    if total:
        wanted = alignment.stretches[min(asked.question.start, total - 1)]
        sides = []
        for model, numbers in zip(models, (wanted.first, wanted.second), strict=True):
            # Reuses what was measured for either model alone.
            found = measured_words(session, model, asked.text, numbers.stop - 1)
            while len(found) < numbers.stop:
                found = measured_words(session, model, asked.text, numbers.stop - 1)
            sides.append(found)
        words = compared_words(alignment, *sides)

    def tinted(own: ComparedWord) -> Json:
        column = compared_column(own, tint, unit)
        return {"level": column.level, "sign": column.side, "label": column.text}

    shown = _shown(
        asked,
        "apart",
        words,
        tinted,
        lambda own: [part.word for part in own.first],
        total,
        vocabularies=[model.vocabulary for model in models],
        models=[model_name(model) for model in models],
        **compared_values(words, alignment.alike, tint, unit),
    )
    return {"tint": tint, **shown}
