"""Plans: every choice there and back, the words of older runs, and the one way to perform them."""

import json
from dataclasses import replace

import pytest
from table_model import TableModel, letter_vocabulary

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.evaluation import EvaluatedText, EvaluationConfig
from fillmask_ui.intervals import Limits
from fillmask_ui.masking import MaskRecipe
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.runs import Plan, perform, perform_rest
from fillmask_ui.runs.info import RunInfo
from fillmask_ui.texts import TextSource
from fillmask_ui.unmasking import UnmaskingOptions

PLANS = [
    Plan(),
    Plan(
        ModelChoice("model.onnx", tokenizer="org/name", provider="cpu", threads=3),
        ModelChoice("embedded:torch", runtime="torch", device="cpu", dtype="bfloat16"),
        EvaluationConfig(recipe=MaskRecipe(0.3, whole_word=True), seed=5, max_tokens=64),
        TextSource("file", "/data/news.csv", column="body", samples=7, shuffle=False, seed=3),
        Limits(0.01, 0.02),
    ),
    Plan(config=EvaluationConfig(mask_stream="collator", batch_tokens=64)),
    Plan(config=EvaluationConfig("pseudo-perplexity", within_word=True)),
    Plan(config=EvaluationConfig("suffix", suffix_tokens=3)),
    Plan(
        config=EvaluationConfig(
            "unmasking", hidden_share=0.3, decoding=UnmaskingOptions(max_steps=4, top_p=0.9)
        )
    ),
]


def stored(plan):
    """run.json of a plan, written and read."""
    info = RunInfo(
        "a", "now", plan.config, {}, texts=plan.texts(), choices=plan.choices(), limits=plan.limits
    )
    values = json.loads(json.dumps(info.to_dict()))
    config = EvaluationConfig.from_dict(values["config"])
    known = {"texts": values["texts"], "choices": values["choices"]}
    return RunInfo("a", "now", config, {}, limits=Limits(**values["limits"]), **known)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.config.signature)
def test_every_choice_survives_run_json(plan):
    assert Plan.of(stored(plan)) == plan


def test_runs_of_the_page_before_named_the_reference_alone():
    info = stored(Plan())
    choices = {"model": {"reference": "embedded:int8"}, "baseline": {"reference": "embedded"}}
    plan = Plan.of(replace(info, choices=choices))
    assert plan.model == ModelChoice("embedded:int8")
    assert plan.baseline == ModelChoice("embedded")


def test_configs_of_before_hold_the_options_of_all_metrics():
    recipe = {
        "probability": 0.15,
        "mask_share": 0.8,
        "random_share": 0.1,
        "unchanged_share": 0.1,
        "whole_word": False,
    }
    values = {
        "metric": "suffix",
        "recipe": recipe,
        "within_word": False,
        "suffix_tokens": 3,
        "seed": 42,
        "mask_stream": "text",
        "max_tokens": 512,
        "batch_tokens": 1024,
    }
    assert EvaluationConfig.from_dict(values) == EvaluationConfig(
        "suffix", suffix_tokens=3, max_tokens=512, batch_tokens=1024
    )


def test_a_run_made_from_python_does_not_say_how():
    with pytest.raises(DataError, match="it was made from Python"):
        Plan.of(RunInfo("a", "now", EvaluationConfig(), {}))


@pytest.mark.parametrize(("kind", "name"), [("file", "private.txt"), ("folder", "shards")])
def test_a_folder_can_stay_out_of_the_signature(kind, name):
    plan = Plan(source=TextSource(kind, f"/home/ada/{name}"), hide_folders=True)
    assert plan.texts()["signature"].startswith(f"texts:{name}|")
    assert plan.texts()["where"] == f"/home/ada/{name}"


def test_the_folder_one_stands_in_has_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = Plan(source=TextSource("folder", "."), hide_folders=True)
    assert plan.texts()["signature"].startswith(f"texts:{tmp_path.name}|")


@pytest.fixture
def plan(tmp_path):
    texts = tmp_path / "texts.txt"
    lines = ["the cat sat on the mat.", "", *["a dog ran under the old house."] * 6]
    texts.write_text("\n".join(lines), "utf-8")
    source = TextSource("file", str(texts))
    return Plan(ModelChoice("own"), ModelChoice("base"), EvaluationConfig(seed=2), source)


MODELS = {"own": TableModel(seed=1, noise=0.2), "base": TableModel(seed=1)}


def load(choice):
    return MODELS[choice.reference]


def test_a_plan_yields_the_run_then_its_rows_then_its_end(plan, store):
    steps = list(perform(plan, store, load))
    rows = [row for step in steps for row in step.rows]
    assert not steps[0].rows
    assert steps[0].through == 0
    assert any(isinstance(row, EvaluatedText) for row in rows)
    assert len({row.id for row in rows}) == len(rows) == 8
    assert steps[-1].info.state == "done"
    assert steps[-1].through == steps[-1].expected == 8
    assert store.open("latest").summary().to_dict() == steps[-1].info.result


def test_a_closed_run_goes_on_to_the_same_figures(plan, store):
    whole = list(perform(plan, store, load))[-1]
    steps = perform(plan, store, load)
    while not next(steps).rows:
        pass
    steps.close()
    name = store.names()[-1]
    assert store.open(name).info.state == "stopped"
    rest = list(perform_rest(name, store, load))
    assert rest[0].through > 0
    assert rest[-1].info.result == whole.info.result
    (done,) = perform_rest(name, store, load)
    assert done.info.state == "done"


def test_models_that_do_not_compare_leave_no_run(plan, store):
    other = TableModel(seed=1, vocabulary=letter_vocabulary())
    models = {plan.model: MODELS["own"], plan.baseline: other}
    with pytest.raises(OptionError, match="different tokenizers"):
        next(perform(plan, store, models.__getitem__))
    assert store.names() == []
