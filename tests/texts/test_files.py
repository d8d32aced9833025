"""Texts of files and standard input: what each format yields, in which order; bad data.

Orders and rows are checked against the datasets library reading the same file.
"""

import gzip
import io
import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from text_files import LAYOUTS, content, read, texts_of

from fillmask_ui.errors import DataError, FillmaskError, how_to_install
from fillmask_ui.filling.prompt import MAX_CHARACTERS
from fillmask_ui.texts import TextChoice, TextSource, open_texts

POEM = [
    "The kettle sings, the window weeps,",
    "",
    "a cat who owns the morning sleeps;",
    "   ",
    'and "nothing", said the clock, "will keep',
    "ünïcödé, 猫, 🙂 or one, two; three\tfour",
    "the last of seven",
]
WORDS = [f"row {number} of the table" for number in range(37)]


def test_paragraphs_are_separated_by_any_number_of_blank_lines(tmp_path):
    path = tmp_path / "pages.txt"
    path.write_text("\n\none\ntwo\n\n \t\n\nthree\n\nfour\nfive")
    examples = read(path, by="paragraph")
    assert [(example.id, example.text) for example in examples] == [
        (0, "one\ntwo"),
        (1, "three"),
        (2, "four\nfive"),
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "gb18030"])
def test_encodings_and_byte_order_marks(tmp_path, encoding):
    path = tmp_path / "poem.txt"
    path.write_bytes("\n".join(POEM).encode(encoding))
    read_as = "utf-8" if encoding == "utf-8-sig" else encoding
    assert texts_of(path, encoding=read_as) == POEM


