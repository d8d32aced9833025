"""The loss as a curve: where its dots stand is -ln of the probability, to a pixel."""

import math

import pytest
from playwright.sync_api import expect

from fillmask_ui.filling import fill
from fillmask_ui.ui.explore.prediction_view import MAX_POINTS, loss_points
from tests.explore_page import Explorer
from tests.table_model import TableModel

HALL = "The cat sat on the [MASK]."
PAIR = "The [MASK] sat on the [MASK]."


def test_points_are_hidden_words_or_first_candidates(session):
    model, text = TableModel(), "the [MASK] sat on [MASK] [MASK]."
    filling = fill(model, text, top_k=3)
    points = loss_points(session, model, filling, ("cat", None, "walking"), "bits")
    assert [point.hidden for point in points] == [True, False, True]
    assert points[1].word == filling.masks[1].candidates[0].word
    for point in points:
        assert point.nll_nats == pytest.approx(-math.log(point.probability))
    wanted = session.score(model, text, ["walking"])[2][0].nll_nats
    assert points[2].nll_nats == pytest.approx(wanted)
    assert points[2].texts[1] == f"{wanted / math.log(2):.3f} bits"


def test_what_cannot_be_spelled_has_the_first_candidate(session):
    model, text = TableModel(), "the [MASK] sat."
    filling = fill(model, text, top_k=3)
    (point,) = loss_points(session, model, filling, ("xyz",), "nats")
    assert not point.hidden and point.word == filling.masks[0].candidates[0].word


def test_many_masks_cost_a_few_points(session):
    model, text = TableModel(), "the " + "[MASK] " * 12
    filling = fill(model, text, top_k=1, joint=0)
    words = ("cat",) * 12
    assert len(loss_points(session, model, filling, words, "nats")) == MAX_POINTS


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    yield context.new_page()
    context.close()


def opened(page, served, text, hidden, **more):
    Explorer(page, served).open(text=text, hidden=hidden, **more)
    expect(page.locator("#loss .fm-loss-chosen")).to_be_visible(timeout=30_000)


def losses(page):
    """What the server says of each mask, in nats."""
    return page.evaluate(
        """async () => {
            const { points } = await fillmask.explore.call("losses");
            return Object.fromEntries(points.map((point) => [point.mask, point.nll_nats]));
        }"""
    )


def positions(page):
    """Each dot as shares of the frame: from its left side, and from its bottom."""
    return page.evaluate(
        """() => {
            const frame = document.querySelector(".fm-loss-frame").getBoundingClientRect();
            const place = (dot) => {
                const box = dot.querySelector("circle").getBoundingClientRect();
                const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
                const up = (frame.bottom - y) / frame.height;
                return [dot.dataset.mask, { p: (x - frame.left) / frame.width, up }];
            };
            const top = [...document.querySelectorAll(".fm-loss-ticks")][0].lastChild.textContent;
            const dots = [...document.querySelectorAll(".fm-loss-dot")].map(place);
            return { dots: Object.fromEntries(dots), top: Number(top) };
        }"""
    )


def near(value):
    return pytest.approx(value, abs=0.004)  # of the frame's size: a pixel


@pytest.mark.parametrize("unit", ["nats", "bits"])
def test_the_dot_stands_at_minus_ln_p(page, served, unit):
    opened(page, served, HALL, '["mat"]', unit=unit)
    found = positions(page)
    per_unit = math.log(2) if unit == "bits" else 1
    (loss,) = losses(page).values()
    dot = found["dots"]["0"]
    assert dot["p"] == near(math.exp(-loss))
    assert dot["up"] * found["top"] == pytest.approx(loss / per_unit, abs=0.05)
    assert dot["up"] * found["top"] * per_unit == pytest.approx(-math.log(dot["p"]), rel=0.03)
    expect(page.locator("#loss figcaption")).to_contain_text(f"= {loss / per_unit:.3f} {unit}")


def test_a_loss_beyond_the_axis_makes_it_longer(page, served):
    opened(page, served, HALL, '["souvenir"]')
    found = positions(page)
    (loss,) = losses(page).values()
    assert loss > 20 and found["top"] == 56  # 7, doubled until the loss fits
    assert found["dots"]["0"]["up"] == near(loss / 56)


def test_the_chosen_mask_is_strong_and_the_others_faint(page, served):
    opened(page, served, PAIR, '["cat", "mat"]', mask=2)
    expect(page.locator(".fm-loss-dot")).to_have_count(2)
    chosen = page.locator(".fm-loss-chosen")
    expect(chosen).to_have_attribute("data-mask", "1")
    expect(page.locator("#loss figcaption")).to_contain_text("The hidden word “mat”")
    found, wanted = positions(page)["dots"], losses(page)
    for mask, loss in wanted.items():
        assert found[mask]["p"] == near(math.exp(-loss))
    page.get_by_role("button", name="1 cat").click()
    expect(chosen).to_have_attribute("data-mask", "0")
    expect(page.get_by_role("img", name="The hidden word “cat”")).to_be_visible()


def test_a_mask_far_to_the_right_has_its_dot(page, served):
    opened(page, served, "[MASK] " * (MAX_POINTS + 2), "", mask=MAX_POINTS + 2)
    expect(page.locator(".fm-loss-dot")).to_have_count(MAX_POINTS + 1)
    expect(page.locator(".fm-loss-chosen")).to_have_attribute("data-mask", str(MAX_POINTS + 1))


def test_without_a_hidden_word_it_is_the_first_guess_and_says_so(page, served):
    opened(page, served, HALL, "")
    best = page.evaluate("fillmask.explore.answer.mask.candidates[0]")
    expect(page.locator("#loss figcaption")).to_contain_text(f"The first guess, “{best['word']}”")
    assert positions(page)["dots"]["0"]["p"] == near(best["probability"])


def test_the_drawing_stays_and_the_dot_moves_unless_the_reader_wants_less_motion(browser, served):
    moves = {}
    for motion in ("reduce", "no-preference"):
        context = browser.new_context(reduced_motion=motion)
        page = context.new_page()
        opened(page, served, HALL, '["mat"]')
        page.evaluate(
            """() => {
                document.querySelector("#loss svg").dataset.same = "yes";
                window.moved = new Set();
                const note = (event) => window.moved.add(event.propertyName);
                document.addEventListener("transitionrun", note);
            }"""
        )
        page.evaluate(
            "fillmask.explore.change({ text: 'The cat [MASK] on the mat.', base:"
            " 'The cat [MASK] on the mat.', hidden: ['sat'] })"
        )
        expect(page.locator("#loss figcaption")).to_contain_text("“sat”")
        expect(page.locator("#loss svg")).to_have_attribute("data-same", "yes")
        page.wait_for_timeout(100)  # a transition begins with the next frame
        moves[motion] = page.evaluate("window.moved.has('--fm-loss')")
        context.close()
    assert moves == {"reduce": False, "no-preference": True}


def test_a_sentence_without_a_mask_has_no_curve(page, served):
    opened(page, served, HALL, '["mat"]')
    page.evaluate("fillmask.explore.change({ text: 'The cat sat.' })")
    expect(page.locator("#loss")).to_be_hidden()
