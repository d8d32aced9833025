"""The controls of the Evaluate tab, read: a plan, or what to change; set again by a stored run."""

import gzip
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from evaluate_page import form, upload, uploaded
from table_model import TableModel

from fillmask_ui.errors import FillmaskError
from fillmask_ui.runs import RunStore, prepare_info
from fillmask_ui.texts import TextChoice, TextSource, open_texts
from fillmask_ui.ui.evaluate.evaluate_form import (
    PUBLIC_TEXTS,
    PUBLIC_TOKENS,
    controls_of_run,
    plan_of,
)
from fillmask_ui.ui.evaluate.uploads import (
    PUBLIC_BYTES,
    PUBLIC_ROWS,
    drop_upload,
    pasted_file,
    pasted_text,
)


def test_an_upload_is_kept_beside_the_runs_under_a_name_of_its_contents(tmp_path):
    plan = plan_of(uploaded(tmp_path), tmp_path / "runs")
    again = plan_of(uploaded(tmp_path), tmp_path / "runs")
    assert plan == again
    (tmp_path / "texts.txt").unlink()  # the browser's copy is deleted after a while
    with open_texts(plan.source) as texts:
        assert sum(1 for _ in texts) == 60
    (tmp_path / "other").mkdir()
    path = upload(tmp_path / "other", ["a cat"])
    second_plan = plan_of(uploaded(tmp_path, upload=path), tmp_path / "runs")
    assert second_plan.source.where != plan.source.where
    assert str(tmp_path) not in str(plan.texts()["signature"])


def test_pasted_texts_are_kept_like_an_upload(tmp_path):
    values = form(where="paste", pasted="a cat\nthe dog", column="left over", samples=0)
    plan = plan_of(values, tmp_path / "runs")
    assert plan == plan_of(values, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()  # before the job has its turn
    pasted_file(values["pasted"], tmp_path / "runs", write=True)
    with open_texts(plan.source) as texts:
        assert sorted(text.text for text in texts) == ["a cat", "the dog"]
    assert str(plan.texts()["signature"]).endswith("-pasted.txt|samples:all|shuffle:42")
    assert pasted_text(plan.source.where) == "a cat\nthe dog"
    second_plan = plan_of(values | {"pasted": "a dog"}, tmp_path / "runs")
    assert second_plan.source.where != plan.source.where
    pasted_file("a dog", tmp_path / "runs", write=True)
    drop_upload(plan.texts(), RunStore(tmp_path / "runs"))
    assert pasted_text(second_plan.source.where) == "a dog"
    with pytest.raises(FillmaskError, match="paste it again"):
        pasted_text(plan.source.where)
    # A file that was no upload is never removed.
    path = upload(tmp_path)
    assert pasted_text(path) is None
    drop_upload(asdict(TextSource("file", path)), RunStore(tmp_path / "runs"))
    assert Path(path).exists()


def public_upload(folder, name, content):
    (folder / name).write_bytes(content)
    values = form(where="upload", upload=str(folder / name), samples=10, max_tokens=PUBLIC_TOKENS)
    return plan_of(values, folder / "runs", public=True)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("many.txt.gz", gzip.compress(b"a\n" * 3_000_000, 1), f"at most {PUBLIC_ROWS:,} lines"),
        ("long.txt.gz", gzip.compress(bytes(PUBLIC_BYTES + 1), 1), "20 MB of text, decompressed"),
        ("cut.txt.gz", gzip.compress(b"a cat\n" * 99, mtime=0)[:-9], "cannot be read as texts"),
        ("texts.parquet", b"PAR1", "reads no parquet"),
        ("texts.docx", b"PK", "unknown kind of file"),
    ],
)
def test_an_upload_that_is_too_much_for_a_public_page_is_refused(tmp_path, name, content, message):
    with pytest.raises(FillmaskError, match=message) as error:
        public_upload(tmp_path, name, content)
    assert str(tmp_path) not in str(error.value)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"samples": PUBLIC_TEXTS + 1}, f"at most {PUBLIC_TEXTS} texts"),
        ({"samples": 0}, "all were asked for"),
        ({"max_tokens": 0}, f"set max tokens to {PUBLIC_TOKENS}"),
        ({"where": "dataset", "dataset": "/etc"}, "fetches no data sets"),
        ({"where": "upload", "upload": "/etc"}, "."),
        (
            {"where": "paste", "pasted": "a\n" * (PUBLIC_ROWS + 1)},
            f"{PUBLIC_ROWS:,} lines.*pasted",
        ),
    ],
)
def test_a_public_page_says_its_limits(tmp_path, choices, message):
    allowed = {"samples": 10, "max_tokens": PUBLIC_TOKENS}
    assert plan_of(form(**allowed), tmp_path, public=True).source.samples == 10
    with pytest.raises(FillmaskError, match=message):
        plan_of(form(**allowed | choices), tmp_path, public=True)


