"""The sentences of some texts on which two models differ most, as they are found.

The browser requests one window after another and keeps the list, so no state is kept here.
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

# Sentences: of the embedded texts, and of a visitor in one call.
MAX_SENTENCES = 200
MAX_SENT = 8
# One call takes about so long; a sentence takes some tenths of a second.
WINDOW_SECONDS = 0.8
# Larger than any divergence that float32 logits can express.
MOST_CHANGE = 1e9

Json = dict[str, Any]


def divergent(session: Session, values: Mapping[str, Any]) -> Json:
    """Two models on some sentences, from number `from` on.

    `values` are those of a question, whose `sentences` are the visitor's next ones; without them
    the embedded texts are searched. `done` counts the sentences searched, `found` lists those on
    which the models differ. Failures are in `error`; `busy` has the progress of loading a model.
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
    """The visitor's sentences, one line each; None if none were sent."""
    if question.sentences is None:
        return None
    lines = enumerate(question.sentences[:MAX_SENT], question.start)
    return [Sentence(number, 0, line) for number, line in lines]


def _shown(found: Divergence, models: tuple[MaskedLM, MaskedLM], unit: str) -> Json:
    firsts = zip(models, (found.first, found.other_first), strict=True)
    names = [candidate_names([first], model.vocabulary)[0] for model, first in firsts]
    html = render("page/explore/parting_row.html", own=found, names=names, unit=unit)
    # The state after a click: this sentence, and the word behind its mask.
    hidden = [found.word] if found.word else []
    state = {"text": found.masked, "base": found.masked, "hidden": hidden, "selected": found.mask}
    change = min(found.order[1], MOST_CHANGE)  # JSON has no infinity
    return {"flipped": found.flipped, "change": change, "html": html, "state": state}
