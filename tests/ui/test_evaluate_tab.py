"""How the Evaluate tab is put together: what a public page offers, what events may hold up."""

from dataclasses import dataclass, field

import gradio as gr
import pytest
from evaluate_page import evaluation_jobs, form, opened_controls, own_page_jobs

from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation import METRICS
from fillmask_ui.evaluation.metrics import Metric
from fillmask_ui.masking import MaskRecipe
from fillmask_ui.options import option
from fillmask_ui.show.charts import CHARTS
from fillmask_ui.ui.evaluate import controls, view
from fillmask_ui.ui.evaluate.evaluate_form import PUBLIC_TOKENS, plan_of
from fillmask_ui.ui.page import build_app, launch_options

OWN_OPTIONS = {
    "cross-entropy": {"probability", "shares", "whole_word", "mask_stream"},
    "pseudo-perplexity": {"within_word"},
    "bits-per-byte": {"within_word"},
    "suffix": {"suffix_tokens"},
    "uniform": set(),
    "unmasking": {
        *("hidden_share", "max_steps", "order", "confidence_temperature", "threshold"),
        *("temperature", "top_k", "top_p", "pieces", "remask"),
    },
}


def test_the_page_opens_with_the_defaults_of_the_configurations():
    made = opened_controls()
    assert {name: control.value for name, control in made.items()} == {
        "where": "embedded",
        "upload": None,
        "pasted": None,
        "dataset": None,
        "dataset_name": None,
        "split": "test",
        "revision": None,
        "streaming": False,
        "column": None,
        "by": "line",
        "metric": "cross-entropy",
        "model": "table",
        "baseline": "",
        "samples": 100,
        "shuffle": True,
        "seed": 42,
        "probability": 0.15,
        "shares": "0.8 0.1 0.1",
        "whole_word": False,
        "mask_stream": "text",
        "within_word": False,
        "suffix_tokens": 8,
        "hidden_share": 0.15,
        "max_steps": 0,
        "order": "top_prob",
        "confidence_temperature": 0.0,
        "threshold": 0,
        "temperature": 0.0,
        "top_k": 0,
        "top_p": 0,
        "pieces": "any",
        "remask": 0,
        "max_tokens": 0,
        "pass_below": 5,
        "risk_below": 10,
        "engine": "local",
        "address": None,
        "workers": 0,
        "threads_per_worker": 0,
    }
    labels = [made[name].label for name in ("samples", "seed", "probability", "max_tokens")]
    assert labels == ["Number of texts", "Seed", "Mask probability", "Max tokens"]


def test_numbers_reach_what_checks_them():
    """The components themselves refuse and round nothing."""
    numbers = [c for c in opened_controls().values() if isinstance(c, gr.Number)]
    assert len(numbers) == 17
    for component in numbers:
        assert [component.preprocess(value) for value in (-1, 1.5)] == [-1, 1.5]


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"samples": -1}, "The number of texts must be a whole number"),
        ({"seed": 1.5}, "The seed must be a whole number, 0 or more; it was 1.5"),
        ({"max_tokens": -1}, "Max tokens must be a whole number"),
        ({"metric": "suffix", "suffix_tokens": 0}, "The number of tokens at the end"),
        ({"metric": "unmasking", "hidden_share": 0}, "above 0 and at most 1"),
        ({"metric": "unmasking", "max_steps": -1}, "The max steps must be a whole number, 1 or"),
        ({"metric": "unmasking", "top_k": 3, "top_p": 0.5}, "both given"),
        ({"probability": -1}, "it was -1"),
    ],
)
def test_a_wrong_number_is_said_with_its_name(tmp_path, choices, said):
    page_jobs = own_page_jobs(tmp_path)
    *_, last = view.job_updates(page_jobs, lambda: page_jobs.begin(form(**choices)))
    assert 'role="alert"' in last.notice
    assert said in last.notice
    assert last.busy is False


def test_a_public_page_offers_no_data_sets():
    made = opened_controls(public=True)
    assert [value for _, value in made["where"].choices] == ["embedded", "paste", "upload"]
    assert ".parquet" not in made["upload"].file_types
    assert made["max_tokens"].value == PUBLIC_TOKENS
    private = opened_controls()
    places = ["embedded", "paste", "upload", "dataset"]
    assert [value for _, value in private["where"].choices] == places


@pytest.mark.parametrize("metric", list(METRICS))
def test_only_the_options_of_the_metric_are_shown(metric):
    names = sorted(set.union(*OWN_OPTIONS.values()))
    note, *updates = controls.shown_for_metric(metric, names)
    assert note["info"] == METRICS[metric].note
    shown = {name for name, update in zip(names, updates, strict=True) if update["visible"]}
    assert shown == OWN_OPTIONS[metric]
    if metric == "cross-entropy":  # as the page opens
        opened = opened_controls()
        assert {name for name in names if opened[name].visible} == shown


def test_a_new_metric_has_its_controls_by_its_row_alone(tmp_path, monkeypatch):
    @dataclass(frozen=True)
    class Middle(Metric):
        name = "middle"
        label = "Middle of the text"
        note = "Tokens in the middle are hidden."
        hides = "the tokens in the middle"
        figure_label = "Mean loss, middle hidden"

        recipe: MaskRecipe = field(default_factory=MaskRecipe)
        middle_tokens: int = option(4, "How many tokens.", label="Tokens in the middle", least=2)

        def hide(self, encoding, vocabulary, rng):
            raise NotImplementedError

    monkeypatch.setitem(METRICS, "middle", Middle)
    # It knows the metrics of the time when it was imported.
    monkeypatch.setattr("fillmask_ui.evaluation.evaluation_config.check_options", lambda _: None)
    with gr.Blocks():
        made = controls.build(evaluation_jobs(tmp_path).session)
    assert ("Middle of the text", "middle") in made["metric"].choices
    own = made["middle_tokens"]
    assert (own.value, own.label, own.info) == (4, "Tokens in the middle", "How many tokens.")
    assert not own.visible
    values = {name: control.value for name, control in made.items()}
    asked = values | {"metric": "middle", "middle_tokens": 6, "probability": 0.5}
    metric = plan_of(asked, tmp_path).config.metric
    assert metric == Middle(recipe=MaskRecipe(0.5), middle_tokens=6)
    with pytest.raises(OptionError, match="the tokens in the middle must be a whole number, 2"):
        plan_of(asked | {"middle_tokens": 1}, tmp_path)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FILLMASK_UI_RUNS", str(tmp_path_factory.mktemp("runs")))
        return build_app(evaluation_jobs(tmp_path_factory.mktemp("none")).session.store, "table")


def test_jobs_do_not_hold_up_explore(page):
    """They wait for one another in a queue of their own, and leave most threads to the rest."""
    jobs = [f for f in page.fns.values() if f.concurrency_id == "evaluate"]
    assert len(jobs) == 3
    threads = launch_options(public=True)["max_threads"]
    assert all(job.concurrency_limit <= threads // 2 for job in jobs)
    others = [f for f in page.fns.values() if f.concurrency_id != "evaluate" and f.queue]
    assert others


def test_no_event_of_the_tab_is_an_endpoint_for_programs(page):
    offered = page.get_api_info()["named_endpoints"]
    assert set(offered) == {"/predict", "/score_candidates", "/compare", "/models"}


def test_every_chart_has_its_place(page):
    ids = {block.elem_id for block in page.blocks.values() if isinstance(block, gr.Plot)}
    assert {f"plot-{name}" for name in CHARTS} <= ids
