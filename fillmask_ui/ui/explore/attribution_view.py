"""What tints the words of a sentence: surprisal, under one model or two, and occlusion.

The tints do not depend on the sentence, so that two sentences can be compared.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fillmask_ui.comparing.word_contrast import (
    DIFFERENT_CUTS,
    ComparedWord,
    align_text,
    compared_words,
    summarize_comparison,
)
from fillmask_ui.filling import occlusion_windows
from fillmask_ui.filling.occlusion import Occlusion
from fillmask_ui.filling.prompt import encode_unmasked
from fillmask_ui.filling.word_surprisal import (
    SentenceSurprisal,
    WordSurprisal,
    summarize_surprisal,
    surprisal_windows,
)
from fillmask_ui.filling.words import TextWord, text_words
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.numbers import in_unit, percent
from fillmask_ui.show.render import render
from fillmask_ui.show.words import candidate_names
from fillmask_ui.ui.explore.charts import Axis, Cell, Column, Columns, Row, short
from fillmask_ui.ui.explore.explore_state import Asked, Json
from fillmask_ui.ui.explore.prediction_view import model_name
from fillmask_ui.ui.explore.sentence_strip import version_of
from fillmask_ui.ui.session import MAX_WORK, Session

# Words with a column each; the table has them all.
MAX_COLUMNS = 100
# Other words with a bar each, the most important ones.
MAX_ROWS = 10


@dataclass(frozen=True)
class Levels:
    """The borders between the tints of words, in nats; below the first there is none."""

    borders: tuple[float, ...]

    def of(self, nats: float) -> int:
        """The number of the tint; 0 for none.

        >>> levels = Levels((2.0, 4.0))
        >>> levels.of(1.9), levels.of(2.0), levels.of(float("inf")), levels.of(float("nan"))
        (0, 1, 2, 0)
        """
        return sum(nats >= border for border in self.borders)

    def labels(self, unit: str) -> tuple[str, ...]:
        """What each tint stands for, in the reader's unit.

        >>> Levels((2.0, 4.0)).labels("nats"), Levels((2.0, 4.0)).labels("bits")
        (('0–2', '2–4', '4+'), ('0–2.9', '2.9–5.8', '5.8+'))
        """
        ends = [f"{in_unit(border, unit):.2g}" for border in self.borders]
        between = (f"{low}–{high}" for low, high in itertools.pairwise(("0", *ends)))
        return (*between, f"{ends[-1]}+")


# Of a KL divergence, and of a difference of losses.
CHANGES = Levels((0.05, 0.2, 0.5, 1.0))
# A uniform guess among 22,000 words costs 10 nats.
LOSSES = Levels((2.0, 4.0, 6.0, 8.0))


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

    `words` have the index of their first token, their tint and their details; `next` is the `start`
    of the next call, None at the end.

    `lens` names the templates, which also get `values`; `tint` is that of a word in the strip, and
    `parts` are those of a word that are buttons there; `total` words are known in the end, those of
    the text unless given.
    """
    vocabulary, known = asked.model.vocabulary, len(words)
    if total is None:
        total = len(text_words(vocabulary.encode(asked.text), vocabulary))
    new = words[min(asked.question.start, known) :]
    values |= {"unit": asked.question.unit, "vocabulary": vocabulary, "names": candidate_names}
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


def occlusion(session: Session, values: Mapping[str, Any]) -> Json:
    """What the guess at a mask loses without each other word, some words at a time."""
    asked = Asked.read(session, values)
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
    axis = Axis.fitted(sizes, unit)
    rows = [
        Row(
            own.word.text,
            (axis.mark(size, "reference", f"{size:.3f}"),),
            (Cell(percent(own.probability)),),
        )
        for own, size in zip(most, sizes, strict=True)
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


def surprisal(session: Session, values: Mapping[str, Any]) -> Json:
    """How surprising each word of a sentence is, some words at a time."""
    asked = Asked.read(session, values)
    unit, vocabulary = asked.question.unit, asked.model.vocabulary
    words = _measured(session, asked.model, asked.text, asked.question.start)
    columns = [
        Column(
            own.word.text,
            in_unit(own.nll_nats, unit),
            short(in_unit(own.nll_nats, unit)),
            candidate_names(own.wanted, vocabulary)[0],
            level=LOSSES.of(own.nll_nats),
        )
        for own in words[:MAX_COLUMNS]
        if not own.unknown
    ]
    return _shown(
        asked,
        "surprise",
        words,
        lambda own: {"level": 0 if own.unknown else LOSSES.of(own.nll_nats)},
        summary=summarize_surprisal(words),
        unknown=[own.word.text for own in words if own.unknown],
        labels=LOSSES.labels(unit),
        chart=Columns.of(columns, unit),
    )


def _measured(
    session: Session, model: MaskedLM, text: str, start: int
) -> tuple[WordSurprisal, ...]:
    """The known words of a text, with more measured if word `start` is not among them."""

    def longer(own: MaskedLM, known: SentenceSurprisal | None) -> SentenceSurprisal:
        words = known.words if known else ()
        windows = surprisal_windows(own, text, start=len(words), most_work=MAX_WORK)
        encoding = known.encoding if known else encode_unmasked(own, text)
        return SentenceSurprisal(encoding, own.signature, (*words, *next(windows, ())))

    return session.further(model, (surprisal_windows, text), start, longer).words


def contrast_words(session: Session, values: Mapping[str, Any]) -> Json:
    """A sentence without a mask under two models, some words at a time."""
    asked = Asked.read(session, values)
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
            found = _measured(session, model, asked.text, numbers.stop - 1)
            while len(found) < numbers.stop:
                found = _measured(session, model, asked.text, numbers.stop - 1)
            sides.append(found)
        words = compared_words(alignment, *sides)
    columns = [_column(own, tint, unit) for own in words]
    chart = [own for own in columns[:MAX_COLUMNS] if own.below]

    def tinted(own: ComparedWord) -> Json:
        column = _column(own, tint, unit)
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
        tint=tint,
        alike=alignment.alike,
        labels=LOSSES.labels(unit),
        note="" if alignment.alike else DIFFERENT_CUTS,
        chart=Columns.of(chart, unit),
        summary=summarize_comparison(words),
        unknown=[own.text for own in words if own.unknown],
    )
    return {"tint": tint, **shown}


def _column(own: ComparedWord, tint: str, unit: str) -> Column:
    """A word by the difference of its losses, or by one of them; an unknown one has no number."""
    if own.unknown:
        return Column(own.text, 0.0, "unknown", "")
    one, two = (in_unit(nats, unit) for nats in (own.nll_nats, own.other_nll_nats))
    both = f"{short(one)} → {short(two)}"
    if tint != "difference":
        value, nats = (one, own.nll_nats) if tint == "a" else (two, own.other_nll_nats)
        return Column(own.text, value, f"{value:.2f}", both, LOSSES.of(nats))
    value = two - one
    if math.isnan(value) or not value:
        return Column(own.text, 0.0, "=", both)
    side = "candidate" if value > 0 else "reference"
    text = f"{value:+.2f}".replace("-", "−")
    return Column(own.text, value, text, both, CHANGES.of(abs(own.difference_nats)), side)
