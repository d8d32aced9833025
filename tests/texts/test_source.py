"""What a reference and its options mean."""

import dataclasses

import pytest

from fillmask_ui.errors import OptionError
from fillmask_ui.texts import TextChoice, TextSource


@pytest.mark.parametrize(
    ("reference", "kind", "layout", "compressed"),
    [
        ("embedded", "embedded", "jsonl", False),
        ("-", "stdin", "txt", False),
        ("notes.txt", "file", "txt", False),
        ("Notes.TXT.GZ", "file", "txt", True),
        ("a/b.tsv", "file", "tsv", False),
        ("rows.ndjson", "file", "jsonl", False),
        ("rows.json.gz", "file", "jsonl", True),
        ("server.log", "file", "txt", False),
        ("rows.parquet", "file", "parquet", False),
        ("Salesforce/wikitext", "dataset", None, False),
        ("imdb", "dataset", None, False),
    ],
)
def test_a_reference_says_where_texts_come_from(reference, kind, layout, compressed):
    source = TextChoice(reference).source()
    assert (source.kind, source.layout, source.compressed) == (kind, layout, compressed)


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"samples": 0}, "at least 1; it was 0"),
        ({"seed": -1}, "0 or larger and below 2.63; it was -1"),
        ({"by": "page"}, "known: line, paragraph"),
        ({"encoding": "utf-9"}, "unknown encoding 'utf-9'"),
        ({"format": "xml"}, "known: csv, jsonl, parquet, tsv, txt"),
        ({"column": "body"}, "plain text has no column"),
        ({"format": "csv", "by": "paragraph"}, "only plain text is read by paragraph"),
    ],
)
def test_options_out_of_range_say_what_was_wanted(choices, said):
    with pytest.raises(OptionError, match=said):
        TextChoice("notes.txt", **choices).source()


def test_the_signature_tells_apart_what_gives_other_texts_or_another_order():
    plain = TextSource("dataset", "org/name")
    changes = {
        "where": "org/other",
        "column": "body",
        "config": "small",
        "split": "train",
        "revision": "v2",
        "streaming": True,
        "samples": 10,
        "shuffle": False,
        "seed": 43,
        "encoding": "latin-1",
    }
    signatures = {str(dataclasses.replace(plain, **{key: new})) for key, new in changes.items()}
    assert len({str(plain), *signatures}) == len(changes) + 1
    lines = TextSource("file", "a.txt")
    assert str(lines) != str(dataclasses.replace(lines, by="paragraph"))
    assert str(lines) != str(dataclasses.replace(lines, format="jsonl"))
