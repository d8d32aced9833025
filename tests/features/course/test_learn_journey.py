"""The Learn tab: the course from its first chapter to its last, its figures and its exercises."""

import math
import re

import pytest
from accessibility import accessible
from features.course.lesson_figures import right_response
from journey import Visitor
from playwright.sync_api import expect

from fillmask_ui.features.course import mean_uncertainty, uncertainty_figures
from fillmask_ui.features.course.chapter import chapters
from fillmask_ui.features.course.exercises import EXERCISES, exercises_of

COURSE = chapters()
ALL = sum(len(exercises_of(chapter, 1)) for chapter in EXERCISES)


class Learn(Visitor):
    def __init__(self, page):
        super().__init__(page)
        self.chapter = page.locator(".fm-chapter:visible")
        self.exercises = page.locator(".fm-exercises:visible")
        self.score = page.get_by_role("region", name="Score of the exercises")
        self.onward = page.get_by_role("button", name="Next →")

    def see(self, chapter):
        """Wait for a chapter and the answers of all its figures."""
        title = self.page.get_by_role("heading", name=chapter.title, exact=True, level=2)
        expect(title).to_be_visible()
        for figure in self.chapter.locator(".fm-figure").all():
            expect(figure).to_have_attribute("aria-busy", "false")
        expect(self.exercises.locator("form").first).to_be_visible()
        return self

    def figure(self, name):
        locator = self.page.locator(f'[data-figure="{name}"]')
        expect(locator).to_have_attribute("aria-busy", "false")
        return locator

    def form(self, number):
        return self.exercises.locator(f'form[data-exercise="{number}"]')

    def respond(self, number, response):
        """Give a response of the shape that `exercises_of` states, and check it."""
        form = self.form(number)
        kind = form.get_attribute("data-kind")
        if kind == "numeric":
            form.locator('input[name="response"]').fill(response)
        elif kind == "choice":
            form.locator(f'input[name="response"][value="{response}"]').check()
        else:
            for position, item in enumerate(response.split(",")):
                up = form.locator(f'[data-item="{item}"] [data-move="-1"]')
                while form.locator("[data-item]").nth(position).get_attribute("data-item") != item:
                    up.press("Enter")
                    expect(up).to_be_focused()
        form.get_by_role("button", name="Check").press("Enter")
        return self

    def told(self, number, right, text=""):
        feedback = self.form(number).get_by_role("status").last
        expect(feedback).to_have_attribute("data-right", right)
        expect(feedback).to_contain_text(text)
        return self


def wrong_response(exercise):
    """A response of the same shape that is not right."""
    right = right_response(exercise)
    if exercise.kind == "ordering":
        return ",".join(reversed(right.split(",")))
    if exercise.kind == "numeric":
        return f"{float(right) + 3:.2f}"
    return str((int(right) + 1) % len(exercise.options))


@pytest.fixture(autouse=True)
def few_texts(monkeypatch):
    """Figures measure few texts: other tests hold their numbers."""
    monkeypatch.setattr(uncertainty_figures, "TEMPERATURE_TEXTS", 6)
    monkeypatch.setattr(uncertainty_figures, "_PAIRED_TEXTS", 12)
    monkeypatch.setattr(mean_uncertainty, "COUNTS", (5, 10, 20))


@pytest.mark.parametrize(
    ("part", "width", "theme"), [(COURSE[:5], 1280, "light"), (COURSE[5:], 390, "dark")]
)
def test_a_student_walks_the_course(visit, part, width, theme):
    """Each chapter is opened once; its figures answer, and so does an exercise."""
    address = {"tab": "learn", "chapter": part[0].name, "exercise": "3"}
    learn = Learn(page := visit(address, width=width, color_scheme=theme))
    for number, chapter in enumerate(part, 1):
        if number > 1:
            learn.onward.click()
        learn.see(chapter)
        assert learn.address()["chapter"] == chapter.name
        for step in chapter.steps:
            expect(page.get_by_role("heading", name=step.title)).to_be_visible()
        expect(learn.chapter.locator(".fm-notice.fm-error")).to_have_count(0)
        exercise = exercises_of(chapter.name, 3)[0]
        learn.respond(1, right_response(exercise)).told(1, "true")
        expect(learn.score).to_contain_text(f"{number} of {number} right")
        learn.fits(width)
        accessible(page, within="#learn", both_themes=False)
    back = page.get_by_role("button", name="← Back")
    expect(learn.onward if part[-1] is COURSE[-1] else back).to_be_visible()
    back.click()
    learn.see(part[-2])
    page.go_back()
    learn.see(part[-1])
    if part[-1] is COURSE[-1]:
        expect(learn.onward).to_be_disabled()


