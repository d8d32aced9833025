"""The form of the cloze list: what its scores rely on."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

LIST_PATH = Path(__file__).with_name("cloze.jsonl")
MASK = "[MASK]"
KINDS = {
    *("antonym", "category", "geography", "science", "everyday life", "grammar", "idiom"),
    *("number and time", "story", "history and society", "use of objects"),
}


def words_of(text: str) -> list[str]:
    """The lower-case words and numbers of a sentence, the mask left out."""
    return re.findall(r"[a-z0-9']+", text.replace(MASK, " ").lower())


@pytest.fixture(scope="module")
def items() -> list[dict]:
    return [json.loads(line) for line in LIST_PATH.read_text(encoding="utf-8").splitlines()]


def test_texts_and_answers_have_their_form(items):
    """One mask that stands for a whole word; one to six answers that the sentence does not hold."""
    assert [item["id"] for item in items] == list(range(1, 151))
    for item in items:
        assert set(item) == {"id", "text", "accepted", "kind"}
        text, accepted = item["text"], item["accepted"]
        assert text.count(MASK) == 1, item
        assert text == " ".join(text.split()), item
        assert text[-1] in ".?!", item
        assert text[0].isupper() or text.startswith(MASK), item
        assert re.search(r"(^|[ (])\[MASK\]($|[ .,;?!)])", text), item
        assert 1 <= len(accepted) == len(set(accepted)) <= 6, item
        assert all(re.fullmatch(r"[a-z]+", word) for word in accepted), item
        assert not set(accepted) & set(words_of(text)), item


def test_no_sentence_stands_twice_even_with_another_word_hidden(items):
    filled = Counter(
        tuple(words_of(item["text"].replace(MASK, word)))
        for item in items
        for word in ["", *item["accepted"]]
    )
    assert [words for words, count in filled.items() if count > 1] == []


def test_kinds_and_places_of_the_mask_are_balanced(items):
    counts = Counter(item["kind"] for item in items)
    assert set(counts) == KINDS
    assert max(counts.values()) - min(counts.values()) <= 1
    starts = sum(item["text"].startswith(MASK) for item in items)
    ends = sum(re.search(r"\[MASK\][.?!]$", item["text"]) is not None for item in items)
    assert starts >= 10
    assert ends >= 30
    assert len(items) - starts - ends >= 30
