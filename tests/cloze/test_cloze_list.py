"""The form of the cloze list: what its scores rely on."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

LIST_PATH = Path(__file__).with_name("cloze.jsonl")
MASK = "[MASK]"
KINDS = {
    "antonym",
    "category",
    "geography",
    "science",
    "everyday life",
    "grammar",
    "idiom",
    "number and time",
    "story",
    "history and society",
    "use of objects",
}


def words_of(text: str) -> list[str]:
    """The lower-case words and numbers of a sentence, the mask left out."""
    return re.findall(r"[a-z0-9']+", text.replace(MASK, " ").lower())


@pytest.fixture(scope="module")
def items() -> list[dict]:
    return [json.loads(line) for line in LIST_PATH.read_text(encoding="utf-8").splitlines()]


def test_there_are_150_items_numbered_in_order(items):
    assert [item["id"] for item in items] == list(range(1, 151))
    assert all(set(item) == {"id", "text", "accepted", "kind"} for item in items)


def test_each_text_is_one_sentence_with_exactly_one_mask(items):
    for item in items:
        text = item["text"]
        assert text.count(MASK) == 1, item
        assert text == " ".join(text.split()), item
        assert text[-1] in ".?!", item
        assert text[0].isupper() or text.startswith(MASK), item
        # The mask stands for a whole word, so no letter may touch it.
        assert re.search(r"(^|[ (])\[MASK\]($|[ .,;?!)])", text), item


def test_accepted_are_one_to_six_different_lower_case_words(items):
    for item in items:
        accepted = item["accepted"]
        assert 1 <= len(accepted) <= 6, item
        assert len(set(accepted)) == len(accepted), item
        assert all(re.fullmatch(r"[a-z]+", word) for word in accepted), item


def test_no_answer_stands_in_its_own_sentence(items):
    """A model that only repeats words of the sentence must score nothing."""
    for item in items:
        assert not set(item["accepted"]) & set(words_of(item["text"])), item


def test_no_sentence_stands_twice(items):
    def filled(item: dict, word: str) -> tuple[str, ...]:
        return tuple(words_of(item["text"].replace(MASK, word)))

    masked = Counter(tuple(words_of(item["text"])) for item in items)
    assert [words for words, count in masked.items() if count > 1] == []
    # The same sentence with another word hidden counts as the same sentence.
    answered = Counter(
        sentence for item in items for sentence in {filled(item, word) for word in item["accepted"]}
    )
    assert [words for words, count in answered.items() if count > 1] == []


def test_kinds_are_known_and_balanced(items):
    counts = Counter(item["kind"] for item in items)
    assert set(counts) == KINDS
    assert max(counts.values()) - min(counts.values()) <= 1


def test_mask_stands_at_start_middle_and_end(items):
    starts = sum(item["text"].startswith(MASK) for item in items)
    ends = sum(re.search(r"\[MASK\][.?!]$", item["text"]) is not None for item in items)
    assert starts >= 10
    assert ends >= 30
    assert len(items) - starts - ends >= 30
