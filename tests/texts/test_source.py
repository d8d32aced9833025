"""What a reference and its options mean; the texts that ship are what their README says."""

import dataclasses
import json
import statistics
from collections import Counter

import pytest

from fillmask_ui.errors import OptionError
from fillmask_ui.files import asset
from fillmask_ui.texts import TextChoice, TextSource, open_texts


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
    ("choices", "message"),
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
def test_options_out_of_range_say_what_was_wanted(choices, message):
    with pytest.raises(OptionError, match=message):
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


KINDS = ("encyclopedic", "news", "conversation", "instructions", "fiction")


def records():
    path = asset("texts") / "embedded.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_three_hundred_different_texts_of_five_kinds():
    texts = [record["text"] for record in records()]
    assert len(texts) == len(set(texts)) == 300
    assert Counter(record["kind"] for record in records()) == dict.fromkeys(KINDS, 60)
    assert len({record["id"] for record in records()}) == 300
    assert all(record["id"].startswith(record["kind"]) for record in records())


def test_the_readme_counts_them_rightly():
    readme = (asset("texts") / "README.md").read_text(encoding="utf-8")
    for kind in KINDS:
        words = sum(len(r["text"].split()) for r in records() if r["kind"] == kind)
        assert f"| {kind} | 60 | {words:,} |" in readme
    lengths = [len(record["text"].split()) for record in records()]
    assert f"between {min(lengths)} and {max(lengths)} words" in readme
    assert f"| all | 300 | {sum(lengths):,} |" in readme
    assert f"the median is {statistics.median(lengths):g}." in readme


def test_the_embedded_source_gives_them_all():
    texts = {example.id: example.text for example in open_texts(TextSource())}
    assert texts == {index: record["text"] for index, record in enumerate(records())}
