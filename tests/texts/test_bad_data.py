"""Data that cannot be used is refused with its place, and packages are named that are missing."""

import gzip
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from text_files import read

from fillmask_ui.errors import DataError, FillmaskError
from fillmask_ui.texts import TextChoice, open_texts

GZIP = gzip.compress(b"some text that is long enough\n" * 1000, mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.csv", b"text,label\n", "has no texts"),
        ("a.jsonl", b"\n\n", "has no texts"),
        ("a.json", b"[]", "has no texts"),
        ("a.txt.gz", gzip.compress(b"", mtime=0), "has no texts"),
        ("a.txt", b"\n  \n\t\r\n", "all 3 texts that were read are blank"),
        ("a.txt", b"fine\n" + "ab猫".encode()[:-1], "line 2 of"),
        ("a.txt", "text".encode("utf-16-le"), "--encoding utf-16"),
        ("a.txt.gz", b"plain text\n", "cannot be read as texts: Not a gzipped file"),
        ("a.txt.gz", GZIP[:20] + b"\xff" * 30, "cannot be read as texts: Error -3"),
        ("a.csv", b"Text,TEXT\nx,y\n", "2 columns are called 'text'"),
        ("a.csv", b'n,text\n1,"never closed\n2,x\n', "line 3: "),
        ("a.csv", b'text\n"' + b"x" * 16_000_001, "field larger than field limit"),
        ("a.jsonl", b'{"text": "a"}\n7\n', "line 2: an object"),
        ("a.jsonl", b'{"text": "a"}\n{"body": "b"}\n', "line 2: no column 'text'; it has 'body'"),
        ("a.jsonl", b'{"text": ["a"]}\n', "column 'text' holds list"),
        ("a.json", b'[{"text": "a"}, "b"]', "element 2: an object"),
        ("a.json", b'[{"text": "a"}]\n[{"text": "b"}]', "cannot be read as texts: Extra data"),
    ],
)
@pytest.mark.parametrize("shuffle", [True, False])
def test_what_cannot_be_read_is_said_with_its_place(tmp_path, name, content, what, shuffle):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        read(tmp_path / name, shuffle=shuffle)
    message = str(caught.value)
    assert f"{tmp_path / name}" in message
    assert what in message
    assert "\n" not in message


def test_columns_of_parquet_that_hold_no_text(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": [1, 2], "text": ["a", None]}), path)
    for column, said in (("n", "column 'n' holds int"), ("x", "'x'; it has 'n', 'text'")):
        with pytest.raises(DataError, match=said):
            read(path, column=column)
    assert [example.text for example in read(path)] == ["a", ""]


@pytest.mark.parametrize(
    ("missing", "reference"), [("datasets", "org/name"), ("pyarrow.parquet", "rows.parquet")]
)
def test_a_missing_package_is_named_with_its_remedy(tmp_path, monkeypatch, missing, reference):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(FillmaskError) as caught:
        open_texts(TextChoice(reference).source())
    assert f"need the library {missing}" in str(caught.value)
    assert 'pip install "fillmask-ui[hub]"' in str(caught.value)
