"""Lenses over the strip: each tints the words of a sentence by a number, on a shared scale.

The scale does not depend on the sentence, so that two sentences can be compared.
"""

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
from fillmask_ui.show.numbers import in_unit
from fillmask_ui.show.render import render
from fillmask_ui.show.words import candidate_names
from fillmask_ui.ui.explore.explore_state import Question
from fillmask_ui.ui.explore.prediction_view import current_draft
from fillmask_ui.ui.explore.sentence_strip import version_of
from fillmask_ui.ui.session import MAX_WORK, Session, check_text

Json = dict[str, Any]


@dataclass(frozen=True)
class Tick:
    """A number on a scale."""

    label: str
    place: float  # in [0, 1]


@dataclass(frozen=True)
class Scale:
    """A scale from 0 to the full tint."""

    end_nats: float
    steps: Mapping[str, float]  # unit -> distance of the ticks

    def tint(self, nats: float) -> float:
        """The share of the full tint, in [0, 1]."""
        return max(0.0, min(1.0, nats / self.end_nats))

    def ticks(self, unit: str) -> tuple[Tick, ...]:
        """Tick labels; the last stands for everything beyond.

        >>> [tick.label for tick in Scale(1.0, {"bits": 0.5}).ticks("bits")]
        ['0', '0.5', '1', '1.44+']
        """
        end, step = in_unit(self.end_nats, unit), self.steps[unit]
        values = [step * number for number in range(int(end / step) + 1) if step * number < end]
        ticks = [Tick(f"{value:g}", value / end) for value in values]
        return (*ticks, Tick(f"{end:.3g}+", 1.0))


@dataclass(frozen=True)
class Asked:
    """A lens's question about the words of a text."""

    question: Question
    model: MaskedLM
    text: str  # with the model's own masks
    hidden: tuple[str | None, ...]  # the word behind each mask, if known
    start: int  # number of the first word wanted, from 0

    def shown(
        self,
        lens: str,
        words: Sequence[Any],
        tint: Callable[[Any], float],
        scale: Scale,
        **values: Any,
    ) -> Json:
        """The words new to the browser, and a summary of all words known.

        `lens` names the templates, which also get `values`.
        """
        total = len(text_words(self.model.vocabulary.encode(self.text), self.model.vocabulary))
        known, unit = len(words), self.question.unit
        new = words[min(self.start, known) :]
        shared: Json = {"unit": unit, "vocabulary": self.model.vocabulary, "names": candidate_names}
        shared |= {"total": total, "known": known, "ticks": scale.ticks(unit), **values}
        return {
            "version": version_of(self.text),
            "words": [
                {
                    "token": own.word.tokens[0],
                    "tint": tint(own),
                    "html": render(f"page/explore/{lens}_word.html", own=own, **shared),
                }
                for own in new
            ],
            "known": known,
            "total": total,
            "next": known if known < total else None,
            "html": {
                "story": render(f"page/explore/{lens}.html", **shared),
                "table": render(f"page/explore/{lens}_table.html", words=new, **shared),
            },
        }


def read_asked(session: Session, values: Mapping[str, Any]) -> Asked:
    """The browser's question to a lens; a `FillmaskError` if it is invalid."""
    question = Question.read(values)
    check_text(question.text)
    model = session.model(question.model)
    draft = current_draft(question, model)
    return Asked(question, model, draft.text, draft.hidden, question.start)


OCCLUSION_SCALE = Scale(1.0, {"nats": 0.25, "bits": 0.5})


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
    return asked.shown(
        "mattered",
        found.words,
        lambda own: OCCLUSION_SCALE.tint(own.kl_nats),
        OCCLUSION_SCALE,
        found=found,
        most=max(found.words, key=lambda own: own.kl_nats, default=None),
    )


def _longer_occlusion(
    model: MaskedLM, text: str, mask: int, word: str, known: Occlusion | None
) -> Occlusion:
    words = known.words if known else ()
    window = next(occlusion_windows(model, text, mask, word=word, start=len(words)))
    return replace(window, words=(*words, *window.words))


# A uniform guess among 22,000 words costs 10 nats.
SURPRISAL_SCALE = Scale(10.0, {"nats": 2.0, "bits": 3.0})


def surprisal(session: Session, values: Mapping[str, Any]) -> Json:
    """Some words of a sentence from number `from` on, and a summary of those known.

    `words` have the index of their first token, their tint and their details; `next` is the `from`
    of the next call, None at the end. Failures are in `error`.
    """
    asked = read_asked(session, values)
    found = measured(session, asked.model, asked.text, asked.start)
    return asked.shown(
        "surprise",
        found.words,
        _tint,
        SURPRISAL_SCALE,
        summary=summarize_surprisal(found.words),
        unknown=[own.word.text for own in found.words if own.unknown],
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


def _tint(own: WordSurprisal) -> float:
    return 0.0 if own.unknown else SURPRISAL_SCALE.tint(own.nll_nats)
