"""The texts that ship with the project are what their README says."""

import json
import statistics
from collections import Counter

from fillmask_ui.files import asset
from fillmask_ui.texts import TextSource, open_texts

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
    given = {example.id: example.text for example in open_texts(TextSource())}
    assert given == {index: record["text"] for index, record in enumerate(records())}
