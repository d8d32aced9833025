"""Folders of files as one stream of texts, and which folders are data sets instead.

Streams are checked against one file with the same texts, read by the code for files.
"""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_files import LAYOUTS, content

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.texts import TextChoice, TextSource, open_texts
from fillmask_ui.texts.reading import file_texts, files_of
from fillmask_ui.texts.rows import Notes


def fill(folder, files, layout):
    """Write lists of texts as files a, b, ... of a folder."""
    folder.mkdir(exist_ok=True)
    for number, texts in enumerate(files):
        (folder / f"{chr(97 + number)}.{layout}").write_bytes(content(texts, layout))
    return folder


def read(path, **choices):
    texts = open_texts(TextChoice(str(path), **choices).source())
    examples = list(texts)
    return examples, texts.report.available, texts.report.blank, texts.report.notes


words = st.text(st.sampled_from("ab é猫,\x0c"), max_size=4)
some_files = st.lists(st.lists(words, max_size=4), min_size=1, max_size=5)


def outcome(path, **choices):
    """What `read` gives, or in what words it fails."""
    try:
        return read(path, **choices)
    except DataError as error:  # no texts, or none that is not blank
        return str(error).removeprefix(str(path))


@given(some_files, st.sampled_from(LAYOUTS), st.integers(1, 20))
@settings(deadline=None, max_examples=100)
def test_a_folder_gives_what_one_file_of_all_its_texts_gives(files, layout, samples):
    with tempfile.TemporaryDirectory() as scratch:
        folder = fill(Path(scratch) / "shards", files, layout)
        together = Path(scratch) / f"all.{layout}"
        together.write_bytes(content([text for texts in files for text in texts], layout))
        for choices in ({}, {"shuffle": False}, {"seed": 7, "samples": samples}):
            assert outcome(folder, **choices) == outcome(together, **choices)
        parts = files_of(TextSource("folder", str(folder), shuffle=False, samples=samples))
        assert [[text for (text,) in file_texts(part, Notes())] for part in parts] == files


def test_options_hold_for_every_file(tmp_path):
    for name in ("a.txt", "b.text"):
        (tmp_path / name).write_text("café\nau lait\n\nnoir", encoding="latin-1")
    choices = {"encoding": "latin-1", "by": "paragraph", "shuffle": False}
    assert [(e.id, e.text) for e in read(tmp_path, **choices)[0]] == [
        (0, "café\nau lait"),
        (1, "noir"),
        (2, "café\nau lait"),
        (3, "noir"),
    ]
    (tmp_path / "a.txt").write_text('{"body": "one", "text": "x"}')
    (tmp_path / "b.text").write_text('{"body": "two"}')
    examples = read(tmp_path, format="jsonl", column="body", shuffle=False)[0]
    assert [example.text for example in examples] == ["one", "two"]


def test_other_files_hidden_ones_and_folders_are_left_out(tmp_path):
    fill(tmp_path, [["one"], ["two"]], "txt")
    for name in (".hidden.txt", "_SUCCESS", "LICENSE", "picture.png", "README.md"):
        (tmp_path / name).write_text("not this")
    fill(tmp_path / "older.txt", [["nor this"]], "txt")
    assert [e.text for e in read(tmp_path, shuffle=False)[0]] == ["one", "two"]


def test_texts_in_folders_inside_alone_are_one_stream_in_the_order_of_their_paths(tmp_path):
    for name in ("b/c/d.txt", "a/z.txt", "a/.hidden/e.txt", "b/c.txt", "a/b.txt", ".f/g.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(f"{name}\n")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    names = ["a/b.txt", "a/z.txt", "b/c.txt"]
    assert [(e.id, e.text) for e in read(tmp_path, shuffle=False)[0]] == list(enumerate(names))
    parts = files_of(TextChoice(str(tmp_path), shuffle=False).source())
    assert [Path(part.where).relative_to(tmp_path).as_posix() for part in parts] == names
    assert {e.text for e in read(tmp_path)[0]} == set(names)


def said(folder, **choices):
    with pytest.raises((DataError, OptionError)) as caught:
        read(folder, **choices)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_folder_without_texts_says_what_is_wanted(tmp_path):
    assert "has no file that ends in .txt, .csv" in said(tmp_path)
    (tmp_path / "rows.json").write_text("{}")
    assert "name the split (--split train)" in said(tmp_path)
    fill(tmp_path, [[], []], "csv")
    for shuffle in (True, False):
        assert f"{tmp_path} is empty: it has no texts" in said(tmp_path, shuffle=shuffle)
    with pytest.raises(DataError, match="gone cannot be read as texts: No such file"):
        open_texts(TextSource("folder", str(tmp_path / "gone")))


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["a.txt", "b.txt"], "folder"),
        (["part-00000-of-00002.parquet"], "folder"),
        (["contest.txt", "latest.txt", "a.txt"], "folder"),
        (["a.txt", "older/b.txt"], "folder"),
        ([], "folder"),
        (["test-00000-of-00002.parquet"], "dataset"),
        (["mine_train.csv", "mine_test.csv"], "dataset"),
        (["a.txt", "train/b.txt"], "dataset"),
        (["data/test-00000-of-00001.parquet"], "dataset"),
        (["a/b/test.csv"], "dataset"),
        (["data/a.arrow"], "dataset"),
        (["a.parquet", "dataset_info.json"], "dataset"),
    ],
)
def test_a_folder_is_a_data_set_where_it_is_laid_out_as_one(tmp_path, names, kind):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("a text\n")
    assert TextChoice(str(tmp_path)).source().kind == kind
    for fetched in ({"split": "test"}, {"dataset_name": "a"}, {"revision": "v1"}):
        assert TextChoice(str(tmp_path), **fetched).source().kind == "dataset"
    assert TextChoice(str(tmp_path), streaming=True).source().kind == "dataset"
    for typed in ({"by": "line"}, {"format": "csv"}, {"encoding": "utf-8"}):
        assert TextChoice(str(tmp_path), **typed).source().kind == "folder"


@pytest.mark.parametrize(
    ("card", "kind"),
    [
        ("---\nlicense: mit\nconfigs:\n- config_name: small\n---\n# Data\n", "dataset"),
        ("---\ndataset_info:\n  features: []\n---\n", "dataset"),
        ("---\nlicense: mit\n---\nconfigs:\n", "folder"),
        ("# Notes\n---\nconfigs:\n", "folder"),
    ],
)
def test_a_card_that_names_the_files_makes_a_data_set(tmp_path, card, kind):
    fill(tmp_path, [["one"]], "txt")
    (tmp_path / "README.md").write_text(card)
    assert TextChoice(str(tmp_path)).source().kind == kind


def test_names_of_splits_are_those_of_the_library(tmp_path):
    from datasets.data_files import get_data_patterns

    for name in ("eval-1", "dev", "a.val.b", "retest", "test2", "testing_a", "TEST", "tests", "x"):
        folder = fill(tmp_path / name, [], "txt")
        (folder / f"{name}.txt").write_text("a text\n")
        theirs = get_data_patterns(str(folder))
        split = theirs != {"train": ["**"]}
        assert (TextChoice(str(folder)).source().kind == "dataset") == split, (name, theirs)
