"""Plans: every choice there and back, models that do not compare, and the pace of a run."""

import json
import time
from dataclasses import replace

import pytest
from table_model import TableModel, letter_vocabulary

from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation import EvaluationConfig, batch_scoring
from fillmask_ui.intervals import Limits
from fillmask_ui.masking import MaskRecipe
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.runs import Plan, RunStore, perform
from fillmask_ui.runs.info import RunInfo
from fillmask_ui.runs.perform import Pace, RunProgress
from fillmask_ui.texts import TextSource

PLANS = [
    Plan(),
    Plan(
        ModelChoice("model.onnx", tokenizer="org/name", device="qnn", provider_options=("a=b",)),
        ModelChoice("embedded:torch", runtime="torch", device="cpu", dtype="bfloat16"),
        EvaluationConfig(recipe=MaskRecipe(0.3, whole_word=True), seed=5, max_tokens=64),
        TextSource("file", "/data/news.csv", column="body", samples=7, shuffle=False, seed=3),
        Limits(0.01, 0.02),
    ),
    Plan(config=EvaluationConfig(mask_stream="collator", batch_tokens=64)),
    Plan(config=EvaluationConfig("pseudo-perplexity", within_word=True)),
    Plan(config=EvaluationConfig("suffix", suffix_tokens=3)),
]


def stored(plan):
    """run.json of a plan, written and read."""
    info = RunInfo(
        "a", "now", plan.config, {}, texts=plan.texts(), choices=plan.choices(), limits=plan.limits
    )
    values = json.loads(json.dumps(info.to_dict()))
    config = EvaluationConfig.from_dict(values["config"])
    stored = {"texts": values["texts"], "choices": values["choices"]}
    return RunInfo("a", "now", config, {}, limits=Limits(**values["limits"]), **stored)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.config.signature)
def test_every_choice_survives_run_json(plan):
    assert Plan.of(stored(plan)) == plan


def test_a_folder_can_stay_out_of_the_signature(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for kind, where, name in (
        ("file", "/home/ada/private.txt", "private.txt"),
        ("folder", "/home/ada/shards", "shards"),
        ("folder", ".", tmp_path.name),
    ):
        plan = Plan(source=TextSource(kind, where), hide_folders=True)
        assert plan.texts()["signature"].startswith(f"texts:{name}|")
        assert plan.texts()["where"] == where


def test_models_that_do_not_compare_leave_no_run(store):
    models = {"own": TableModel(1), "other": TableModel(1, vocabulary=letter_vocabulary())}
    plan = Plan(ModelChoice("own"), ModelChoice("other"))
    with pytest.raises(OptionError, match="different tokenizers"):
        next(perform(plan, store, lambda choice: models[choice.reference]))
    assert store.names() == []


@pytest.mark.parametrize(
    ("expected", "begun", "steps", "speed", "left"),
    [
        (1000, 0, [(5, 0, 0)], None, None),
        (1000, 0, [(1, 20, 300), (10, 200, 3000)], 300, (1000 - 200) / 20),
        # What a resumed run had is gone through once more and not counted.
        (1000, 500, [(1, 300, 0), (4, 600, 800)], 200, 400 / 25),
        (None, 0, [(2, 50, 100)], 50, None),
        # Signs of life that say nothing new, and an end that brings no tokens, change nothing.
        (1000, 0, [(120, 100, 6000), (150, 100, 6000)], 50, 900 * 1.2),
        (1000, 0, [(10, 1000, 500), (20, 1000, 0)], 50, 0),
    ],
)
def test_what_is_done_by_the_time_it_took(monkeypatch, expected, begun, steps, speed, left):
    clock = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    pace = Pace(RunProgress(None, None, expected, through=begun))
    for seconds, through, tokens in steps:
        clock = 100.0 + seconds
        pace.add(RunProgress(None, None, expected, through=through, tokens=tokens))
    assert pace.tokens_per_second == (speed and pytest.approx(speed))
    assert pace.seconds_left == (left and pytest.approx(left))


def test_the_speed_is_that_of_all_calls_on_the_same_batches(tmp_path, monkeypatch):
    """By a clock that stands still but in calls: 2 s of the candidate, 8 s of its reference."""
    clock = [0.0]
    monkeypatch.setattr(batch_scoring.time, "perf_counter", lambda: clock[0])

    class Timed(TableModel):
        def logits_at(self, *inputs):
            clock[0] += self.cost
            return super().logits_at(*inputs)

    models = {"slow": Timed(1), "fast": Timed(1, noise=0.1)}
    models["slow"].cost, models["fast"].cost = 8.0, 2.0
    (path := tmp_path / "texts.txt").write_text("the cat sat\n" * 40)
    plan = Plan(ModelChoice("fast"), ModelChoice("slow"), source=TextSource("file", str(path)))
    store = RunStore(tmp_path / "runs")
    for model, speedup in (("fast", 4.0), ("slow", None)):
        if model == "slow":
            plan = Plan(ModelChoice("slow"), source=plan.source)
        *_, last = perform(plan, store, lambda choice: models[choice.reference])
        stored = store.open(last.info.name).info
        assert stored.speedup == last.info.speedup == speedup
        assert len(stored.call_seconds) == (2 if speedup else 1)
    short = replace(stored, call_seconds=(4.0, 0.9))
    assert short.speedup is None
