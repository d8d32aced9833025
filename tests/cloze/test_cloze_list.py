"""The form of the cloze list: what its scores rely on."""

import json
import re
from pathlib import Path

LIST_PATH = Path(__file__).with_name("cloze.jsonl")
MASK = "[MASK]"


def words_of(text: str) -> list[str]:
    """The lower-case words and numbers of a sentence, the mask left out."""
    return re.findall(r"[a-z0-9']+", text.replace(MASK, " ").lower())


def test_texts_and_answers_have_their_form():
    """One mask that stands for a whole word; one to six answers that the sentence does not hold."""
    items = [json.loads(line) for line in LIST_PATH.read_text(encoding="utf-8").splitlines()]
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
