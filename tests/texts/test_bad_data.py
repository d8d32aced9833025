"""Data that cannot be used as it is: each message says what came, where, and what to do."""

import gzip
import re
import subprocess
import sys

import pytest

from fillmask_ui.errors import DataError
from fillmask_ui.texts import TextChoice, open_texts


def said(path, content=None, **choices):
    """The message with which reading a file fails."""
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        list(open_texts(TextChoice(str(path), **choices).source()))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_name_that_no_file_can_have():
    for name in ("a" * 300, "a\0b"):
        assert TextChoice(name).source().kind == "dataset"
        with pytest.raises(DataError, match="is not there"):
            list(open_texts(TextChoice(name + ".txt").source()))


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", b""),
        ("a.txt", b"\xef\xbb\xbf"),
        ("a.csv", b""),
        ("a.csv", b"text,label\n"),
        ("a.jsonl", b"\n\n"),
        ("a.txt.gz", gzip.compress(b"", mtime=0)),
    ],
)
def test_a_source_that_yields_nothing_is_an_error(tmp_path, shuffle, name, content):
    assert "has no texts" in said(tmp_path / name, content, shuffle=shuffle)


@pytest.mark.parametrize("shuffle", [True, False])
def test_only_blank_texts_are_an_error_at_the_end(tmp_path, shuffle):
    message = said(tmp_path / "a.txt", b"\n  \n\t\r\n", shuffle=shuffle)
    assert "all 3 texts that were read are blank" in message


def test_only_blank_paragraphs_are_no_paragraphs(tmp_path):
    assert "has no texts" in said(tmp_path / "a.txt", b"\n  \n\t\n", by="paragraph")


def test_some_blank_texts_are_passed_on_and_counted(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\ntwo\n")
    texts = open_texts(TextChoice(str(tmp_path / "a.txt")).source())
    assert len(list(texts)) == 3
    assert texts.report.blank == 1


def test_a_file_that_is_not_there_or_is_a_folder(tmp_path):
    assert "is not there; check the path" in said(tmp_path / "none.txt")
    (tmp_path / "folder.txt").mkdir()
    from fillmask_ui.texts import TextSource

    with pytest.raises(DataError, match="is a folder, not a file"):
        open_texts(TextSource("file", str(tmp_path / "folder.txt")))
    assert "not a file" in said(tmp_path / "none.parquet")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"title,body\nx,y\n"),
        ("a.tsv", b"title\tbody\nx\ty\n"),
        ("a.jsonl", b'{"title": "x", "body": "y"}\n'),
    ],
)
def test_a_missing_column_lists_the_known_ones(tmp_path, name, content):
    message = said(tmp_path / name, content, column="text")
    assert "no column 'text'" in message
    assert "'title', 'body'" in message
    assert "--column input_column=NAME" in message
    assert "which column holds the texts? It has 'title', 'body'" in said(tmp_path / name)


def test_a_wrong_encoding_gives_the_offset_of_the_byte(tmp_path):
    # Reading is done in pieces of 64 KiB; the offset counts from the beginning of the file.
    for offset in (3, 65_535, 65_536, 200_000):
        content = b"x" * offset + b"\xe9t\xe9\n"
        message = said(tmp_path / "a.txt", content)
        assert f"not utf-8 text: byte 0xe9 at offset {offset:,} " in message
        assert "--encoding latin-1" in message


@pytest.mark.parametrize(
    ("encoding", "text", "bad"),
    [("utf-8", "猫é", b"\xff"), ("gb18030", "猫", b"\xff"), ("shift_jis", "猫", b"\xff")],
)
def test_offsets_hold_where_a_character_spans_two_reads(tmp_path, encoding, text, bad):
    for padding in range(65_530, 65_540):
        before = b"a" * padding + text.encode(encoding)
        content = before + bad + b" rest\n"
        message = said(tmp_path / "a.txt", content, encoding=encoding)
        offset = int(re.search(r"at offset ([\d,]+)", message)[1].replace(",", ""))
        assert offset == len(before), (padding, message)


def test_a_byte_order_mark_does_not_move_the_offset(tmp_path):
    assert "at offset 5 " in said(tmp_path / "a.txt", b"\xef\xbb\xbfab\xe9\n")


