"""Tables of texts: which separator they have, whether quotation marks enclose, what is warned of.

What is read is checked against `csv` of the standard library and `pandas.read_csv`.
"""

import csv
import io
from dataclasses import asdict

import pandas as pd
import pytest
from text_files import texts_of

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.schema import from_trusted_values
from fillmask_ui.texts import TextChoice, TextSource, open_texts

TWO = ["The cat sat on the mat.", "A dog ran over the hill."]
# A separator that the name of the file does not say (unitxt#1488 adds one to its loader).
SEPARATED = {
    "tabs.csv": "id\ttext\tlabel\n1\tThe cat sat on the mat.\tpos\n"
    "2\tA dog ran over the hill.\tneg\n",
    "pipes.csv": "id|text|label\n1|The cat sat on the mat.|pos\n2|A dog ran over the hill.|neg\n",
    "semicolons.csv": "id;text\n1;The cat sat on the mat.\n2;A dog ran over the hill.\n",
    "commas.tsv": "id,text\n1,The cat sat on the mat.\n2,A dog ran over the hill.\n",
}
# Quotation marks that are text: pytorch/text#349 and miller#922. The first reads without an error
# as CSV, and makes one text of three lines.
MERGED = 'id\ttext\n1\t"Hello there\n2\tHe left.\n3\tAnd then "\n4\tA dog ran.\n'
REFUSED = 'id\ttext\n1\t"Hello there, he said\n2\tA dog ran.\n3\tIt is "fine" now.\n'
ENCLOSED = 'id\ttext\n1\t"She said ""no""."\n2\tA 12" ruler.\n3\t"A tab\tinside."\n'
LINE_INSIDE = 'id\ttext\n1\t"first\nsecond"\n2\tA dog ran.\n'


def write(folder, name, content):
    path = folder / name
    path.write_text(content, "utf-8", newline="")
    return path


def warned(path, **choices):
    """The texts of a file, and what was warned of when each came."""
    warnings = []
    texts = open_texts(
        TextChoice(str(path), **{"shuffle": False, **choices}).source(), warn=warnings.append
    )
    return [(example.text, len(warnings)) for example in texts], warnings, texts.report


@pytest.mark.parametrize("name", SEPARATED)
def test_the_separator_is_found_in_the_header(tmp_path, name):
    path = write(tmp_path, name, SEPARATED[name])
    mark = csv.Sniffer().sniff(SEPARATED[name], delimiters=",;|\t").delimiter
    theirs = pd.read_csv(path, sep=mark)["text"].tolist()
    assert texts_of(path) == theirs == TWO
    assert texts_of(path, delimiter=mark) == TWO
    assert warned(path)[1] == []


@pytest.mark.parametrize(
    ("typed", "mark"), [("tab", "\t"), ("\\t", "\t"), ("bar", "|"), ("|", "|"), ("~", "~")]
)
def test_a_separator_can_be_said(tmp_path, typed, mark):
    content = f"id{mark}text\n1{mark}One; two, three.\n"
    path = write(tmp_path, "a.csv", content)
    theirs = [row["text"] for row in csv.DictReader(io.StringIO(content), delimiter=mark)]
    assert texts_of(path, delimiter=typed) == theirs == ["One; two, three."]


@pytest.mark.parametrize(
    ("content", "quoting"),
    [
        (MERGED, csv.QUOTE_NONE),
        (REFUSED, csv.QUOTE_NONE),
        (ENCLOSED, csv.QUOTE_MINIMAL),
        (LINE_INSIDE, csv.QUOTE_MINIMAL),
    ],
)
@pytest.mark.parametrize("source", ["file", "pipe"])
def test_quotation_marks_of_a_tsv_enclose_only_if_each_closes(tmp_path, content, quoting, source):
    theirs = pd.read_csv(io.StringIO(content), sep="\t", quoting=quoting)["text"].tolist()
    path = write(tmp_path, "a.tsv", content)
    quoting_name = "none" if quoting == csv.QUOTE_NONE else "csv"
    assert texts_of(path, quoting=quoting_name) == theirs
    if source == "file":
        assert texts_of(path) == theirs
        return
    piped = TextSource("stdin", format="tsv", shuffle=False)
    texts = open_texts(piped, stdin=io.BytesIO(content.encode()))
    assert [example.text for example in texts] == theirs


def test_as_many_texts_as_lines_after_the_header(tmp_path):
    for number, content in enumerate((MERGED, REFUSED)):
        lines = content.splitlines()[1:]
        path = write(tmp_path, f"{number}.tsv", content)
        assert texts_of(path) == [line.split("\t")[1] for line in lines]


