"""A sentence without a mask under two models: what each word costs either of them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fillmask_ui.comparing.word_contrast import (
    DIFFERENT_CUTS,
    Alignment,
    ComparedWord,
    align_text,
    compared_words,
    summarize_comparison,
)
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.numbers import in_unit
from fillmask_ui.show.render import render
from fillmask_ui.show.words import candidate_names
from fillmask_ui.ui.explore.attribution_view import (
    CHANGES,
    LOSSES,
    MAX_COLUMNS,
    Asked,
    Json,
    grown,
    measured,
    read_asked,
)
from fillmask_ui.ui.explore.charts import Column, Columns, short
from fillmask_ui.ui.explore.prediction_view import model_name
from fillmask_ui.ui.figure import finished
from fillmask_ui.ui.session import Session


def contrast_words(session: Session, values: Mapping[str, Any]) -> Json:
    """Some words of a sentence under two models, in the form of `surprisal`."""
    asked = read_asked(session, values)
    other = finished(session.model_soon(asked.question.compare))
    alignment = align_text(asked.model, other, asked.text)
    return _shown(asked, other, alignment, _known(session, asked, other, alignment))


def _known(
    session: Session, asked: Asked, other: MaskedLM, alignment: Alignment
) -> tuple[ComparedWord, ...]:
    """The words measured under both models, word `start` included."""
    if not alignment.stretches:
        return ()
    wanted = alignment.stretches[min(asked.start, len(alignment.stretches) - 1)]
    sides = []
    for model, numbers in ((asked.model, wanted.first), (other, wanted.second)):
        # Reuses what was measured for either model alone.
        found = measured(session, model, asked.text, numbers.stop - 1)
        while len(found.words) < numbers.stop:
            found = measured(session, model, asked.text, numbers.stop - 1)
        sides.append(found.words)
    return compared_words(alignment, *sides)


def _shown(
    asked: Asked, other: MaskedLM, alignment: Alignment, words: Sequence[ComparedWord]
) -> Json:
    unit, tint = asked.question.unit, asked.question.tint
    new = words[min(asked.start, len(words)) :]
    columns = [_column(own, tint, unit) for own in words[:MAX_COLUMNS] if not own.unknown]
    values = {
        "unit": unit,
        "vocabularies": (asked.model.vocabulary, other.vocabulary),
        "names": candidate_names,
        "models": (model_name(asked.model), model_name(other)),
        "tint": tint,
        "alike": alignment.alike,
        "labels": LOSSES.labels(unit),
        "note": "" if alignment.alike else DIFFERENT_CUTS,
        "chart": Columns.of(columns, unit),
        "summary": summarize_comparison(words),
        "unknown": [own.text for own in words if own.unknown],
    }
    entries = []
    for own in new:
        column = _column(own, tint, unit)
        html = render("page/explore/apart_word.html", own=own, **values)
        entry = {"level": column.level, "sign": column.side, "label": column.text, "html": html}
        # One for each button of the strip, which shows the reference's words.
        entries += [{"token": part.word.tokens[0], **entry} for part in own.first]
    total = len(alignment.stretches)
    return {"tint": tint, **grown(asked.text, "apart", entries, words, new, total, **values)}


def _column(own: ComparedWord, tint: str, unit: str) -> Column:
    """A word by the difference of its losses, or by one of them."""
    one, two = (in_unit(nats, unit) for nats in (own.nll_nats, own.other_nll_nats))
    if own.unknown:
        return Column(own.text, 0.0, "unknown", "")
    both = f"{short(one)} → {short(two)}"
    if tint != "difference":
        value, nats = (one, own.nll_nats) if tint == "a" else (two, own.other_nll_nats)
        return Column(own.text, value, f"{value:.2f}", both, LOSSES.of(nats))
    value, nats = two - one, own.difference_nats
    if math.isnan(value) or not value:
        return Column(own.text, 0.0, "=", both)
    side = "candidate" if value > 0 else "reference"
    text = f"{value:+.2f}".replace("-", "−")
    return Column(own.text, value, text, both, CHANGES.of(abs(nats)), side)
