"""What tints the words of a sentence: surprisal, occlusion.

The tints do not depend on the sentence, so that two sentences can be compared.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fillmask_ui.filling import occlusion_windows
from fillmask_ui.filling.occlusion import Occlusion
from fillmask_ui.filling.prompt import encode_unmasked
from fillmask_ui.filling.word_surprisal import (
    SentenceSurprisal,
    WordSurprisal,
    summarize_surprisal,
    surprisal_windows,
)
from fillmask_ui.filling.words import text_words
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.numbers import in_unit, percent
from fillmask_ui.show.render import render
from fillmask_ui.show.words import candidate_names
from fillmask_ui.ui.explore.charts import Axis, Cell, Column, Columns, Row, short
from fillmask_ui.ui.explore.explore_state import Question
from fillmask_ui.ui.explore.prediction_view import current_draft
from fillmask_ui.ui.explore.sentence_strip import version_of
from fillmask_ui.ui.session import MAX_WORK, Session, check_text

Json = dict[str, Any]


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


@dataclass(frozen=True)
class Asked:
    """A lens's question about the words of a text."""

    question: Question
    model: MaskedLM
    text: str  # with the model's own masks
    hidden: tuple[str | None, ...]  # the word behind each mask, if known
    start: int  # number of the first word wanted, from 0

    @property
    def total(self) -> int:
        """The number of words of the text."""
        return len(text_words(self.model.vocabulary.encode(self.text), self.model.vocabulary))

    def shown(
        self, lens: str, words: Sequence[Any], levels: Callable[[Any], int], **values: Any
    ) -> Json:
        """The words new to the browser, and a summary of all words known.

        `lens` names the templates, which also get `values`; `levels` gives the tint of a word.
        """
        new = words[min(self.start, len(words)) :]
        shared: Json = {"unit": self.question.unit, "vocabulary": self.model.vocabulary}
        shared |= {"names": candidate_names, **values}
        entries = [
            {
                "token": own.word.tokens[0],
                "level": levels(own),
                "html": render(f"page/explore/{lens}_word.html", own=own, **shared),
            }
            for own in new
        ]
        return grown(self.text, lens, entries, words, new, self.total, **shared)


def grown(
    text: str,
    lens: str,
    entries: Sequence[Json],
    words: Sequence[Any],
    new: Sequence[Any],
    total: int,
    **values: Any,
) -> Json:
    """The answer for `words`, of which `new` and their `entries` are new to the browser."""
    known = len(words)
    values |= {"known": known, "total": total}
    return {
        "version": version_of(text),
        "words": entries,
        "known": known,
        "total": total,
        "next": known if known < total else None,
        "html": {
            "story": render(f"page/explore/{lens}.html", **values),
            "table": render(f"page/explore/{lens}_table.html", words=new, **values),
        },
    }


def read_asked(session: Session, values: Mapping[str, Any]) -> Asked:
    """The browser's question to a lens; a `FillmaskError` if it is invalid."""
    question = Question.read(values)
    check_text(question.text)
    model = session.model(question.model)
    draft = current_draft(question, model)
    return Asked(question, model, draft.text, draft.hidden, question.start)


# Of a KL divergence, and of a difference of losses.
CHANGES = Levels((0.05, 0.2, 0.5, 1.0))
# A uniform guess among 22,000 words costs 10 nats.
LOSSES = Levels((2.0, 4.0, 6.0, 8.0))


def occlusion(session: Session, values: Mapping[str, Any]) -> Json:
    """Some of the other words of a text with masks, in the form of `surprisal`."""
    asked = read_asked(session, values)
    mask = asked.question.selected if asked.question.selected < len(asked.hidden) else 0
    word = (asked.hidden[mask] if asked.hidden else None) or ""
    found = session.further(
        asked.model,
        (occlusion_windows, asked.text, mask, word),
        asked.start,
        lambda model, known: _longer_occlusion(model, asked.text, mask, word, known),
    )
    unit = asked.question.unit
    most = sorted(found.words, key=lambda own: -own.kl_nats)[:MAX_ROWS]
    axis = Axis.fitted([in_unit(own.kl_nats, unit) for own in most], unit)
    rows = [
        Row(
            own.word.text,
            (
                axis.mark(
                    in_unit(own.kl_nats, unit), "reference", f"{in_unit(own.kl_nats, unit):.3f}"
                ),
            ),
            (Cell(percent(own.probability)),),
        )
        for own in most
    ]
    return asked.shown(
        "mattered",
        found.words,
        lambda own: CHANGES.of(own.kl_nats),
        found=found,
        most=most[0] if most else None,
        labels=CHANGES.labels(unit),
        rows=rows,
        axis=axis,
    )


def _longer_occlusion(
    model: MaskedLM, text: str, mask: int, word: str, known: Occlusion | None
) -> Occlusion:
    words = known.words if known else ()
    window = next(occlusion_windows(model, text, mask, word=word, start=len(words)))
    return replace(window, words=(*words, *window.words))


def surprisal(session: Session, values: Mapping[str, Any]) -> Json:
    """Some words of a sentence from number `from` on, and a summary of those known.

    `words` have the index of their first token, their tint and their details; `next` is the `from`
    of the next call, None at the end. Failures are in `error`.
    """
    asked = read_asked(session, values)
    found, unit = measured(session, asked.model, asked.text, asked.start), asked.question.unit
    columns = [
        Column(
            own.word.text,
            in_unit(own.nll_nats, unit),
            short(in_unit(own.nll_nats, unit)),
            candidate_names(own.wanted, asked.model.vocabulary)[0],
            level=loss_level(own),
        )
        for own in found.words[:MAX_COLUMNS]
        if not own.unknown
    ]
    return asked.shown(
        "surprise",
        found.words,
        loss_level,
        summary=summarize_surprisal(found.words),
        unknown=[own.word.text for own in found.words if own.unknown],
        labels=LOSSES.labels(unit),
        chart=Columns.of(columns, unit),
    )


def measured(session: Session, model: MaskedLM, text: str, start: int) -> SentenceSurprisal:
    """The known words of a text, with more measured if word `start` is not among them."""
    return session.further(
        model,
        (surprisal_windows, text),
        start,
        lambda own, known: _longer_surprisal(own, text, known),
    )


def _longer_surprisal(
    model: MaskedLM, text: str, known: SentenceSurprisal | None
) -> SentenceSurprisal:
    words = known.words if known else ()
    windows = surprisal_windows(model, text, start=len(words), most_work=MAX_WORK)
    encoding = known.encoding if known else encode_unmasked(model, text)
    return SentenceSurprisal(encoding, model.signature, (*words, *next(windows, ())))


def loss_level(own: WordSurprisal) -> int:
    """The tint of a word by its loss."""
    return 0 if own.unknown else LOSSES.of(own.nll_nats)
