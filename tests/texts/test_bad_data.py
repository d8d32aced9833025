"""Data that cannot be used as it is, and data that looks odd and can."""

import gzip
import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fillmask_ui.errors import DataError
from fillmask_ui.texts import TextChoice, open_texts


def read(path, **choices):
    return list(open_texts(TextChoice(str(path), **{"shuffle": False, **choices}).source()))


def texts(path, content, **choices):
    path.write_bytes(content)
    return [example.text for example in read(path, **choices)]


def said(path, content=None, **choices):
    """The message with which reading a file fails."""
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read(path, **choices)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", b""),
        ("a.csv", b""),
        ("a.csv", b"text,label\n"),
        ("a.jsonl", b"\n\n"),
        ("a.json", b"[]"),
        ("a.txt.gz", gzip.compress(b"", mtime=0)),
    ],
)
def test_a_source_that_yields_nothing_is_an_error(tmp_path, shuffle, name, content):
    assert "has no texts" in said(tmp_path / name, content, shuffle=shuffle)


@pytest.mark.parametrize("shuffle", [True, False])
def test_blank_texts_alone_are_an_error_at_the_end_and_some_are_counted(tmp_path, shuffle):
    message = said(tmp_path / "a.txt", b"\n  \n\t\r\n", shuffle=shuffle)
    assert "all 3 texts that were read are blank" in message
    (tmp_path / "a.txt").write_text("one\n\ntwo\n")
    opened = open_texts(TextChoice(str(tmp_path / "a.txt"), shuffle=shuffle).source())
    assert len(list(opened)) == 3
    assert opened.report.blank == 1


