"""Guess first: the guesses of a class for a hidden word beside those of the model.

The page asks twice: `guesses` reads what was typed, `guess` compares it with the model.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fillmask_ui.filling.guesses import Guesses, parse_guesses
from fillmask_ui.ui.explore.question import Question
from fillmask_ui.ui.explore.view import current_draft
from fillmask_ui.ui.guess_comparison import compare, comparison_html
from fillmask_ui.ui.session import Session, check_text

MAX_CHARACTERS = 100  # of the true word


def guesses(_: Session, values: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed in `guesses` as a list of words with amounts, or what is wrong with it."""
    found = _typed(Question.read(values))
    return {"error": "", **asdict(found), "people": found.people, "no_guess": found.no_guess}


def guess(session: Session, values: Mapping[str, Any]) -> dict[str, Any]:
    """The comparison as HTML, or what is wrong.

    `values` are those of a question, `guesses` as typed and, where the hidden word is not known,
    `truth`, which may be blank.
    """
    question = Question.read(values)
    check_text(question.text)
    model, mask = session.model(question.model), question.selected
    draft = current_draft(question, model)
    truth = (draft.word(mask) or question.truth.strip())[:MAX_CHARACTERS]
    found = compare(session, model, draft.text, _typed(question), truth, mask=mask)
    return {"error": "", "html": comparison_html(found, question.unit)}


def _typed(question: Question) -> Guesses:
    check_text(question.guesses)
    return parse_guesses(question.guesses)
