"""What the browser calls: figures of all chapters, and exercises, which also go on paper."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fillmask_ui.errors import OptionError, unknown
from fillmask_ui.features.course import (
    context_figures,
    guess_figures,
    loss_figures,
    masking_figures,
    sense_figures,
    uncertainty_figures,
)
from fillmask_ui.features.course.chapter import chapters
from fillmask_ui.features.course.exercises import COURSE_SEED, MOST_SEED, exercises_of
from fillmask_ui.features.course.heads import head_figures
from fillmask_ui.features.course.lesson_html import to_html
from fillmask_ui.schema import from_values
from fillmask_ui.show.render import render, render_part
from fillmask_ui.ui.figure import InteractiveFigure, Request, answer
from fillmask_ui.ui.session import Session

_MODULES = (
    guess_figures,
    loss_figures,
    context_figures,
    masking_figures,
    uncertainty_figures,
    sense_figures,
    head_figures,
)
FIGURES = {
    member.name: member
    for module in _MODULES
    for member in vars(module).values()
    if isinstance(member, InteractiveFigure)
}


@dataclass(frozen=True)
class _Request:
    """What the browser asks about a chapter, or about the exercises of one or of all."""

    chapter: str = ""
    seed: int = COURSE_SEED
    number: int = 0  # of the exercise that is answered, from 1
    response: str = ""
    solutions: bool = False  # whether the sheet has them


def figure(session: Session, values: Mapping[str, Any]) -> dict[str, Any]:
    """The HTML of the figure called `name`, as `ui/figure.py: answer` gives it."""
    request = from_values(Request, values)
    if request.name not in FIGURES:
        raise OptionError(unknown("figure", request.name, FIGURES))
    chosen = FIGURES[request.name]
    return answer(session, chosen.show, request, chosen.needs_model)


def chapter(_session: Session, values: Mapping[str, Any]) -> dict[str, Any]:
    """A `chapter` as `html`: its text, the forms of its figures, and a place for its exercises."""
    name = from_values(_Request, values).chapter
    by_name = {chapter.name: chapter for chapter in chapters()}
    if name not in by_name:
        raise OptionError(unknown("chapter", name, by_name))
    html = render(
        "course/chapter.html",
        chapter=by_name[name],
        figures=FIGURES,
        to_html=to_html,
        seed=COURSE_SEED,
        most_seed=MOST_SEED,
    )
    return {"html": html}


# ---- Exercises: what the browser gets before it asks to check a response has no answer in it.

_MOST_CHARACTERS = 200  # of a response


def exercises(_session: Session, values: Mapping[str, Any]) -> dict[str, Any]:
    """The forms of a `chapter` for a `seed`, as `html`."""
    request = from_values(_Request, values)
    questions = exercises_of(request.chapter, request.seed)
    html = render_part(
        "course/exercises.html", "forms", chapter=request.chapter, exercises=questions
    )
    return {"html": html}


def check(_session: Session, values: Mapping[str, Any]) -> dict[str, Any]:
    """Feedback on a `response` to exercise `number`, from 1, of a `chapter` for a `seed`.

    The answer has `right`, which is null for a response that cannot be read, and `html`.
    """
    request = from_values(_Request, values)
    questions = exercises_of(request.chapter, request.seed)
    if not 1 <= request.number <= len(questions):
        raise OptionError(f"there is no exercise {request.number}: there are {len(questions)}")
    exercise = questions[request.number - 1]
    feedback = exercise.check(request.response[:_MOST_CHARACTERS])
    html = render_part("course/exercises.html", "feedback", reply=feedback, exercise=exercise)
    return {"right": feedback.right, "html": html}


def sheet(_session: Session, values: Mapping[str, Any]) -> dict[str, Any]:
    """All exercises for a `seed` as one page to print, `html`, and the `name` of its file.

    With `solutions` each is followed by its answer and how it is found.
    """
    request = from_values(_Request, values)
    parts = [(chapter, exercises_of(chapter.name, request.seed)) for chapter in chapters()]
    name = f"exercises-{request.seed}{'-solutions' if request.solutions else ''}.html"
    html = render(
        "course/sheet.html", chapters=parts, seed=request.seed, solutions=request.solutions
    )
    return {"name": name, "html": html}


# By the name under which the browser calls them; each takes the session and JSON values.
SERVED = {
    "chapter": chapter,
    "figure": figure,
    "exercises": exercises,
    "check": check,
    "sheet": sheet,
}
