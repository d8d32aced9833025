"""The primer: sentences and paragraphs that the embedded model was trained on beside books."""

import json
import re
from pathlib import Path

from fillmask_ui.features.train.corpus import CorpusPart, read_paragraphs
from fillmask_ui.files import asset

CLOZE = Path(__file__).parents[2] / "cloze" / "cloze.jsonl"
RUN = 6  # words


def words(text):
    return tuple(re.findall(r"[a-z0-9']+", text.lower()))


def answers(item):
    """Every run of six words (or the whole, if shorter) that holds an accepted answer."""
    before, after = (words(part) for part in item["text"].split("[MASK]"))
    for answer in item["accepted"]:
        sentence = (*before, answer, *after)
        size = min(RUN, len(sentence))
        first = max(0, len(before) - size + 1)
        for start in range(first, min(len(before), len(sentence) - size) + 1):
            yield sentence[start : start + size]


def test_lines_are_plain_prose_and_give_away_no_answer_of_the_cloze_list():
    """Facts may be the same, a run of six words around the answer may not: that would be recall."""
    items = [json.loads(line) for line in CLOZE.read_text(encoding="utf-8").splitlines()]
    given_away = {run for item in items for run in answers(item)}
    assert len(given_away) > 500
    seen = set()
    for folder, least, most in (("primer", 3, 45), ("primer/paragraphs", 30, 135)):
        for line in read_paragraphs([CorpusPart(asset("primer").parent / folder)]).texts:
            text = words(line)
            assert line.isascii(), line
            assert line == " ".join(line.split()), line
            assert line[-1] in ".!?\"')", line
            assert not re.search(r"[*_#<>{}|\[\]]", line), line
            assert least <= len(text) <= most, line
            assert text not in seen, line
            seen.add(text)
    whole = "\n".join(f" {' '.join(text)} " for text in seen)
    assert not [run for run in given_away if f" {' '.join(run)} " in whole]
