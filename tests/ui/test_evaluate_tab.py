"""How the Evaluate tab is put together: what a public page offers, what events may hold up."""

import gradio as gr
import pytest
from evaluate_page import workbench

from fillmask_ui.ui import evaluate_controls
from fillmask_ui.ui import evaluate_view as view
from fillmask_ui.ui.app import build_app, launch_options
from fillmask_ui.ui.evaluate_request import PUBLIC_TOKENS, Form
from fillmask_ui.ui.evaluate_view import CHARTS


def controls(tmp_path, *, public):
    session = workbench(tmp_path, public=public).session
    with gr.Blocks():
        return evaluate_controls.build(session)


def test_the_controls_are_the_fields_of_the_form_with_its_defaults(tmp_path):
    made = controls(tmp_path, public=False)
    shown = Form(*(component.value for component in made.members()))
    assert list(evaluate_controls.Controls.__dataclass_fields__) == list(Form.__dataclass_fields__)
    plain = Form(model="table", upload=None, dataset=None, dataset_name=None, revision=None,
                 column=None)  # fmt: skip
    assert shown == plain


def test_numbers_reach_what_checks_them(tmp_path):
    """The components themselves refuse and round nothing."""
    numbers = [c for c in controls(tmp_path, public=False).members() if isinstance(c, gr.Number)]
    assert len(numbers) == 7
    for component in numbers:
        assert [component.preprocess(value) for value in (-1, 1.5)] == [-1, 1.5]


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"samples": -1}, "The number of texts must be a whole number"),
        ({"seed": 1.5}, "The seed must be a whole number, 0 or more; it was 1.5"),
        ({"max_tokens": -1}, "Max tokens must be a whole number"),
        ({"metric": "suffix", "suffix_tokens": 0}, "The number of tokens at the end"),
        ({"mask_probability": -1}, "it was -1"),
    ],
)
def test_a_wrong_number_is_said_with_its_name(tmp_path, choices, said):
    *_, last = view.evaluation(workbench(tmp_path), "anybody", Form(**choices), log=False)
    assert 'role="alert"' in last.notice
    assert said in last.notice
    assert last.busy is False


def test_a_public_page_offers_no_data_sets(tmp_path):
    made = controls(tmp_path, public=True)
    assert [value for _, value in made.where.choices] == ["embedded", "upload"]
    assert ".parquet" not in made.upload.file_types
    assert made.max_tokens.value == PUBLIC_TOKENS
    private = controls(tmp_path, public=False)
    assert [value for _, value in private.where.choices] == ["embedded", "upload", "dataset"]


@pytest.mark.parametrize("metric", ["cross-entropy", "pseudo-perplexity", "suffix", "uniform"])
def test_only_the_options_of_the_metric_are_shown(metric):
    _, *groups = evaluate_controls.shown_for_metric(metric)
    wanted = [metric == name for name in ("cross-entropy", "pseudo-perplexity", "suffix")]
    assert [group.visible for group in groups] == wanted


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FILLMASK_UI_RUNS", str(tmp_path_factory.mktemp("runs")))
        return build_app(workbench(tmp_path_factory.mktemp("none")).session.store, "table")


def test_jobs_do_not_hold_up_explore(page):
    """They wait for one another in a queue of their own, and leave most threads to the rest."""
    jobs = [f for f in page.fns.values() if f.concurrency_id == "evaluate"]
    assert len(jobs) == 2
    threads = launch_options(public=True)["max_threads"]
    assert all(job.concurrency_limit <= threads // 2 for job in jobs)
    others = [f for f in page.fns.values() if f.concurrency_id != "evaluate" and f.queue]
    assert others


def test_no_event_of_the_tab_is_an_endpoint_for_programs(page):
    offered = page.get_api_info()["named_endpoints"]
    assert set(offered) == {"/predict", "/score_candidates", "/models"}


def test_every_chart_has_its_place(page):
    ids = {block.elem_id for block in page.blocks.values() if isinstance(block, gr.Plot)}
    assert {f"plot-{name}" for name in CHARTS} <= ids