def test_a_lecturer_projects_links_and_saves_a_chapter(visit, tmp_path):
    chapter, following = COURSE[3:5]
    address = {"tab": "learn", "chapter": chapter.name, "project": "1", "step": "1"}
    learn = Learn(page := visit(address, width=1920, height=1080))
    visible_step = page.locator(".fm-step:visible")
    text = visible_step.locator(".fm-lesson-text p").first
    # For the back row: of 1,080 rows at least 1/45 of the height of the screen.
    assert text.evaluate("(p) => parseFloat(getComputedStyle(p).fontSize)") >= 24
    expect(visible_step).to_have_count(1)
    for step in chapter.steps:
        expect(visible_step.get_by_role("heading", name=step.title)).to_be_visible()
        page.keyboard.press("ArrowRight")
    expect(learn.exercises).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(visible_step.get_by_role("heading", name=following.steps[0].title)).to_be_visible()
    accessible(page)
    page.keyboard.press("ArrowLeft")
    expect(learn.exercises).to_be_visible()
    page.keyboard.press("Escape")
    learn.see(chapter)
    assert "project" not in learn.address()
    # A link keeps what the controls hold.
    seed = learn.chapter.locator('.fm-figure input[name="seed"]').first
    seed.fill("7")
    expect(page).to_have_url(re.compile("values=.*seed.*7"))
    page.reload()
    learn.ready()
    expect(seed).to_have_value("7")
    # A saved chapter needs nothing else.
    page.get_by_role("link", name="From logits to a loss").click()
    learn.see(COURSE[1])
    with page.expect_download() as download:
        learn.press("Save as a page")
    saved = tmp_path / download.value.suggested_filename
    download.value.save_as(saved)
    assert saved.name == "lesson-loss.html"
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(saved.as_uri())
    assert requests == [saved.as_uri()]
    for step in COURSE[1].steps:
        expect(page.get_by_role("heading", name=step.title)).to_be_visible()
    expect(page.locator(".fm-formula").first).to_be_visible()
    assert page.locator("script, button, input, a[href], .fm-exercises").count() == 0


