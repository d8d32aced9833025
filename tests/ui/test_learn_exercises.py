"""The exercises on the page: what the server sends and checks, and the same in a browser."""

import re
from dataclasses import replace

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from fillmask_ui.lessons.exercises import EXERCISES, exercises_of
from fillmask_ui.lessons.exercises.exercise import Choice, Numeric, Ordering
from fillmask_ui.show.render import render
from fillmask_ui.ui.components import answered
from fillmask_ui.ui.learn.exercise_view import check, exercises, score_html, sheet
from fillmask_ui.ui.learn.learn_figures import SERVED

ALL = sum(len(exercises_of(chapter, 1)) for chapter in EXERCISES)


# ---- The server


@pytest.mark.parametrize("chapter", EXERCISES)
def test_forms_hold_no_answer(session, chapter):
    for seed in (1, 7, 8):
        html = exercises(session, {"chapter": chapter, "seed": seed})["html"]
        found = exercises_of(chapter, seed)
        assert html.count("<form") == len(found)
        for exercise in found:
            for line in exercise.explanation.split("\n"):
                assert line not in html
        other = [
            replace(one, right=(one.right + 1) % len(one.options))
            if isinstance(one, Choice)
            else replace(one, answer=0.0, slips=())
            if isinstance(one, Numeric)
            else replace(one, items=tuple(replace(item, value=-item.value) for item in one.items))
            for one in found
        ]
        forms = render("page/learn/exercises_forms.html", chapter=chapter, exercises=other)
        assert forms == html, "another answer, the same forms"


@pytest.mark.parametrize("chapter", EXERCISES)
def test_a_response_is_checked_and_explained(session, chapter):
    for number, exercise in enumerate(exercises_of(chapter, 7), 1):
        asked = {"chapter": chapter, "seed": 7, "number": number}
        right = check(session, {**asked, "response": exercise.right_response})
        assert right["right"] is True and "<details" not in right["html"]
        wrong_response = {
            "numeric": "999",
            "choice": "0" if exercise.right_response != "0" else "1",
            "ordering": "0,1,2,3",
        }[exercise.kind]
        wrong = check(session, {**asked, "response": wrong_response})
        assert wrong["right"] is False and "Show the solution" in wrong["html"]
        unread = check(session, {**asked, "response": "<b>?"})
        assert unread["right"] is None and "<b>?" not in unread["html"]
        for line in exercise.explanation.split("\n"):
            shown = str(line).replace("'", "&#39;")
            assert shown in right["html"] and shown in wrong["html"]
            assert shown not in unread["html"]


def test_what_no_page_sends_is_answered_in_words(session):
    assert {"exercises", "check", "sheet"} <= set(SERVED)
    for function, asked, said in (
        (exercises, {"chapter": "<b>"}, "unknown chapter"),
        (exercises, {"chapter": "loss", "seed": -3}, "it was -3"),
        (exercises, {"chapter": "loss", "seed": "x"}, "Seed: input should be a valid integer"),
        (sheet, {"seed": 10**9}, "between 1 and"),
        (check, {}, "unknown chapter"),
        (check, {"chapter": "loss", "number": 0}, "There is no exercise 0"),
    ):
        assert said.lower() in answered(function, session, asked)["error"].lower()
    long = check(session, {"chapter": "loss", "number": 1, "response": "9x" * 10_000})
    assert long["right"] is None and len(long["html"]) < 500


def test_the_sheet_has_all_exercises_and_solutions_only_if_asked_for(session):
    plain = sheet(session, {"seed": 7})
    solved = sheet(session, {"seed": 7, "solutions": True})
    assert (plain["name"], solved["name"]) == ("exercises-7.html", "exercises-7-solutions.html")
    for made in (plain["html"], solved["html"]):
        assert made.count("<article>") == ALL
        assert "@media print" in made and "@page" in made
        assert not re.search(r"<script|<link|https?:|src=", made)
    for chapter in EXERCISES:
        for exercise in exercises_of(chapter, 7):
            assert exercise.text.replace("'", "&#39;") in plain["html"]
            first_line = exercise.explanation.split("\n")[0].replace("'", "&#39;")
            assert first_line in solved["html"] and first_line not in plain["html"]
            if isinstance(exercise, Ordering):
                first = exercise.order.index(0) + 1
                item = f"</span> <b>{exercise.items[0].name}</b>"
                assert f'<span class="place">{first}{item}' in solved["html"]
                assert f'<span class="place">{item}' in plain["html"]
    assert "☒" in solved["html"] and "☒" not in plain["html"]
    assert "as in the course" in sheet(session, {})["html"]
    assert f'data-count="{ALL}"' in score_html()


# ---- The browser


class Exercises:
    """The exercises of one chapter through the eyes of a student."""

    def __init__(self, page, served, chapter, seed=None):
        self.page, self.chapter = page, chapter
        self.url = f"{served.url}?tab=learn&chapter={chapter}"
        page.goto(self.url + (f"&exercise={seed}" if seed else ""))
        self.section = page.locator(f"section.fm-exercises[data-chapter={chapter}]")
        self.forms = self.section.locator("form[data-exercise]")
        self.score = page.locator(".fm-score")
        expect(self.forms.first).to_be_visible()

    def form(self, number):
        return self.forms.nth(number - 1)

    def answer(self, number, response):
        field = self.form(number).locator("input[name=response]")
        field.fill(response)
        field.press("Enter")
        return self

    def see(self, number, right, text):
        feedback = self.form(number).get_by_role("status").last
        expect(feedback).to_have_attribute("data-right", right)
        expect(feedback).to_contain_text(text)
        return self


