"""Where do two models part? The sentences of some texts on which they differ most, as they come.

The browser asks for one window after another and keeps the list, so that nothing is kept here for
a visitor, and to stop is not to ask on.
"""

import time
from collections.abc import Mapping
from functools import cache
from itertools import islice
from typing import Any

from fillmask_ui.comparing.divergence_search import Divergence, Looked, Sentence, look, sentences
from fillmask_ui.errors import OptionError
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.render import render
from fillmask_ui.show.words import candidate_names
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.ui.background import Done, Waiting
from fillmask_ui.ui.explore.explore_state import Question
from fillmask_ui.ui.session import Session, check_text

# Of the embedded texts, and of those that a visitor sends in one call.
MAX_SENTENCES = 200
MAX_SENT = 8
# After so long the answer goes back with what was found; a sentence takes some tenths of a second.
WINDOW_SECONDS = 0.8
# Beyond any divergence of logits that float32 holds apart.
MOST_CHANGE = 1e9

Json = dict[str, Any]


def divergent(session: Session, values: Mapping[str, Any]) -> Json:
    """What two models say of some sentences, from number `from` on.

    `values` are those of a question and, for sentences of the visitor's own, the next of them in
    `sentences`; else the embedded texts are searched. `done` sentences were looked at, `found` are
    those on which the models differ. Where it cannot be had, an `error` says why; while a model
    is being loaded `busy` says how far that is.
    """
    question = Question.read(values)
    start = question.start
    if not question.compare:
        raise OptionError("there is one model: pick a second one to compare it with")
    states = [session.model_soon(name) for name in (question.model, question.compare)]
    for state in states:
        if isinstance(state, Waiting):
            return {"busy": state.message or "Loading the model…"}
    first, second = (state.result for state in states if isinstance(state, Done))
    own = _own(question)
    asked = embedded_sentences()[start:] if own is None else own
    looked, until = list[Looked](), time.monotonic() + WINDOW_SECONDS
    for sentence in asked:
        check_text(sentence.text)
        looked.append(look(first, second, sentence))
        if time.monotonic() > until:
            break
    found = [each.found for each in looked if each.found is not None]
    return {
        "done": len(looked),
        "total": len(embedded_sentences()) if own is None else None,
        "words": sum(each.words for each in looked),
        "left_out": sum(bool(each.left_out) for each in looked),
        "found": [_shown(each, (first, second), question.unit) for each in found],
    }


@cache
def embedded_sentences() -> tuple[Sentence, ...]:
    """The first sentences of the embedded texts, in the order of their evaluation."""
    with open_texts(TextSource()) as texts:
        found = (sentence for text in texts for sentence in sentences(text))
        return tuple(islice(found, MAX_SENTENCES))


def _own(question: Question) -> list[Sentence] | None:
    """The visitor's sentences, one line each; None where none were sent."""
    if question.sentences is None:
        return None
    lines = enumerate(question.sentences[:MAX_SENT], question.start)
    return [Sentence(number, 0, line) for number, line in lines]


def _shown(found: Divergence, models: tuple[MaskedLM, MaskedLM], unit: str) -> Json:
    firsts = zip(models, (found.first, found.other_first), strict=True)
    names = [candidate_names([first], model.vocabulary)[0] for model, first in firsts]
    html = render("page/explore/parting_row.html", own=found, names=names, unit=unit)
    # What a click asks: this sentence, with the word behind its mask.
    hidden = [found.word] if found.word else []
    state = {"text": found.masked, "base": found.masked, "hidden": hidden, "selected": found.mask}
    change = min(found.order[1], MOST_CHANGE)  # JSON has no infinity
    return {"flipped": found.flipped, "change": change, "html": html, "state": state}