def test_a_csv_that_cannot_be_read_as_quoted_says_the_way_out(tmp_path):
    path = write(tmp_path, "a.csv", REFUSED)
    with pytest.raises(DataError, match=r"line 4: .*\(--quoting none if quotation marks are part"):
        texts_of(path)
    assert len(texts_of(path, quoting="none")) == 3


@pytest.mark.parametrize("shuffle", [True, False])
def test_a_text_with_tabs_or_line_ends_is_warned_of_before_it_comes(tmp_path, shuffle):
    rows = [["id", "text"], ["1", "plain"], ["2", "plain"], ["3", "first\nsecond"], ["4", "a\tb"]]
    file = io.StringIO(newline="")
    csv.writer(file).writerows(rows)
    path = write(tmp_path, "a.csv", file.getvalue())
    texts, (warning,), report = warned(path, shuffle=shuffle)
    assert sorted(text for text, _ in texts) == sorted(row[1] for row in rows[1:])
    assert all(count == 1 for text, count in texts if text != "plain")
    assert "a.csv, line 5: a text has a tab or line end inside, 'first\\nsecond'" in warning
    assert "--quoting none" in warning
    assert report.notes == (warning,)
    # JSON says where a text ends.
    path = write(tmp_path, "a.jsonl", '{"text": "first\\nsecond"}\n')
    assert warned(path)[1] == []


def test_a_file_without_a_header_does_not_lose_its_first_text_silently(tmp_path):
    content = "The cat sat on the mat.\nA dog ran over the hill.\n"
    for name in ("a.csv", "a.tsv"):
        path = write(tmp_path, name, content)
        texts, (warning,), _ = warned(path)
        assert [text for text, _ in texts] == TWO[1:]
        assert texts[0][1] == 1
        assert "its first line, 'The cat sat on the mat.', was read as the name of its" in warning
        assert "--format txt" in warning
        assert texts_of(path, format="txt") == TWO
    # A separator that is not found is seen in the same warning.
    _, (warning,), _ = warned(write(tmp_path, "b.csv", "id~text\n1~One.\n"))
    assert "'id~text'" in warning
    assert "--delimiter" in warning
    for header in ("text", " Text "):
        assert warned(write(tmp_path, "c.csv", f"{header}\nOne.\n"))[1] == []
    assert warned(write(tmp_path, "d.csv", "body\nOne.\n"), column="body")[1] == []
    with pytest.raises(
        DataError, match=r"whose first line names its columns: no column 'text'; it"
    ):
        texts_of(write(tmp_path, "e.csv", "1,The cat sat.\n2,A dog ran.\n"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mac.txt", b"The cat sat on the mat.\rA dog ran over the hill.\rShe left."),
        (
            "mac.csv",
            b"id,text\r1,The cat sat on the mat.\r2,A dog ran over the hill.\r3,She left.\r",
        ),
    ],
)
def test_carriage_returns_end_lines_where_there_are_no_line_feeds(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    theirs = path.read_text().split("\n")  # Python's universal newlines
    if name.endswith("csv"):
        theirs = pd.read_csv(path)["text"].tolist()
    assert texts_of(path) == theirs == [*TWO, "She left."]


@pytest.mark.parametrize(
    ("name", "choices", "message"),
    [
        ("a.txt", {"delimiter": "tab"}, "leave them out for txt"),
        ("a.jsonl", {"quoting": "none"}, "leave them out for jsonl"),
        ("a.csv", {"delimiter": "::"}, "must be one character, or tab, comma, semicolon, bar"),
        ("a.csv", {"delimiter": '"'}, "must be one character"),
        ("a.csv", {"quoting": "all"}, "unknown quoting 'all'; known: csv, none"),
        ("a.csv", {"field": "data"}, "--field names a key of a JSON file"),
        ("org/name", {"field": "data"}, "leave it out for a data set"),
    ],
)
def test_options_of_other_layouts_are_refused(name, choices, message):
    with pytest.raises(OptionError, match=message):
        TextChoice(name, **choices).source()


def test_run_json_holds_how_a_table_was_read_only_where_it_was_said():
    source = TextChoice("a.csv", delimiter="\t", quoting="none").source()
    assert from_trusted_values(TextSource, asdict(source)) == source
    assert "delimiter:tab|quoting:none" in str(source)
    assert TextChoice("a.json", field="data").source().field == "data"
