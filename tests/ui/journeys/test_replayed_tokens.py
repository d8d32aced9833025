"""Tokens of a run as Explore opens them: what the run saw, and which model is which."""

import re

import pytest
from accessibility import accessible
from journey import Evaluate, Explore
from playwright.sync_api import expect
from stored_runs import record
from table_model import TableModel

from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.masking import MaskRecipe
from fillmask_ui.runs import RunStore


class Replay(Explore):
    """The Explore tab with a token of a run."""

    def __init__(self, page, row):
        super().__init__(page)
        self.row = row
        self.strip = page.get_by_role("toolbar", name="The sentence as the model read it")
        self.line = page.locator(".fm-read-line")

    def shows(self, entry, scores=None):
        loss = (scores or self.row.scores).nll_nats[entry]
        chosen = self.strip.locator('[aria-pressed="true"]')
        expect(chosen).to_have_attribute("data-token", str(self.row.cols[entry]))
        expect(self.line).to_contain_text(f"loss {loss:.4f} nats")
        return self


def test_a_token_is_opened_as_the_run_saw_it(visit, served):
    """The run has masks, planted words and unchanged tokens."""
    texts = ["the cat sat on the old mat and the red dog ran to a river."]
    run = record(
        RunStore(served.runs),
        TableModel(1),
        texts,
        EvaluationConfig(recipe=MaskRecipe(0.7, 0.4, 0.3, 0.3), seed=3),
        baseline=TableModel(1, noise=0.3),
        choices={"model": {"reference": "table"}, "baseline": {"reference": "noisy"}},
    )
    row, name = run.row(0), run.info.name
    planted, unchanged = (row.kinds.tolist().index(kind) for kind in (1, 2))
    bench = Evaluate(page := visit({"tab": "evaluate", "run": name}, color_scheme="dark"))
    replay = Replay(page, row)
    bench.finished().unfold("All [0-9,]+ tokens")
    bench.tokens.first.locator("td.fm-number").first.click()
    # Beside each other, both models read the very sentence of the run.
    expect(bench.side.locator("table")).to_have_count(2)
    expect(bench.side.locator(".fm-read-mask")).to_have_count(int((row.kinds == 0).sum()))
    loss = float(bench.tokens.first.locator("td.fm-number").nth(1).get_attribute("data-value"))
    expect(bench.side).to_contain_text(f"Loss in the run: {loss:.4f} nats")
    accessible(page, within="#evaluate-tokens")
    bench.tokens.first.get_by_role("button").first.click()
    expect(page.get_by_role("tab", name="Explore")).to_have_attribute("aria-selected", "true")
    entry = row.scores.nll_nats.tolist().index(loss)
    replay.shows(entry)
    expect(replay.sentence).to_have_value(re.compile(r"^[^\[]*\[MASK\][^\[]*$"))
    # Both models of the run are picked, and their candidates stand in one list.
    expect(page).to_have_url(re.compile(rf"run={name}&.*example=0&token="))
    expect(page).to_have_url(re.compile("model=noisy&compare=table"))
    replay.found.get_by_text("words in numbers").click()
    row_of_token = replay.found.locator("table tbody tr").filter(has_text=row.tokens[entry])
    for nll in (loss, float(row.reference.nll_nats[entry])):
        expect(row_of_token.locator(f'[data-value="{nll}"]').first).to_be_visible()
    # What is asked of the sentence in the box is not asked of what the run saw.
    attributed = replay.mode("What mattered")
    expect(attributed).to_be_disabled()

    # Every hidden token can be looked at; what it was is told before it is chosen.
    replay.open(tab="explore", run=name, example="0", token=str(row.cols[planted]))
    replay.shows(planted)
    expect(replay.replay).to_contain_text("the model read the random replacement")
    expect(replay.strip.get_by_role("button")).to_have_count(len(row.cols))
    button = replay.strip.locator(f'[data-token="{row.cols[unchanged]}"]')
    button.hover()
    expect(replay.line).to_contain_text("left unchanged")
    page.mouse.move(5, 5)
    replay.shows(planted)
    expect(button).to_have_accessible_name(re.compile(f"loss {row.scores.nll_nats[unchanged]:.4f}"))
    accessible(page)
    button.click()
    replay.shows(unchanged)
    expect(button).to_be_focused()
    page.mouse.move(5, 5)  # else the line is about what is under the pointer
    button.press("Home")
    page.keyboard.press("Enter")
    replay.shows(0)
    replay.sentence.focus()  # nor what has the focus
    page.go_back()
    replay.shows(unchanged)
    replay.press("Reference: table-1-0.3")
    replay.shows(unchanged, row.reference)
    expect(page.get_by_role("combobox", name="Model").first).to_have_value("noisy")
    page.go_back()
    replay.shows(unchanged)

    # Only this one hidden, in another reading than that of the run, and back.
    before = replay.bars.inner_text()
    replay.press("Only this one hidden")
    loss = row.scores.nll_nats[unchanged]
    expect(replay.replay).to_contain_text(f"In the run it was {loss:.4f} nats")
    expect(attributed).to_be_enabled()
    assert replay.bars.inner_text() != before
    replay.press("As the run saw it")
    replay.shows(unchanged)
    assert replay.bars.inner_text() == before
    # A candidate that is written, or a key, leaves the run.
    page.locator("#bars button.fm-row").nth(1).click()
    expect(replay.replay).to_be_empty()
    expect(replay.sentence).not_to_have_value(re.compile("MASK"))
    page.go_back()
    replay.shows(unchanged)
    replay.sentence.fill("the old dog [MASK] on the mat")
    expect(replay.replay).to_be_empty()
    expect(page).not_to_have_url(re.compile("run="))
    # A run that is gone is said, and the page stays usable.
    replay.open(run="gone", example="0", token="1", text="the [MASK] sat")
    expect(page.get_by_role("alert")).to_contain_text("Unknown run 'gone'")
    expect(replay.bar.first).to_be_visible()
    expect(replay.sentence).to_have_value("the [MASK] sat")