def test_both_models_run_on_the_device_and_a_public_page_offers_none(tmp_path):
    values = form(device=" npu ", provider_options="a=1\n\nb=2", baseline="noisy", samples=10)
    plan = plan_of(values, tmp_path)
    for choice in (plan.model, plan.baseline):
        assert (choice.device, choice.provider_options) == ("npu", ("a=1", "b=2"))
    public = plan_of(values | {"max_tokens": PUBLIC_TOKENS}, tmp_path, public=True)
    assert public.model.device is public.baseline.device is None
    assert public.model.provider_options == public.baseline.provider_options == ()


def info_of(plan):
    """run.json of a plan, its config for a model that takes 64 tokens."""
    info = prepare_info(plan.config, TableModel(1), limits=plan.limits)
    return replace(info, name="run1", texts=plan.texts(), choices=plan.choices())


def set_by(plan, root, **options):
    numbers = iter(range(9))

    def fresh_folder():
        folder = root / f"fresh{next(numbers)}"
        folder.mkdir()
        return folder

    return controls_of_run(info_of(plan), root / "runs", fresh_folder, **options)


@pytest.mark.parametrize(
    "choices",
    [
        {"samples": 0, "shuffle": False, "seed": 7, "max_tokens": 32},
        {"probability": 0.3, "shares": "0.7 0.2 0.1", "mask_stream": "collator"},
        {"random_from": "unigram"},
        {"metric": "pseudo-perplexity", "within_word": True, "baseline": "noisy", "model": "table"},
        {"metric": "suffix", "suffix_tokens": 3, "pass_below": 7, "risk_below": 11.5},
        {"where": "dataset", "dataset": "org/name", "split": "train[:9]", "column": "body"},
        {"where": "dataset", "dataset": "o/n", "dataset_name": "small", "streaming": True},
        {"device": "qnn", "provider_options": "a=1\n b=2 \n", "baseline": "noisy"},
    ],
)
def test_what_a_run_was_made_with_asks_for_it_again(tmp_path, choices):
    plan = plan_of(form(**choices), tmp_path / "runs")
    # What another run left in the controls does not matter.
    changed = form(metric="suffix", samples=3, baseline="letters", probability=0.9, where="upload")
    controls, note = set_by(plan, tmp_path)
    assert note == ""
    again = plan_of(changed | controls, tmp_path / "runs")
    resolved = replace(plan.config, max_tokens=plan.config.max_tokens or 64)
    assert again == replace(plan, config=resolved)


def test_an_upload_comes_back_under_its_name(tmp_path):
    """The page shows no file outside of its own folders, so it is a copy; the run is the same."""
    choices = {"where": "upload", "upload": upload(tmp_path), "by": "paragraph"}
    plan = plan_of(form(**choices), tmp_path / "runs")
    controls, _ = set_by(plan, tmp_path)
    assert Path(controls["upload"]).name == "texts.txt"
    assert Path(controls["upload"]).parent == tmp_path / "fresh0"
    again = plan_of(form(**controls), tmp_path / "runs")
    assert again.source == plan.source
    Path(plan.source.where).unlink()
    gone, note = set_by(plan, tmp_path)
    assert gone["upload"] is None
    assert "texts.txt, is gone: upload it again" in note


@pytest.mark.parametrize(
    ("quoting", "texts"), [("none", ['"One.', 'Two."']), ("", ["One.\n2~Two."])]
)
def test_an_upload_is_read_as_its_boxes_say_and_they_come_back(tmp_path, quoting, texts):
    path = tmp_path / "rows.csv"
    path.write_text('id~text\n1~"One.\n2~Two."\n')
    boxes = {"delimiter": "~", "quoting": quoting, "field": ""}
    values = form(where="upload", upload=str(path), shuffle=False, **boxes)
    plan = plan_of(values, tmp_path / "runs")
    with open_texts(plan.source) as opened:
        assert [example.text for example in opened] == texts
    controls, note = set_by(plan, tmp_path)
    assert boxes.items() <= controls.items()
    assert note == ""
    assert plan_of(form(**controls), tmp_path / "runs").source == plan.source


def test_the_key_of_an_upload_and_what_the_page_has_no_box_for(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text('{"data": [{"text": "One."}]}')
    plan = plan_of(form(where="upload", upload=str(path), field="data"), tmp_path / "runs")
    assert plan.source.field == "data"
    source = TextChoice(str(path), field="data").source()
    _, note = set_by(replace(plan, source=source), tmp_path)
    assert "its texts were read with the field data" in note
