"""The controls of the Evaluate tab, read: a plan, or a message that says what to change."""

import gzip
import math

import pytest
from evaluate_page import form, upload, uploaded

from fillmask_ui.errors import FillmaskError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.masking import MaskRecipe
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.runs import RunStore
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.ui.evaluate.evaluate_form import (
    PUBLIC_TEXTS,
    PUBLIC_TEXTS_ONE_BY_ONE,
    PUBLIC_TOKENS,
    plan_of,
)
from fillmask_ui.ui.evaluate.uploads import PUBLIC_BYTES, PUBLIC_ROWS, drop_upload, pasted_text
from fillmask_ui.unmasking import UnmaskingOptions


def test_the_page_as_it_opens_measures_embedded_texts_by_cross_entropy(tmp_path):
    plan = plan_of(form(), tmp_path)
    assert plan.source == TextSource(samples=100, seed=42)
    assert plan.config == EvaluationConfig()
    assert (plan.model, plan.baseline) == (ModelChoice("embedded"), None)
    assert str(plan.texts()["signature"]) == "texts:embedded|samples:100|shuffle:42"
    assert plan.choices() == {"model": ModelChoice("embedded").to_dict(), "baseline": None}


def test_boxes_that_nobody_touched_may_hold_nothing(tmp_path):
    empty = form(column=None, dataset=None, dataset_name=None, revision=None, model=None)
    assert plan_of(empty, tmp_path) == plan_of(form(), tmp_path)


def test_options_reach_the_config(tmp_path):
    plan = plan_of(
        form(
            seed=7,
            probability=0.3,
            shares="1, 0 0",
            max_tokens=64,
            samples=0,
            shuffle=False,
            pass_below=1,
            risk_below=2,
        ),
        tmp_path,
    )
    assert plan.config.metric.recipe == MaskRecipe(0.3, 1.0, 0.0, 0.0)
    assert (plan.config.seed, plan.config.max_tokens) == (7, 64)
    assert (plan.source.samples, plan.source.shuffle) == (None, False)
    assert (plan.limits.pass_below, plan.limits.risk_below) == (0.01, 0.02)


@pytest.mark.parametrize(
    ("metric", "wanted"),
    [
        ("pseudo-perplexity", {"within_word": True}),
        ("suffix", {"suffix_tokens": 3}),
        ("uniform", {}),
        ("unmasking", {"hidden_share": 0.3, "decoding": UnmaskingOptions(top_k=4)}),
    ],
)
def test_a_metric_takes_its_own_options_and_leaves_those_of_others(tmp_path, metric, wanted):
    choices = form(
        metric=metric,
        within_word=True,
        suffix_tokens=3,
        probability=0.5,
        hidden_share=0.3,
        top_k=4,
    )
    config = plan_of(choices, tmp_path).config
    assert config == EvaluationConfig(metric, **wanted)


def test_whole_words_are_shown_as_masks(tmp_path):
    config = plan_of(form(whole_word=True), tmp_path).config
    assert config.metric.recipe == MaskRecipe(whole_word=True)


def test_an_upload_is_kept_beside_the_runs_under_a_name_of_its_contents(tmp_path):
    plan = plan_of(uploaded(tmp_path), tmp_path / "runs")
    again = plan_of(uploaded(tmp_path), tmp_path / "runs")
    assert plan == again
    (tmp_path / "texts.txt").unlink()  # the browser's copy is deleted after a while
    with open_texts(TextSource.from_dict(plan.texts())) as texts:
        assert sum(1 for _ in texts) == 60
    (tmp_path / "other").mkdir()
    own = upload(tmp_path / "other", ["a cat"])
    other = plan_of(uploaded(tmp_path, upload=own), tmp_path / "runs")
    assert other.source.where != plan.source.where
    assert str(tmp_path) not in str(plan.texts()["signature"])


def test_a_kept_upload_goes_unless_a_job_still_reads_it(tmp_path):
    plan = plan_of(uploaded(tmp_path), tmp_path / "runs")
    kept, store = tmp_path / "runs" / "uploads", RunStore(tmp_path / "runs")
    drop_upload(plan.texts(), store, used=[plan.source.where])
    assert len(list(kept.iterdir())) == 1
    drop_upload(plan.texts(), store)
    assert not list(kept.iterdir())