def test_figures_answer_a_class(visit):
    address = {"tab": "learn", "chapter": "<script>"}
    learn = Learn(page := visit(address, color_scheme="dark", reduced_motion="reduce"))
    figure = learn.see(COURSE[0]).figure("guess")
    figure.get_by_label("guess 1", exact=True).fill("tea")
    figure.get_by_label("percent of guess 1").fill("60")
    figure.get_by_label("percent of guess 1").press("Enter")
    expect(figure.locator(".fm-row-value")).to_have_text(["60.0%", "40.0%"])
    # The answer is absent until it is asked for.
    assert "coffee" not in figure.inner_html()
    figure.get_by_role("button", name="Reveal").click()
    expect(figure.locator("mark")).to_contain_text("coffee")
    expect(figure).to_contain_text("Nobody guessed “coffee”")

    page.get_by_role("link", name="From logits to a loss").click()
    figure = learn.see(COURSE[1]).figure("loss_curve")
    curve = figure.locator('[data-piece="curve"]')
    expect(curve).to_contain_text("0.357 nats")
    figure.get_by_role("slider").fill("30")
    expect(curve).to_contain_text("−ln 30.0% = 1.204 nats.")
    share, up = figure.evaluate(
        """(figure) => {
            const frame = figure.querySelector(".fm-frame").getBoundingClientRect();
            const dot = figure.querySelector(".fm-dot").getBoundingClientRect();
            const [x, y] = [dot.left + dot.width / 2, dot.top + dot.height / 2];
            return [(x - frame.left) / frame.width, (frame.bottom - y) / frame.height];
        }"""
    )
    assert share == pytest.approx(0.3, abs=0.006)
    assert up * 7 == pytest.approx(-math.log(0.3), abs=0.05)  # the axis ends at 7 nats
    # A sentence is typed once for all figures of a chapter.
    table, heat = learn.figure("softmax_table"), learn.figure("loss_temperature")
    table.get_by_label("Hidden word").fill("tea")
    expect(heat.get_by_role("textbox", name="Hidden word")).to_have_value("tea")
    expect(heat.locator(".fm-row-truth")).to_contain_text("tea")

    page.get_by_role("link", name="The loss ledger").click()
    ledger = learn.see(COURSE[4]).figure("ledger")
    lines = ledger.locator("tbody tr")
    for button, count in (("Next line", 2), ("All lines", 5)):
        ledger.get_by_role("button", name=button).click()
        expect(lines).to_have_count(count)
    ledger.get_by_role("button", name="Run the evaluator").click()
    evaluator = ledger.locator('[data-piece="evaluator"]')
    expect(evaluator).to_contain_text("Evaluator, 5 tokens")
    ledger_mean, evaluator_mean = re.findall(r"(\d\.\d{6}) nats", evaluator.inner_text())
    assert ledger_mean == evaluator_mean
    ledger.get_by_role("button", name="Seed: one more").click()
    expect(evaluator).to_be_empty()

    # One word goes through all figures of a chapter.
    page.get_by_role("link", name="One word, two meanings").click()
    figures = learn.see(COURSE[8]).chapter.locator(".fm-figure")
    figures.first.get_by_role("button", name="match").click()
    expect(figures.first).to_contain_text("Our team won the match.")
    expect(figures.nth(2)).to_contain_text("She struck a match to light the candle.")
    nearest, lens = figures.nth(3), figures.last
    fresh = nearest.get_by_label("A new sentence")
    expect(fresh).to_have_value("He needed a match to light the lamp.")
    fresh.fill("The players came late to the match.")
    expect(nearest.locator(".fm-line")).to_contain_text("sense 1")
    fresh.fill("Nobody came.")
    expect(nearest.get_by_role("alert")).to_contain_text("does not occur")
    expect(lens.locator("tbody tr").first).to_contain_text("bank")
    lens.get_by_label("A sentence with a mask").fill("The sun rises in the [MASK].")
    expect(lens.locator("tbody tr").first).to_contain_text("morning")
    lens.locator("tbody button").last.focus()
    expect(lens.locator("figcaption")).to_have_text("The embeddings")
    expect(figures.first.get_by_role("alert")).to_have_count(0)
    accessible(page, within="#learn")