def run_of(served, name, baseline=None):
    models = {"table": TableModel(1), "noisy": TableModel(1, noise=0.3), None: None}
    choices = {"model": {"reference": name}, "baseline": baseline and {"reference": baseline}}
    return record(
        RunStore(served.runs), models[name], baseline=models[baseline], choices=choices
    ).info.name


@pytest.mark.parametrize("compared", [False, True], ids=["one run", "two runs"])
def test_the_models_of_a_result_keep_their_roles_in_explore(visit, served, compared):
    """The candidate is `noisy`; the numbers of Explore are those of the table of Evaluate."""
    if compared:
        runs = {"run": run_of(served, "noisy"), "reference": run_of(served, "table")}
    else:
        runs = {"run": run_of(served, "noisy", "table")}
    bench = Evaluate(page := visit({"tab": "evaluate", **runs}))
    bench.finished()
    for number in (0, 1, -1):
        row = bench.worst.nth(number)
        expect(row.locator(".fm-loss")).to_have_count(2)
        reference, candidate = (
            float(loss.get_attribute("data-value")) for loss in row.locator(".fm-loss").all()
        )
        rank = row.locator("td").last.inner_text().split(" → ")
        change = row.locator("td").nth(2).inner_text()
        assert change == f"{candidate - reference:+.2f}".replace("-", "−")
        row.get_by_role("button").first.click()
        loss = page.locator("#found dl > *").filter(has_text="Loss of")
        expect(loss).to_contain_text(f"{reference:.3f} → {candidate:.3f} nats")
        expect(loss).to_contain_text(f"{candidate - reference:+.3f}".replace("-", "−"))
        truth = page.locator("#found .fm-row:has(.fm-truth)")
        expect(truth).to_contain_text(f"{rank[0]} → {rank[-1]}")
        # The models keep their roles whichever of the two readings is looked at.
        for role in ("Candidate", "Reference"):
            button = page.locator("#replay").get_by_role("button", name=re.compile(f"^{role}: "))
            button.click()
            expect(button).to_have_attribute("aria-pressed", "true")
            expect(loss).to_contain_text(f"{reference:.3f} → {candidate:.3f} nats")
            pickers = {"Model": "table", "Candidate": "noisy"}
            for label, name in pickers.items():
                picker = page.locator("#explore").get_by_role("combobox", name=label)
                expect(picker).to_have_value(name)
        bench.tab("Evaluate")