def test_pasted_texts_are_kept_like_an_upload(tmp_path):
    asked = form(where="paste", pasted="a cat\nthe dog", column="left over", samples=0)
    plan = plan_of(asked, tmp_path / "runs")
    assert plan == plan_of(asked, tmp_path / "runs")
    with open_texts(TextSource.from_dict(plan.texts())) as texts:
        assert sorted(text.text for text in texts) == ["a cat", "the dog"]
    assert str(plan.texts()["signature"]).endswith("-pasted.txt|samples:all|shuffle:42")
    assert pasted_text(plan.source.where) == "a cat\nthe dog"
    other = plan_of(asked | {"pasted": "a dog"}, tmp_path / "runs")
    assert other.source.where != plan.source.where
    drop_upload(plan.texts(), RunStore(tmp_path / "runs"))
    assert pasted_text(other.source.where) == "a dog"
    with pytest.raises(FillmaskError, match="paste it again"):
        pasted_text(plan.source.where)
    assert pasted_text(upload(tmp_path)) is None


def test_pasted_paragraphs_are_texts_where_that_is_asked_for(tmp_path):
    asked = form(where="paste", pasted="a cat\nthe dog\n\na bird", by="paragraph", shuffle=False)
    with open_texts(plan_of(asked, tmp_path).source) as texts:
        assert [text.text for text in texts] == ["a cat\nthe dog", "a bird"]


def test_a_public_page_takes_pasted_texts_within_its_limits(tmp_path):
    asked = form(where="paste", pasted="a cat", samples=10, max_tokens=PUBLIC_TOKENS)
    assert plan_of(asked, tmp_path / "runs", public=True).source.kind == "file"
    with pytest.raises(FillmaskError, match=f"{PUBLIC_ROWS:,} lines.* what was pasted has more"):
        plan_of(asked | {"pasted": "a\n" * (PUBLIC_ROWS + 1)}, tmp_path / "many", public=True)
    assert not (tmp_path / "many").exists()


def test_a_file_that_was_no_upload_is_never_removed(tmp_path):
    path = upload(tmp_path)
    drop_upload(TextSource("file", path).to_dict(), RunStore(tmp_path / "runs"))
    assert (tmp_path / "texts.txt").exists()


def public_upload(folder, name, content):
    (folder / name).write_bytes(content)
    asked = form(where="upload", upload=str(folder / name), samples=10, max_tokens=PUBLIC_TOKENS)
    return plan_of(asked, folder / "runs", public=True)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "many.txt.gz",
            gzip.compress(b"a\n" * 3_000_000, 1, mtime=0),
            f"at most {PUBLIC_ROWS:,} lines",
        ),
        ("many.txt", b"a\n" * (PUBLIC_ROWS + 1), "upload a part of it"),
        (
            "long.txt.gz",
            gzip.compress(bytes(PUBLIC_BYTES + 1), 1, mtime=0),
            "20 MB of text, decompressed",
        ),
        ("cut.txt.gz", gzip.compress(b"a cat\n" * 99, mtime=0)[:-9], "cannot be read as texts"),
        ("plain.txt.gz", b"a cat\n", "plain.txt.gz cannot be read as texts"),
        ("texts.parquet", b"PAR1", "reads no parquet"),
        ("texts.docx", b"PK", "unknown kind of file"),
    ],
)
def test_an_upload_that_is_too_much_for_a_public_page_is_refused(tmp_path, name, content, said):
    with pytest.raises(FillmaskError, match=said) as error:
        public_upload(tmp_path, name, content)
    assert str(tmp_path) not in str(error.value)
    assert not (tmp_path / "runs").exists()


def test_an_upload_may_be_as_large_as_a_public_page_says(tmp_path):
    content = gzip.compress(b"a\n" * PUBLIC_ROWS, 1, mtime=0)
    plan = public_upload(tmp_path, "most.txt.gz", content)
    with open_texts(plan.source) as texts:
        assert texts.report.available == PUBLIC_ROWS


@pytest.mark.parametrize(
    ("name", "by", "wanted"),
    [("a.txt", "paragraph", "paragraph"), ("a.jsonl", "paragraph", "line")],
)
def test_only_plain_text_has_paragraphs(tmp_path, name, by, wanted):
    choices = uploaded(tmp_path, upload=upload(tmp_path, name=name), by=by)
    assert plan_of(choices, tmp_path / "runs").source.by == wanted


def test_a_data_set_is_named_with_its_choices(tmp_path):
    source = plan_of(
        form(
            where="dataset",
            dataset=" org/name ",
            dataset_name="small",
            split="train",
            revision="main",
            streaming=True,
            column="body",
        ),
        tmp_path,
    ).source
    assert source == TextSource(
        kind="dataset",
        where="org/name",
        config="small",
        split="train",
        revision="main",
        streaming=True,
        column="body",
        samples=100,
    )


def test_a_file_of_this_machine_can_be_named_as_a_data_set(tmp_path):
    path = upload(tmp_path)
    choices = form(where="dataset", dataset=path, by="paragraph")
    source = plan_of(choices, tmp_path / "runs").source
    assert (source.kind, source.where, source.by) == ("file", path, "paragraph")