def test_json_lines_skip_blank_lines_and_read_null_as_empty(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a\\nb"}\n\n{"text": null, "x": 1}\n{"x": [2], "text": "c"}\n')
    assert [(e.id, e.text) for e in read(path)] == [(0, "a\nb"), (1, ""), (2, "c")]


def write_rows(folder, layout):
    path = folder / f"rows.{layout}"
    path.write_bytes(content(WORDS, layout))
    return path


def as_the_library_reads(path, folder):
    """The rows of the same file through the datasets library."""
    import datasets

    name = path.name.removesuffix(".gz").split(".")[-1]
    kinds = {"txt": "text", "jsonl": "json", "tsv": "csv"}
    options = {"sep": "\t"} if name == "tsv" else {}
    return datasets.load_dataset(
        kinds.get(name, name),
        data_files=str(path),
        split="train",
        cache_dir=str(folder / "cache"),
        **options,
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("samples", [None, 10])
def test_every_layout_shuffles_as_the_datasets_library_does(tmp_path, layout, samples):
    path = write_rows(tmp_path, layout)
    theirs = as_the_library_reads(path, tmp_path).shuffle(seed=42)["text"][:samples]
    texts = open_texts(TextChoice(str(path), samples=samples).source())
    ours = list(texts)
    assert [example.text for example in ours] == list(theirs)
    assert [WORDS[example.id] for example in ours] == list(theirs)
    assert texts.report.available == len(WORDS)


@pytest.mark.parametrize("shuffle", [True, False])
def test_standard_input_is_read_as_a_file_is(tmp_path, shuffle):
    path = write_rows(tmp_path, "jsonl")
    choices = {"shuffle": shuffle, "samples": 9, "format": "jsonl"}
    piped = open_texts(TextChoice("-", **choices).source(), stdin=Pipe(path.read_bytes()))
    assert list(piped) == read(path, **choices)


class Pipe(io.BytesIO):
    """A stream that cannot go back, as standard input cannot."""

    def seek(self, *_):
        raise OSError("a pipe cannot seek")

    def seekable(self):
        return False


def test_standard_input_in_order_is_not_read_further_than_asked():
    stream = Pipe(b"line of text\n" * 1_000_000)
    with open_texts(TextSource("stdin", shuffle=False, samples=3), stdin=stream) as texts:
        assert len(list(texts)) == 3
    assert stream.tell() < 500_000


def test_asking_for_more_than_there_is_says_how_many_there_were(tmp_path):
    path = write_rows(tmp_path, "txt")
    for shuffle in (True, False):
        texts = open_texts(TextChoice(str(path), samples=1000, shuffle=shuffle).source())
        assert len(list(texts)) == 37
        assert texts.report.available == 37
        assert texts.report.notes == ("1,000 texts were asked for; the data has 37",)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("layout", ["txt", "csv", "jsonl", "parquet"])
def test_texts_are_cut_and_counted_beyond_the_limit(tmp_path, layout, shuffle):
    path, lengths = tmp_path / f"a.{layout}", [5, MAX_CHARACTERS, MAX_CHARACTERS + 1, 10**7]
    path.write_bytes(content(["x" * length for length in lengths], layout))
    texts = open_texts(TextChoice(str(path), shuffle=shuffle).source())
    assert sorted(len(example.text) for example in texts) == [5, *[MAX_CHARACTERS] * 3]
    assert texts.report.notes == ("texts cut at 1,000,000 characters: 2",)


def test_stopping_early_leaves_no_file_open(tmp_path, recwarn):
    path = write_rows(tmp_path, "txt.gz")
    texts = open_texts(TextChoice(str(path)).source())
    next(texts)
    texts.close()
    assert list(texts) == []
    assert not [str(w.message) for w in recwarn if issubclass(w.category, ResourceWarning)]


ROWS = [{"text": "a, [b]"}, {"text": "two\nlines", "n": [1]}, {"text": None}, {"text": "ünï"}]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_json_array_gives_what_the_same_objects_a_line_give(tmp_path, indent, shuffle):
    (tmp_path / "a.json").write_text(json.dumps(ROWS, indent=indent))
    (tmp_path / "b.json").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    examples = read(tmp_path / "a.json", shuffle=shuffle)
    assert examples == read(tmp_path / "b.json", shuffle=shuffle)
    assert {e.id: e.text for e in examples} == {0: "a, [b]", 1: "two\nlines", 2: "", 3: "ünï"}


@pytest.mark.parametrize("name", ["server.log", "corpus", "corpus.gz", "Old.LOG"])
def test_logs_and_files_without_an_ending_are_plain_text(tmp_path, name):
    content = b"one\ntwo, three\n"
    content = gzip.compress(content) if name.endswith(".gz") else content
    (tmp_path / name).write_bytes(content)
    assert texts_of(tmp_path / name) == ["one", "two, three"]


@pytest.mark.parametrize(
    ("header", "column"),
    [
        ("id,text", None),
        ("text,body", "body"),
        ("Text,text", None),
        ("id, Text ", None),
        ("id,TEXT", "text"),
        ("text, body", "BODY"),
    ],
)
def test_a_column_is_chosen_by_name_which_may_differ_by_case_and_spaces(tmp_path, header, column):
    (tmp_path / "a.csv").write_text(f"{header}\n1,found\n")
    assert texts_of(tmp_path / "a.csv", column=column) == ["found"]
    names = header.split(",")
    pq.write_table(pa.table({names[0]: ["1"], names[1]: ["found"]}), tmp_path / "a.parquet")
    assert texts_of(tmp_path / "a.parquet", column=column) == ["found"]


GZIP = gzip.compress(b"some text that is long enough\n" * 1000, mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "fragment"),
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
        ("a.jsonl", b'{"text": "a"}\n7\n', "line 2: this is not an object"),
        ("a.jsonl", b'{"text": "a"}\n{"body": "b"}\n', "line 2: no column 'text'; it has 'body'"),
        ("a.jsonl", b'{"text": ["a", 1]}\n', "column 'text' holds list"),
        ("a.jsonl", b'{"data": [{"text": "a"}]}\n', "or --field data for rows that lie under it"),
        ("a.json", b'{\n "data": [{"text": "a"}]\n}\n', "is one object on many lines"),
        ("a.tsv", b'id\ttext\n1\ta\tb\n2\t"x" y\n', "--quoting none"),
        ("a.json", b'[{"text": "a"}, "b"]', "element 2: this is not an object"),
        ("a.json", b'[{"text": "a"}]\n[{"text": "b"}]', "cannot be read as texts: Extra data"),
    ],
)
@pytest.mark.parametrize("shuffle", [True, False])
def test_what_cannot_be_read_is_said_with_its_place(tmp_path, name, content, fragment, shuffle):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        read(tmp_path / name, shuffle=shuffle)
    message = str(caught.value)
    assert f"{tmp_path / name}" in message
    assert fragment in message
    assert "\n" not in message


def test_columns_of_parquet_that_hold_no_text(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": [1, 2], "text": ["a", None]}), path)
    for column, message in (("n", "column 'n' holds int"), ("x", "'x'; it has 'n', 'text'")):
        with pytest.raises(DataError, match=message):
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
    assert how_to_install("hub") in str(caught.value)