GZIP = gzip.compress(b"some text that is long enough\n" * 1000, mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.txt", b"fine\ncaf\xe9\n", "line 2 of"),
        ("a.txt", b"fine\n" + "ab猫".encode()[:-1], "line 2 of"),
        ("a.txt", "text".encode("utf-16"), "--encoding utf-16"),
        ("a.txt", "text".encode("utf-16-le"), "--encoding utf-16"),
        ("a.txt", b"\x7fELF\x02\x01\0\n", "not UTF-8"),
        ("a.txt", GZIP, "not UTF-8"),
        ("a.txt.gz", GZIP[: len(GZIP) // 2], "cannot be read as texts: Compressed file ended"),
        ("a.txt.gz", b"plain text\n", "cannot be read as texts: Not a gzipped file"),
        ("a.txt.gz", GZIP[:20] + b"\xff" * 30, "cannot be read as texts: Error -3"),
        ("a.csv", b"title,body\nx,y\n", "no column 'text'; it has 'title', 'body'"),
        ("a.csv", b"text,text\nx,y\n", "2 columns are called 'text'"),
        ("a.csv", b"Text,TEXT\nx,y\n", "2 columns are called 'text'"),
        ("a.csv", b"n,text\n1,fine\nonly one\n", "line 3: 1 values where the header has 2"),
        ("a.csv", b'n,text\n1,"never closed\n2,x\n', "line 3: "),
        ("a.csv", b'text\n"' + b"x" * 16_000_001, "field larger than field limit"),
        ("a.csv", b"id,text\r1,a\r", "new-line character"),
        ("a.jsonl", b'{"text": "a"}\n\njust words\n', "line 3 cannot be read as texts: "),
        ("a.jsonl", b'{"text": "a"}\n7\n', "line 2: an object"),
        ("a.jsonl", b'{"text": "a"}\n{"body": "b"}\n', "line 2: no column 'text'; it has 'body'"),
        ("a.jsonl", b'{"text": ["a"]}\n', "column 'text' holds list"),
        ("a.jsonl", b"[" * 100_000, "cannot be read as texts"),
        ("a.json", b'[{"text": "a"}, "b"]', "element 2: an object"),
        ("a.json", b'[{"text": "a"}]\n[{"text": "b"}]', "cannot be read as texts: Extra data"),
        ("a.parquet", b"PAR1 and then nothing", "cannot be read as texts: Parquet"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(tmp_path, name, content, what):
    message = said(tmp_path / name, content)
    assert f"{tmp_path / name}" in message
    assert what in message


def test_a_file_that_is_not_there_is_named(tmp_path):
    for name in ("none.txt", "none.parquet", "a" * 300 + ".csv"):
        assert f"{name} cannot be read as texts: " in said(tmp_path / name)


def test_columns_of_parquet_that_hold_no_text(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": [1, 2], "text": ["a", None]}), path)
    assert "column 'n' holds int" in said(path, column="n")
    assert "no column 'x'; it has 'n', 'text'" in said(path, column="x")
    assert [example.text for example in read(path)] == ["a", ""]
    odd = pa.array([b"a cat", b"bad \xff\xfe"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 2, odd.buffers())  # which nobody checks
    pq.write_table(pa.table({"text": text}), path)
    assert "cannot be read as texts: 'utf-8' codec" in said(path)


ROWS = [{"text": "a, [b]"}, {"text": "two\nlines", "n": [1]}, {"text": None}, {"text": "ünï"}]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_json_array_gives_what_the_same_objects_a_line_give(tmp_path, indent, shuffle):
    (tmp_path / "a.json").write_text(json.dumps(ROWS, indent=indent))
    (tmp_path / "b.json").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    one = read(tmp_path / "a.json", shuffle=shuffle)
    assert one == read(tmp_path / "b.json", shuffle=shuffle)
    assert {e.id: e.text for e in one} == {0: "a, [b]", 1: "two\nlines", 2: "", 3: "ünï"}


@pytest.mark.parametrize("name", ["server.log", "corpus", "corpus.gz", "Old.LOG"])
def test_logs_and_files_without_an_ending_are_plain_text(tmp_path, name):
    content = b"one\ntwo, three\n"
    content = gzip.compress(content) if name.endswith(".gz") else content
    assert texts(tmp_path / name, content) == ["one", "two, three"]


@pytest.mark.parametrize(
    ("header", "asked"),
    [("id, Text ", None), ("id,TEXT", "text"), ("text,Body", "body"), ("text, body", "BODY")],
)
def test_a_column_may_differ_by_case_and_spaces(tmp_path, header, asked):
    (tmp_path / "a.csv").write_text(f"{header}\n1,found\n")
    assert [example.text for example in read(tmp_path / "a.csv", column=asked)] == ["found"]
    names = header.split(",")
    pq.write_table(pa.table({names[0]: ["1"], names[1]: ["found"]}), tmp_path / "a.parquet")
    assert [example.text for example in read(tmp_path / "a.parquet", column=asked)] == ["found"]


def test_of_two_columns_the_one_that_is_spelled_so_is_taken(tmp_path):
    assert texts(tmp_path / "a.csv", b"Text,text\nno,yes\n") == ["yes"]


@pytest.mark.parametrize(
    ("missing", "reference"), [("datasets", "org/name"), ("pyarrow.parquet", "rows.parquet")]
)
def test_a_missing_package_is_named_with_its_remedy(tmp_path, missing, reference):
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    code = (
        "import sys\n"
        f"sys.modules[{missing!r}] = None\n"
        "from fillmask_ui.texts import TextChoice, open_texts\n"
        "from fillmask_ui.errors import DataError\n"
        "try:\n"
        f"    open_texts(TextChoice({reference!r}).source())\n"
        "except DataError as error:\n"
        "    print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert f"need the library {missing}" in run.stdout
    assert 'pip install "fillmask-ui[hub]"' in run.stdout


def test_reading_files_loads_no_heavy_library(tmp_path):
    (tmp_path / "a.csv").write_text("text\nhello\n")
    code = (
        "import sys\n"
        "from fillmask_ui.texts import TextChoice, open_texts\n"
        "list(open_texts(TextChoice('a.csv').source()))\n"
        "print({'datasets', 'pyarrow', 'torch', 'transformers'} & set(sys.modules))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert run.stdout.strip() == "set()"