@pytest.mark.parametrize(("name", "by"), [("a.txt", "paragraph"), ("a.csv", "line")])
def test_a_folder_of_this_machine_can_be_named_as_a_data_set(tmp_path, name, by):
    folder = tmp_path / "shards"
    folder.mkdir()
    (folder / name).write_text("text\na cat\n")
    choices = form(where="dataset", dataset=str(folder), by="paragraph")
    source = plan_of(choices, tmp_path / "runs").source
    assert (source.kind, source.where, source.by) == ("folder", str(folder), by)
    for fetched in ({"split": "train"}, {"streaming": True}, {"dataset_name": "small"}):
        source = plan_of(form(**{**choices, **fetched, "by": "line"}), tmp_path / "runs").source
        assert source.kind == "dataset"
    (folder / name).unlink()
    with pytest.raises(FillmaskError, match=r"has no file that ends in \.txt"):
        plan_of(choices, tmp_path / "runs")


def test_a_public_page_names_no_folder_by_any_way(tmp_path):
    (tmp_path / "a.txt").write_text("secret\n")
    allowed = {"samples": 10, "max_tokens": PUBLIC_TOKENS}
    for where in (
        {"where": "dataset", "dataset": str(tmp_path)},
        uploaded(tmp_path, upload=str(tmp_path)),
    ):
        with pytest.raises(FillmaskError):
            plan_of(form(**{**where, **allowed}), tmp_path / "runs", public=True)


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"probability": 0}, "above 0"),
        ({"probability": 2}, "it was 2"),
        ({"probability": None}, "mask probability is missing"),
        ({"shares": "0.8 0.1"}, "three numbers"),
        ({"shares": "a b c"}, "three numbers"),
        ({"shares": "0.8 0.1 0.2"}, "add up to 1"),
        ({"samples": -1}, "number of texts must be a whole number"),
        ({"samples": 1.5}, "it was 1.5"),
        ({"samples": math.inf}, "it was inf"),
        ({"seed": None}, "seed is missing"),
        ({"seed": 1.5}, "the seed must be a whole number"),
        ({"max_tokens": 2}, "at least 3"),
        ({"pass_below": 10, "risk_below": 5}, "must lie below"),
        ({"metric": "suffix", "suffix_tokens": 0}, "tokens at the end"),
        ({"metric": "<b>"}, "unknown metric"),
        ({"where": "upload"}, "no file was uploaded"),
        ({"where": "paste", "pasted": " \n"}, "no text was pasted"),
        ({"where": "paste", "pasted": None}, "no text was pasted"),
        ({"where": "upload", "upload": "/nowhere/x.txt"}, "upload it again"),
        ({"where": "dataset"}, "no data set was named"),
        ({"where": "dataset", "dataset": "-"}, "no data set was named"),
        ({"where": "elsewhere"}, "unknown place"),
        ({"column": "output=x"}, "input_column"),
    ],
)
def test_what_makes_no_sense_is_said(tmp_path, choices, said):
    with pytest.raises(FillmaskError, match=said):
        plan_of(form(**choices), tmp_path)


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"samples": PUBLIC_TEXTS + 1}, f"at most {PUBLIC_TEXTS} texts"),
        ({"samples": 0}, "all were asked for"),
        (
            {"metric": "pseudo-perplexity", "samples": PUBLIC_TEXTS_ONE_BY_ONE + 1},
            f"at most {PUBLIC_TEXTS_ONE_BY_ONE} texts by pseudo-perplexity",
        ),
        (
            {"metric": "unmasking", "samples": PUBLIC_TEXTS_ONE_BY_ONE + 1},
            f"at most {PUBLIC_TEXTS_ONE_BY_ONE} texts by unmasking",
        ),
        ({"max_tokens": 0}, f"set max tokens to {PUBLIC_TOKENS}"),
        ({"max_tokens": PUBLIC_TOKENS + 1}, f"{PUBLIC_TOKENS} tokens or fewer"),
        ({"where": "dataset", "dataset": "/etc/passwd"}, "fetches no data sets"),
        ({"where": "dataset", "dataset": "org/name"}, "fetches no data sets"),
    ],
)
def test_a_public_page_says_its_limits(tmp_path, choices, said):
    allowed = {"samples": 10, "max_tokens": PUBLIC_TOKENS}
    assert plan_of(form(**allowed), tmp_path, public=True).source.samples == 10
    with pytest.raises(FillmaskError, match=said):
        plan_of(form(**allowed | choices), tmp_path, public=True)