def test_right_and_wrong_and_a_score_that_stays(page, served):
    student = Exercises(page, served, "loss")
    expect(student.form(1)).to_contain_text("fox")
    student.answer(1, "fox").see(1, "unread", "is no number that can be read")
    expect(student.score).to_contain_text(f"{ALL} exercises")
    student.answer(1, "0,515").see(1, "false", "That is in bits")
    expect(student.score).to_contain_text("0 of 1 right")
    student.form(1).get_by_text("Show the solution").click()
    expect(student.form(1)).to_contain_text("−ln 0.7 = 0.357")
    student.answer(1, "0,357").see(1, "true", "−ln 0.7 = 0.357 nats")
    right = exercises_of("loss", 1)[2].right_response
    student.form(3).get_by_role("radio").nth(0 if right != "0" else 1).check()
    student.form(3).get_by_role("button", name="Check").click()
    student.see(3, "false", "Not yet.")
    expect(student.score).to_contain_text("1 of 2 right")
    page.reload()
    expect(student.score).to_contain_text("1 of 2 right")
    expect(student.form(1)).to_contain_text("✓ right")
    expect(student.form(3)).to_contain_text("✗ not yet right")
    student.score.get_by_role("button", name="Reset").click()
    expect(student.score).to_contain_text(f"{ALL} exercises")
    expect(student.form(1)).not_to_contain_text("✓ right")


def test_a_link_shares_the_numbers(page, served):
    student = Exercises(page, served, "guess", seed=7)
    wanted = [exercise.text for exercise in exercises_of("guess", 7)]
    assert wanted != [exercise.text for exercise in exercises_of("guess", 1)]
    questions = student.section.locator("form p:has(b)")
    expect(questions).to_have_text([f"{n}. {text}" for n, text in enumerate(wanted, 1)])
    dial = student.section.get_by_role("spinbutton", name="Numbers")
    expect(dial).to_have_value("7")
    student.section.get_by_role("button", name="Numbers: one more").click()
    expect(questions.first).to_contain_text(exercises_of("guess", 8)[0].text)
    expect(page).to_have_url(re.compile(r"[?&]exercise=8(&|$)"))
    student.section.get_by_role("button", name="New numbers").click()
    expect(dial).not_to_have_value("8")
    dial.fill("1")
    dial.press("Enter")
    expect(student.section).to_contain_text("as in the course")
    expect(page).not_to_have_url(re.compile("exercise="))
    dial.fill("7")
    dial.press("Enter")
    # The numbers go along to the next chapter.
    page.get_by_role("button", name="Next →").click()
    below = page.locator("section.fm-exercises[data-chapter=loss] form")
    wanted = exercises_of("loss", 7)[0]
    expect(below.first).to_contain_text(wanted.text)
    page.locator("section.fm-exercises[data-chapter=loss]").get_by_label("one more").click()
    expect(below.first).not_to_contain_text(wanted.text)
    page.go_back()
    expect(dial).to_have_value("7")
    expect(questions.first).to_contain_text(exercises_of("guess", 7)[0].text)


def test_models_are_ordered_without_a_mouse(page, served):
    student = Exercises(page, served, "accuracy")
    exercise = exercises_of("accuracy", 1)[2]
    form = student.form(3)
    names = [item.name for item in exercise.items]
    wanted = [exercise.items[index].name for index in exercise.order]
    shown = form.locator("li b")
    expect(shown).to_have_text(names)
    form.get_by_role("button", name="Check").press("Enter")
    student.see(3, "false", "stands before")
    for place, name in enumerate(wanted):
        up = form.get_by_role("button", name=f"{name}: one up")
        for now in range(names.index(name), place, -1):
            up.press("Enter")
            expect(up).to_be_focused()
            names.insert(now - 1, names.pop(now))
            expect(shown).to_have_text(names)
    assert names == wanted
    form.get_by_role("button", name="Check").press("Enter")
    student.see(3, "true", exercise.solution)


def test_the_sheet_is_a_file(page, served):
    student = Exercises(page, served, "masking", seed=7)
    for button, name in (("Sheet", "exercises-7"), ("With solutions", "exercises-7-solutions")):
        with page.expect_download() as download:
            student.score.get_by_role("button", name=button).click()
        assert download.value.suggested_filename == f"{name}.html"
        text = download.value.path().read_text()
        assert text.count("<article>") == ALL
        assert ('class="solution"' in text) == name.endswith("solutions")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_of_ours(page, served, theme):
    student = Exercises(page, served, "accuracy", seed=f"7&__theme={theme}")
    student.form(1).get_by_role("radio").first.check()
    student.form(1).get_by_role("button", name="Check").click()
    student.answer(2, "999").see(2, "false", "too large")
    student.form(2).get_by_text("Show the solution").click()
    report = Axe().run(page, context="#learn").response
    found = [(v["id"], [n["html"][:90] for n in v["nodes"]]) for v in report["violations"]]
    assert found == []
