"""The exercises of the chapters as the browser asks for them, and as a sheet on paper.

What the browser gets before it asks to check a response has no answer in it.
"""

from collections.abc import Mapping
from typing import Any

from fillmask_ui.errors import FillmaskError
from fillmask_ui.lessons import chapters
from fillmask_ui.lessons.exercises import COURSE_SEED, EXERCISES, MOST_SEED, exercises_of
from fillmask_ui.show.render import render
from fillmask_ui.ui.session import Session
from fillmask_ui.ui.widgets import error_html

Json = dict[str, Any]
_MOST_CHARACTERS = 200  # of a response


def block_html(chapter: str) -> str:
    """The last step of a chapter: where its exercises go, and the choice of their numbers."""
    values = {"chapter": chapter, "seed": COURSE_SEED, "most": MOST_SEED}
    return render("page/learn/exercises.html", **values)


def score_html() -> str:
    """What stands beside the chapters: the score, and the sheet."""
    count = sum(len(exercises_of(chapter, COURSE_SEED)) for chapter in EXERCISES)
    return render("page/learn/exercises_score.html", count=count)


def exercises(_session: Session, request: Mapping[str, Any]) -> Json:
    """The forms of a `chapter` for a `seed`, as `html`."""
    chapter = str(request.get("chapter"))
    try:
        found = exercises_of(chapter, _seed(request))
    except FillmaskError as error:
        return {"html": error_html(error)}
    return {"html": render("page/learn/exercises_forms.html", chapter=chapter, exercises=found)}


def check(_session: Session, request: Mapping[str, Any]) -> Json:
    """What is said of a `response` to exercise `number`, from 1, of a `chapter` for a `seed`.

    The answer has `right`, which is null for a response that cannot be read, and `html`.
    """
    try:
        found = exercises_of(str(request.get("chapter")), _seed(request))
    except FillmaskError as error:
        return {"right": None, "html": error_html(error)}
    by_number = {str(number): exercise for number, exercise in enumerate(found, 1)}
    exercise = by_number.get(str(request.get("number")))
    if exercise is None:
        return {"right": None, "html": ""}
    feedback = exercise.check(str(request.get("response") or "")[:_MOST_CHARACTERS])
    html = render("page/learn/exercises_feedback.html", feedback=feedback, exercise=exercise)
    return {"right": feedback.right, "html": html}


def sheet(_session: Session, request: Mapping[str, Any]) -> Json:
    """All exercises for a `seed` as one page to print, `html`, and the `name` of its file.

    With `solutions` each is followed by its answer and how it is found.
    """
    seed, solutions = _seed(request), bool(request.get("solutions"))
    parts = [
        {"chapter": chapter, "exercises": exercises_of(chapter.name, seed)}
        for chapter in chapters()
    ]
    html = render("page/learn/sheet.html", parts=parts, seed=seed, solutions=solutions)
    return {"name": f"exercises-{seed}{'-solutions' if solutions else ''}.html", "html": html}


def _seed(request: Mapping[str, Any]) -> int:
    """The seed asked for; that of the course for anything that is none."""
    try:
        seed = int(str(request.get("seed")))
    except ValueError:
        return COURSE_SEED
    return seed if 1 <= seed <= MOST_SEED else COURSE_SEED
