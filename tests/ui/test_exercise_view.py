"""The exercises on the page: what the server sends and checks, without a browser."""

from dataclasses import replace

import pytest

from fillmask_ui.lessons.exercises import EXERCISES, exercises_of
from fillmask_ui.lessons.exercises.exercise import Choice, Numeric
from fillmask_ui.show.render import render_part
from fillmask_ui.ui.learn.learn_figures import exercises


def with_another_answer(exercise):
    if isinstance(exercise, Choice):
        return replace(exercise, right=(exercise.right + 1) % len(exercise.options))
    if isinstance(exercise, Numeric):
        return replace(exercise, answer=0.0, slips=())
    items = tuple(replace(item, value=-item.value) for item in exercise.items)
    return replace(exercise, items=items)


@pytest.mark.parametrize("chapter", EXERCISES)
def test_forms_hold_no_answer(session, chapter):
    for seed in (1, 7):
        html = exercises(session, {"chapter": chapter, "seed": seed})["html"]
        found = exercises_of(chapter, seed)
        assert html.count("<form") == len(found)
        for exercise in found:
            assert not [line for line in exercise.explanation.split("\n") if line in html]
        other = [with_another_answer(one) for one in found]
        forms = render_part("page/learn/exercises.html", "forms", chapter=chapter, exercises=other)
        assert forms == html, "another answer, the same forms"
