"""A stored run sets the controls: read again, they ask for the same run."""

from dataclasses import replace
from pathlib import Path

import pytest
from evaluate_page import (
    TEXTS,
    arrived,
    begun,
    evaluation_jobs,
    finish,
    form,
    own_page_jobs,
    upload,
)

from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.masking import MaskRecipe
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.runs import Plan, prepare_info
from fillmask_ui.texts import TextSource
from fillmask_ui.ui.evaluate import view
from fillmask_ui.ui.evaluate.evaluate_form import controls_of_run, plan_of
from fillmask_ui.ui.evaluate.evaluation_jobs import Selection


def info_of(plan):
    """run.json of a plan, its config for a model that takes 64 tokens."""
    from table_model import TableModel

    return replace(
        prepare_info(plan.config, TableModel(1), limits=plan.limits),
        name="run1",
        texts=plan.texts(),
        choices=plan.choices(),
    )


def set_by(plan, root, **options):
    made = iter(range(9))

    def fresh_folder():
        folder = root / f"fresh{next(made)}"
        folder.mkdir()
        return folder

    return controls_of_run(info_of(plan), root / "runs", fresh_folder, **options)


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"samples": 0, "shuffle": False, "seed": 7, "max_tokens": 32},
        {"probability": 0.3, "shares": "0.7 0.2 0.1", "mask_stream": "collator"},
        {"whole_word": True},
        {"metric": "pseudo-perplexity", "within_word": True},
        {"metric": "suffix", "suffix_tokens": 3, "pass_below": 7, "risk_below": 11.5},
        {"metric": "uniform", "baseline": "noisy", "model": "table"},
        {"metric": "unmasking", "hidden_share": 0.3, "order": "entropy", "max_steps": 4},
        {"metric": "unmasking", "temperature": 0.5, "top_p": 0.9, "pieces": "fitting", "remask": 1},
        {
            "where": "dataset",
            "dataset": "org/name",
            "dataset_name": "small",
            "split": "train[:9]",
            "revision": "v1",
            "streaming": True,
            "column": "body",
        },
    ],
)
def test_what_a_run_was_made_with_asks_for_it_again(tmp_path, choices):
    plan = plan_of(form(**choices), tmp_path / "runs")
    # What another run left in the controls does not matter.
    other = form(
        metric="suffix", samples=3, baseline="letters", probability=0.9, seed=1, where="upload"
    )
    found = set_by(plan, tmp_path)
    assert found.missing == ()
    assert "Run repeats it" in found.note
    again = plan_of(other | found.values, tmp_path / "runs")
    resolved = replace(plan.config, max_tokens=plan.config.max_tokens or 64)
    assert again == replace(plan, config=resolved)


def test_an_upload_comes_back_under_its_name(tmp_path):
    """The page shows no file outside of its own folders, so it is a copy; the run is the same."""
    choices = {"where": "upload", "upload": upload(tmp_path), "by": "paragraph"}
    plan = plan_of(form(**choices), tmp_path / "runs")
    found = set_by(plan, tmp_path)
    assert Path(found.values["upload"]).name == "texts.txt"
    assert Path(found.values["upload"]).parent == tmp_path / "fresh0"
    again = plan_of(form(**found.values), tmp_path / "runs")
    assert again.source == plan.source
    Path(plan.source.where).unlink()
    gone = set_by(plan, tmp_path)
    assert gone.values["upload"] is None
    assert "texts.txt, is gone: upload it again" in gone.note


def test_pasted_texts_come_back(tmp_path):
    plan = plan_of(form(where="paste", pasted="a cat\n\na dog", by="paragraph"), tmp_path / "runs")
    found = set_by(plan, tmp_path)
    assert found.values["pasted"] == "a cat\n\na dog"
    assert plan_of(form(**found.values), tmp_path / "runs").source == plan.source
    Path(plan.source.where).unlink()
    assert "paste it again" in set_by(plan, tmp_path).note


def test_a_file_of_this_machine_is_named_by_its_path(tmp_path):
    path = upload(tmp_path)
    plan = plan_of(form(where="dataset", dataset=path), tmp_path / "runs")
    assert plan_of(form(**set_by(plan, tmp_path).values), tmp_path / "runs").source == plan.source
    public = set_by(plan, tmp_path, public=True)
    assert (public.values["where"], public.values["upload"]) == ("upload", None)
    Path(path).unlink()
    assert "is gone" in set_by(plan, tmp_path).note


def test_a_folder_of_this_machine_is_named_by_its_path(tmp_path):
    folder = tmp_path / "shards"
    folder.mkdir()
    (folder / "a.txt").write_text("a cat\n")
    plan = plan_of(form(where="dataset", dataset=str(folder)), tmp_path / "runs")
    assert plan_of(form(**set_by(plan, tmp_path).values), tmp_path / "runs").source == plan.source
    public = set_by(plan, tmp_path, public=True)
    assert str(tmp_path) not in public.note
    (folder / "a.txt").unlink()
    folder.rmdir()
    assert "the folder of its texts, shards, is gone" in set_by(plan, tmp_path).note


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"source": TextSource("stdin")}, "came from standard input"),
        ({"source": TextSource(seed=5)}, "drawn with the seed 5"),
        ({"source": TextSource(encoding="latin-1")}, "encoding latin-1"),
        ({"model": ModelChoice("m", dtype="float16")}, "model A was asked for with dtype float16"),
        ({"baseline": ModelChoice("m", runtime="torch")}, "model B was asked for with runtime"),
    ],
)
def test_what_cannot_be_set_is_said(tmp_path, changes, said):
    assert said in set_by(Plan(**changes), tmp_path).note
    assert set_by(Plan(model=ModelChoice(threads=2)), tmp_path).missing == ()


def test_a_run_made_from_python_leaves_the_controls(tmp_path):
    info = replace(info_of(Plan()), choices={})
    found = controls_of_run(info, tmp_path, lambda: tmp_path)
    assert found.values == {}
    assert "stay as they are: this run was made from Python" in found.note


def test_shares_keep_every_digit(tmp_path):
    config = EvaluationConfig(recipe=MaskRecipe(0.15, 0.1234567891, 0.8765432109, 0.0))
    found = set_by(Plan(config=config), tmp_path)
    assert plan_of(form(**found.values), tmp_path).config.metric == config.metric


def test_an_opened_run_sets_the_controls_and_two_compared_do_not(tmp_path):
    page_jobs = own_page_jobs(tmp_path / "runs")
    choices = {"metric": "pseudo-perplexity", "model": "noisy", "max_tokens": 32}
    names = [finish(begun(page_jobs, tmp_path, **choices))[-1].info.name for _ in range(2)]
    page = view.stored(page_jobs, Selection(names[0]))
    assert "Run repeats it" in page.notice
    # Without a change Run makes a run with the same signature.
    again = finish(page_jobs.begin(form(**page.controls.values)))[-1]
    assert again.info.signature == page_jobs.store.open(names[0]).info.signature
    assert view.stored(page_jobs, Selection(*names)).controls is None


def test_a_public_page_hands_an_upload_back(tmp_path):
    all_jobs = evaluation_jobs(tmp_path / "runs", public=True)
    page_jobs = arrived(all_jobs)
    choices = {"samples": 10, "max_tokens": 64, "shuffle": False}
    last = finish(begun(page_jobs, tmp_path, **choices))[-1]
    page = view.stored(page_jobs, Selection(last.info.name))
    path = Path(page.controls.values["upload"])
    assert path.read_text() == "".join(text + "\n" for text in TEXTS)
    page_jobs.clear()
    assert not path.exists()
