"""What the lenses over the strip share: the scale of their tints, and where they stand.

A lens tints each word of the strip by a number. Its scale does not depend on the sentence, so that
two sentences can be compared; beyond its end all words look alike.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fillmask_ui.filling.words import text_words
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.numbers import in_unit
from fillmask_ui.show.render import render
from fillmask_ui.show.words import candidate_names
from fillmask_ui.ui.explore.question import Question
from fillmask_ui.ui.explore.strip import version_of
from fillmask_ui.ui.explore.view import current_draft
from fillmask_ui.ui.session import Session, check_text

Json = dict[str, Any]


@dataclass(frozen=True)
class Tick:
    """A number on a scale."""

    label: str
    place: float  # in [0, 1]


@dataclass(frozen=True)
class Scale:
    """From 0 to where the tint is full."""

    end_nats: float
    steps: Mapping[str, float]  # unit -> distance of the ticks

    def tint(self, nats: float) -> float:
        """How much of the full tint, in [0, 1]."""
        return max(0.0, min(1.0, nats / self.end_nats))

    def ticks(self, unit: str) -> tuple[Tick, ...]:
        """Numbers to write beside it; the last one stands for all beyond.

        >>> [tick.label for tick in Scale(1.0, {"bits": 0.5}).ticks("bits")]
        ['0', '0.5', '1', '1.44+']
        """
        end, step = in_unit(self.end_nats, unit), self.steps[unit]
        values = [step * number for number in range(int(end / step) + 1) if step * number < end]
        ticks = [Tick(f"{value:g}", value / end) for value in values]
        return (*ticks, Tick(f"{end:.3g}+", 1.0))


@dataclass(frozen=True)
class Asked:
    """A question about the words of a text, ready to be answered."""

    question: Question
    model: MaskedLM
    text: str  # with the model's own masks
    hidden: tuple[str | None, ...]  # the word behind each mask, where it is known
    start: int  # number of the first word wanted, from 0

    def shown(
        self,
        lens: str,
        words: Sequence[Any],
        tint: Callable[[Any], float],
        scale: Scale,
        **values: Any,
    ) -> Json:
        """Those of the words that are new to the browser, and what is known of all together.

        `lens` names its templates; `values` are for these.
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


def read(session: Session, values: Mapping[str, Any]) -> Asked:
    """What the browser asks a lens; a `FillmaskError` where it cannot be answered."""
    question = Question.read(values)
    check_text(question.text)
    model = session.model(question.model)
    draft = current_draft(question, model)
    return Asked(question, model, draft.text, draft.hidden, question.start)