@pytest.mark.parametrize("width", [1280, 390])
def test_a_student_trains_heads(visit, width):
    learn = Learn(page := visit({"tab": "learn", "chapter": "heads"}, width=width, height=844))
    learn.see(COURSE[-1])
    sentiment = learn.figure("sentiment")
    sentiment.get_by_role("slider", name="Gradient steps").fill("0")
    expect(sentiment.locator(".fm-row-value")).to_have_text(["50.0%", "50.0%"])
    sentiment.get_by_text("Your own training sentences").click()
    typed = sentiment.get_by_role("textbox", name="Sentences")
    typed.fill("It was fine.")
    expect(sentiment.get_by_role("alert")).to_contain_text("has no label")
    typed.fill("+ It was fine.")
    expect(sentiment).to_contain_text("learned from 41 sentences")
    sentiment.get_by_text("yours", exact=True).click()
    expect(sentiment.get_by_role("alert")).to_contain_text("All training sentences are positive")
    typed.fill("+ It was fine.\n- It was not.")
    expect(sentiment).to_contain_text("learned from 2 sentences")
    expect(learn.figure("entailment")).to_contain_text("of 36 pairs right")

    tags = learn.figure("entity_tags")
    tag = tags.get_by_label("Tag of is, word 3")
    tag.focus()
    tag.select_option("I-ORG")
    expect(tags).to_contain_text("I-ORG at “is” continues no ORG")
    expect(tags).to_contain_text("with 1 changed")
    expect(tag).to_be_focused()
    tags.get_by_role("slider", name="Training sentence").fill("2")
    expect(tags.get_by_label("Tag of Anna, word 1")).to_have_value("B-PER")
    expect(tags).to_contain_text("with 1 changed")
    expect(page).to_have_url(re.compile("edits.*0_2"))
    page.reload()
    learn.ready()
    expect(tags).to_contain_text("with 1 changed")
    tags.get_by_role("button", name="Restore all tags").click()
    expect(tags).not_to_contain_text("changed")
    tags.get_by_label("A new sentence").fill("x" * 1000)
    expect(tags.get_by_role("alert")).to_contain_text("1,000 characters")
    tags.get_by_label("A new sentence").fill("We saw Anna in Rome.")
    expect(tags).to_contain_text("Anna PER")

    scores = learn.figure("span_scores")
    expect(scores.locator("dt")).to_have_text(["Precision", "Recall", "F1"])
    f1 = scores.locator("dd").last
    before = f1.inner_text()
    scores.get_by_role("slider").fill("4")
    expect(f1).not_to_have_text(before)
    scores.get_by_text("True and predicted spans of each").first.click()
    expect(scores.locator("tbody tr").first).to_contain_text("Anna PER")
    learn.fits(width)
    accessible(page, within="#learn")
    with page.expect_download() as download:
        learn.press("Save as a page")
    saved = download.value.path().read_text()
    assert download.value.suggested_filename == "lesson-heads.html"
    assert "Freeze or fine-tune?" in saved and "We saw Anna in Rome." in saved
    assert "<select" not in saved and "<input" not in saved


def test_a_class_does_the_exercises(visit):
    learn = Learn(page := visit({"tab": "learn", "chapter": "loss"}, width=390, height=844))
    first, third = (exercises_of("loss", 1)[index] for index in (0, 2))
    learn.see(COURSE[1]).respond(1, "fox").told(1, "unread", "is not a number")
    expect(learn.score).to_contain_text(f"{ALL} exercises")
    learn.respond(1, "0,515").told(1, "false", "That is in bits")
    expect(learn.score).to_contain_text("0 of 1 right")
    learn.form(1).get_by_text("Show the solution").click()
    expect(learn.form(1)).to_contain_text("−ln 0.7 = 0.357")
    learn.respond(1, right_response(first).replace(".", ",")).told(1, "true", "= 0.357 nats")
    learn.respond(3, wrong_response(third)).told(3, "false", "Not yet.")
    expect(learn.score).to_contain_text("1 of 2 right")
    page.reload()
    learn.ready()
    expect(learn.score).to_contain_text("1 of 2 right")
    expect(learn.form(1)).to_contain_text("✓ right")
    expect(learn.form(3)).to_contain_text("✗ not yet right")
    accessible(page)
    learn.score.get_by_role("button", name="Reset").click()
    expect(learn.score).to_contain_text(f"{ALL} exercises")
    expect(learn.form(1)).not_to_contain_text("✓ right")

    # A link shares the numbers, which go along to the next chapter and back.
    dial = learn.exercises.get_by_role("spinbutton", name="Numbers")

    def asks(chapter, seed):
        expect(learn.form(1)).to_contain_text(exercises_of(chapter, seed)[0].text)

    learn.open(tab="learn", chapter="guess", exercise="7")
    asks("guess", 7)
    expect(dial).to_have_value("7")
    learn.press("Numbers: one more")
    asks("guess", 8)
    expect(page).to_have_url(re.compile(r"[?&]exercise=8(&|$)"))
    learn.press("New numbers")
    expect(dial).not_to_have_value("8")
    dial.fill("7")
    dial.press("Enter")
    asks("guess", 7)
    learn.onward.click()
    asks("loss", 7)
    page.go_back()
    asks("guess", 7)
    for button, name in (("Sheet", "exercises-7"), ("With solutions", "exercises-7-solutions")):
        with page.expect_download() as download:
            learn.score.get_by_role("button", name=button).click()
        assert download.value.suggested_filename == f"{name}.html"
        text = download.value.path().read_text()
        assert text.count("<article>") == ALL
        assert ('class="solution"' in text) == name.endswith("solutions")
