"""The exercises on the page: what the server sends and checks, without a browser."""

import re
from dataclasses import replace

import pytest

from fillmask_ui.lessons.exercises import EXERCISES, exercises_of
from fillmask_ui.lessons.exercises.exercise import Choice, Numeric, Ordering
from fillmask_ui.show.render import render_part
from fillmask_ui.ui.learn.learn_figures import exercises, sheet
from fillmask_ui.ui.learn.tab import foot_html

ALL = sum(len(exercises_of(chapter, 1)) for chapter in EXERCISES)


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


def test_the_sheet_has_all_exercises_and_solutions_only_if_asked_for(session):
    plain = sheet(session, {"seed": 7})
    solved = sheet(session, {"seed": 7, "solutions": True})
    assert (plain["name"], solved["name"]) == ("exercises-7.html", "exercises-7-solutions.html")
    for made in (plain["html"], solved["html"]):
        assert made.count("<article>") == ALL
        assert "@media print" in made and "@page" in made
        assert not re.search(r"<script|<link|https?:|src=", made)
    for exercise in (own for chapter in EXERCISES for own in exercises_of(chapter, 7)):
        assert exercise.text.replace("'", "&#39;") in plain["html"]
        first_line = exercise.explanation.split("\n")[0].replace("'", "&#39;")
        assert first_line in solved["html"] and first_line not in plain["html"]
        if isinstance(exercise, Ordering):
            item = f"</span> <b>{exercise.items[0].name}</b>"
            first = exercise.order.index(0) + 1
            assert f'<span class="place">{first}{item}' in solved["html"]
            assert f'<span class="place">{item}' in plain["html"]
    assert "☒" in solved["html"] and "☒" not in plain["html"]
    assert "as in the course" in sheet(session, {})["html"]
    assert f'data-count="{ALL}"' in foot_html()