def test_text_cut_inside_a_character_is_no_text(tmp_path):
    assert "at offset 2 " in said(tmp_path / "a.txt", "ab猫".encode()[:-1])


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"\x7fELF\x02\x01\x01\0\0\0", "binary file (a zero byte at offset 7)"),
        (b"PAR1....", "a parquet file; name it .parquet"),
        (gzip.compress(b"text", mtime=0), "compressed with gzip; name it with .gz"),
        (b"PK\x03\x04...", "a zip archive or an office document"),
        (b"%PDF-1.7\n", "a PDF"),
        ("text".encode("utf-16"), "--encoding utf-16"),
        ("text".encode("utf-16-le"), "--encoding utf-16-le"),
        ("text".encode("utf-16-be"), "--encoding utf-16-be"),
    ],
)
def test_binary_files_are_named_for_what_they_are(tmp_path, content, what):
    assert what in said(tmp_path / "a.txt", content)


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("utf-16", "utf-8"),
        ("utf-16-le", "utf-8"),
        ("utf-16-be", "utf-8"),
        ("utf-16-le", "utf-16"),
        ("utf-16-be", "UTF16"),
        ("latin-1", "utf-8"),
    ],
)
def test_the_encoding_that_a_message_names_is_right(tmp_path, written, asked):
    # The Chinese letter has its zero byte where a Latin one has its other byte.
    lines = ["\u00e9t\u00e9"] if written == "latin-1" else ["\u4e00", "caf\u00e9 au lait"]
    message = said(tmp_path / "a.txt", "\n".join(lines).encode(written), encoding=asked)
    named = re.search(r"--encoding ([\w-]+)", message)[1]
    texts = open_texts(TextChoice(str(tmp_path / "a.txt"), encoding=named, shuffle=False).source())
    assert [example.text for example in texts] == lines


def test_an_empty_file_has_no_encoding(tmp_path):
    assert "has no texts" in said(tmp_path / "a.txt", b"", encoding="utf-16")


def test_damaged_gzip_is_told_from_text_that_is_not_gzip(tmp_path):
    whole = gzip.compress(b"some text that is long enough\n" * 1000)
    for content in (whole[: len(whole) // 2], b"plain text\n", whole[:20] + b"\xff" * 30):
        message = said(tmp_path / "a.txt.gz", content)
        assert "cannot be decompressed" in message
        assert "drop .gz from its name" in message


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b'{"text": "a"', "not JSON"),
        (b"just words", "not JSON"),
        (b'"a string"', "it is a string"),
        (b"[1, 2]", "it is a list"),
        (b'{"body": "b"}', "no column 'text'; it has 'body'"),
        (b'{"text": 7}', "column 'text' holds a number"),
        (b'{"text": ["a"]}', "column 'text' holds a list"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_malformed_json_line_has_its_number(tmp_path, line, what):
    message = said(tmp_path / "a.jsonl", b'{"text": "a"}\n\n' + line + b'\n{"text": "b"}\n')
    assert "a.jsonl, line 3: " in message
    assert what in message


def test_a_number_beside_the_text_may_have_any_length(tmp_path):
    digits = "9" * 5000
    (tmp_path / "a.jsonl").write_text(f'{{"text": "one", "n": {digits}}}\n')
    assert [
        example.text for example in open_texts(TextChoice(str(tmp_path / "a.jsonl")).source())
    ] == ["one"]
    message = said(tmp_path / "b.jsonl", f'{{"text": {digits}}}\n'.encode())
    assert "line 1: column 'text' holds a number" in message


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (b"only one", "line 3: 1 values where the header has 2"),
        (b"one,two,three", "line 3: 3 values where the header has 2; put values that hold commas"),
        (b'1,"a" b', "line 3 (row begun at line 3): not comma-separated values"),
        (b'1,"never closed', "line 4 (row begun at line 3): not comma-separated values"),
    ],
)
def test_a_malformed_csv_row_has_its_line(tmp_path, row, what):
    assert what in said(tmp_path / "a.csv", b"n,text\n1,fine\n" + row + b"\n2,fine\n")


def test_a_row_too_long_to_be_parsed_is_an_error_with_its_line(tmp_path):
    row = b'{"text": "' + b"x" * 16_000_001 + b'"}\n'
    message = said(tmp_path / "a.jsonl", b'{"text": "a"}\n' + row)
    assert "line 2: longer than 16,000,000 characters" in message


def test_parquet_that_is_none_and_columns_that_hold_no_text(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    assert "cannot be read as parquet" in said(tmp_path / "a.parquet", b"PAR1 and then nothing")
    pq.write_table(pa.table({"n": [1, 2], "text": ["a", None]}), tmp_path / "b.parquet")
    assert "column 'n' holds int64" in said(tmp_path / "b.parquet", column="n")
    assert "no column 'x'; it has 'n', 'text'" in said(tmp_path / "b.parquet", column="x")
    texts = open_texts(TextChoice(str(tmp_path / "b.parquet"), shuffle=False).source())
    assert [example.text for example in texts] == ["a", ""]
    odd = pa.array([b"a cat", b"bad \xff\xfe"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 2, odd.buffers())  # which nobody checks
    pq.write_table(pa.table({"text": text}), tmp_path / "d.parquet")
    assert "column 'text' holds bytes that are not UTF-8" in said(tmp_path / "d.parquet")
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "c.parquet")
    assert "has no texts" in said(tmp_path / "c.parquet")


@pytest.mark.parametrize(
    ("missing", "reference"), [("datasets", "org/name"), ("pyarrow", "rows.parquet")]
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
    assert f"needs {'the datasets library' if missing == 'datasets' else 'pyarrow'}" in run.stdout
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
