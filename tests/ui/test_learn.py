"""The Learn tab: chapters, links, the projector, and a chapter saved as one page."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from fillmask_ui.lessons import chapters
from fillmask_ui.lessons.exercises import exercises_of
from fillmask_ui.ui.learn.learn_figures import FIGURES

COURSE = chapters()


def parameters(page):
    return {name: value[0] for name, value in parse_qs(urlsplit(page.url).query).items()}


@pytest.fixture
def learn(page, served):
    """Opens the tab at a chapter, with further parameters of the address."""

    def opened(chapter="", **more):
        query = "&".join(f"{name}={value}" for name, value in more.items())
        page.goto(f"{served.url}?tab=learn&chapter={chapter}&{query}")
        expect(page.locator("#learn .fm-chapter:visible")).to_have_count(1)
        return page

    return opened


def quiet(page):
    """All figures of the open chapter are there and have their answers."""
    for figure in page.locator(".fm-chapter:visible .fm-figure").all():
        expect(figure).to_have_attribute("aria-busy", "false", timeout=60_000)


def test_every_figure_of_a_text_exists_and_is_used_once():
    used = [step.figure for chapter in COURSE for step in chapter.steps if step.figure]
    assert sorted(used) == sorted(FIGURES)


@pytest.mark.parametrize("chapter", COURSE, ids=lambda chapter: chapter.name)
def test_each_chapter_opens_by_its_link_and_its_figures_answer(learn, chapter):
    page = learn(chapter.name)
    expect(page.get_by_role("heading", name=chapter.title, exact=True, level=2)).to_be_visible()
    for step in chapter.steps:
        expect(page.get_by_role("heading", name=step.title)).to_be_visible()
    quiet(page)
    expect(page.locator(".fm-chapter:visible .fm-notice.fm-error")).to_have_count(0)
    assert page.locator(".fm-chapter:visible .katex-error").count() == 0


def test_back_and_next_walk_the_chapters_and_the_browser_goes_back(learn):
    page = learn()
    back, onward = (page.get_by_role("button", name=name) for name in ("← Back", "Next →"))
    expect(back).to_be_disabled()
    for chapter in COURSE[1:]:
        onward.click()
        expect(page.get_by_role("heading", name=chapter.title, exact=True, level=2)).to_be_visible()
        assert parameters(page)["chapter"] == chapter.name
    expect(onward).to_be_disabled()
    back.click()
    expect(page.get_by_role("heading", name=COURSE[-2].title, exact=True, level=2)).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name=COURSE[-1].title, exact=True, level=2)).to_be_visible()


def test_an_unknown_chapter_is_the_first(learn):
    page = learn("<script>")
    expect(page.get_by_role("heading", name=COURSE[0].title, exact=True, level=2)).to_be_visible()


def test_the_projector_shows_one_step_and_the_arrows_go_on(learn):
    chapter, following = COURSE[3:5]
    page = learn(chapter.name)
    page.locator("body").press("p")
    shown = page.locator(".fm-step:visible")
    expect(shown).to_have_count(1)
    for step in chapter.steps:
        expect(shown.get_by_role("heading", name=step.title)).to_be_visible()
        page.keyboard.press("ArrowRight")
    expect(shown.locator(".fm-exercises")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(shown.get_by_role("heading", name=following.steps[0].title)).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(shown.locator(".fm-exercises")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name=chapter.title, exact=True, level=2)).to_be_visible()
    assert "project" not in parameters(page)


def test_the_letters_of_the_projector_are_for_the_back_row(learn):
    page = learn("masking", project=1, step=1)
    page.set_viewport_size({"width": 1920, "height": 1080})
    text = page.locator(".fm-step:visible .fm-lesson-text p").first
    size = text.evaluate("(p) => parseFloat(getComputedStyle(p).fontSize)")
    assert size >= 24  # of 1,080 rows: at least 1/45 of the height of the screen


def test_a_link_keeps_what_the_controls_hold(learn, page):
    learn("masking")
    quiet(page)
    seed = page.locator('.fm-chapter:visible .fm-figure input[name="seed"]').first
    seed.fill("7")
    expect(page).to_have_url(re.compile("values=.*seed.*7"))
    page.reload()
    expect(seed).to_have_value("7")


def test_a_saved_chapter_needs_nothing_else(learn, page, tmp_path):
    learn("loss")
    quiet(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as a page").click()
    saved = tmp_path / download.value.suggested_filename
    download.value.save_as(saved)
    assert saved.name == "lesson-loss.html"
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(saved.as_uri())
    assert asked == [saved.as_uri()]
    for step in COURSE[1].steps:
        expect(page.get_by_role("heading", name=step.title)).to_be_visible()
    expect(page.locator("math").first).to_be_visible()
    assert page.locator("script, button, input, a[href], .fm-exercises").count() == 0


def respond(form, response):
    """Give a response of the shape that `exercises_of` states, and check it."""
    kind = form.get_attribute("data-kind")
    if kind == "numeric":
        form.locator('input[name="response"]').fill(response)
    elif kind == "choice":
        form.locator(f'input[name="response"][value="{response}"]').check()
    else:
        wanted = response.split(",")
        for place, item in enumerate(wanted):
            up = form.locator(f'[data-item="{item}"] [data-move="-1"]')
            while form.locator("[data-item]").nth(place).get_attribute("data-item") != item:
                up.click()
    form.get_by_role("button", name="Check").click()


def wrong_response(exercise):
    """A response of the same shape that is not right."""
    right = exercise.right_response
    if exercise.kind == "ordering":
        return ",".join(reversed(right.split(",")))
    if exercise.kind == "numeric":
        return f"{float(right) + 3:.2f}"
    return str((int(right) + 1) % len(exercise.options))


def test_all_chapters_are_walked_and_one_exercise_of_each_answered_wrong_and_right(learn):
    page = learn(exercise=3)
    for number, chapter in enumerate(COURSE, 1):
        section = page.locator(f'section.fm-exercises[data-chapter="{chapter.name}"]')
        form = section.locator('form[data-exercise="1"]')
        exercise = exercises_of(chapter.name, 3)[0]
        feedback = form.locator(".fm-feedback")
        respond(form, wrong_response(exercise))
        expect(feedback).to_have_attribute("data-right", "false")
        respond(form, exercise.right_response)
        expect(feedback).to_have_attribute("data-right", "true")
        expect(page.locator(".fm-score-text")).to_have_text(f"{number} of {number} right")
        if number < len(COURSE):
            page.get_by_role("button", name="Next →").click()
