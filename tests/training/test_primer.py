"""The primer: sentences and paragraphs that the embedded model was trained on beside books."""

import json
import re
from pathlib import Path

import pytest

from fillmask_ui.files import asset
from fillmask_ui.training.corpus import CorpusPart, read_paragraphs

CLOZE = Path(__file__).parents[1] / "cloze" / "cloze.jsonl"
RUN = 6  # words


@pytest.fixture(scope="module")
def sentences():
    return read_paragraphs([CorpusPart(asset("primer"))]).texts


@pytest.fixture(scope="module")
def paragraphs():
    return read_paragraphs([CorpusPart(asset("primer") / "paragraphs")]).texts


@pytest.fixture(scope="module")
def lines(sentences, paragraphs):
    return [*sentences, *paragraphs]


def words(text):
    return tuple(re.findall(r"[a-z0-9']+", text.lower()))


def answers(item):
    """Every run of six words (or the whole, where shorter) that holds an accepted answer."""
    before, after = (words(part) for part in item["text"].split("[MASK]"))
    for answer in item["accepted"]:
        sentence = (*before, answer, *after)
        size = min(RUN, len(sentence))
        first = max(0, len(before) - size + 1)
        for start in range(first, min(len(before), len(sentence) - size) + 1):
            yield sentence[start : start + size]


def test_every_line_is_plain_prose(lines):
    for line in lines:
        assert line.isascii(), line
        assert line == " ".join(line.split()), line
        assert line[-1] in ".!?\"')", line
        assert not re.search(r"[*_#<>{}|\[\]]", line), line


def test_sentences_are_short_and_paragraphs_are_not(sentences, paragraphs):
    for line in sentences:
        assert 3 <= len(words(line)) <= 45, line
    for line in paragraphs:
        assert 30 <= len(words(line)) <= 135, line


def test_no_line_stands_there_twice(lines):
    assert len({words(line) for line in lines}) == len(lines)


def test_no_line_gives_away_an_answer_of_the_cloze_list(lines):
    """Facts may be the same, a run of six words around the answer may not: that would be recall."""
    items = [json.loads(line) for line in CLOZE.read_text(encoding="utf-8").splitlines()]
    given_away = {run for item in items for run in answers(item)}
    assert len(given_away) > 500
    sizes = {len(run) for run in given_away}
    for line in lines:
        text = words(line)
        runs = {text[k : k + size] for size in sizes for k in range(len(text) - size + 1)}
        assert not runs & given_away, line
