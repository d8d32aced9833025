"""Views of a sentence beside the plain answer: bars, lenses, two models, a class's guesses.

What each shows for small models is recorded in `tests/recorded`; here is what a record cannot hold.
"""

import json
import re

import pytest
from explore_page import asked, session_of
from page_tags import Tags
from table_model import SPECIAL, WORDS, TableModel, TableVocabulary

from fillmask_ui.ui.explore.explore_modes import SERVED

TEXT = "the old cat walked on the red mat, and ran."
MASKED = "the [MASK] sat on the mat."
SENTENCES = ["the old cat sat on the mat .", "the dog ran .", "too short .", "a red [MASK] dog ."]


def test_a_public_page_compares_what_it_offers():
    found = asked(SERVED["compared"], session_of(public=True), {"text": MASKED, "compare": "noisy"})
    assert found["kind"] == "error"
    assert "not offered on this public page" in found["notice"]


def windows(name, session, **values):
    """The answers of one question after the other, until there are no more words."""
    answers, start = [], 0
    while start is not None:
        answers.append(asked(SERVED[name], session, {**values, "start": start}))
        start = answers[-1]["next"]
    return answers


@pytest.mark.parametrize(
    ("name", "text", "other"),
    [
        ("surprise", "the cat. " * 20, {}),
        ("mattered", "the old [MASK] walked on the red [MASK]." * 8, {}),
        ("apart", "the cat. " * 20, {"compare": "noisy"}),
    ],
)
def test_long_texts_come_window_by_window_and_are_remembered(name, text, other):
    models = {key: TableModel(1, max_tokens=512) for key in ("table", "noisy")}
    session = session_of(**models)
    answers = windows(name, session, text=text, **other)
    assert len(answers) > 1
    assert [answer["known"] for answer in answers] == sorted({a["known"] for a in answers})
    assert f"So far the first {answers[0]['known']} of" in answers[0]["html"]["story"]
    assert "So far" not in answers[-1]["html"]["story"]
    tokens = [word["token"] for answer in answers for word in answer["words"]]
    assert tokens == sorted(set(tokens))
    assert len(tokens) == answers[-1]["total"]
    models["table"].calls.clear()
    again = windows(name, session, text=text, unit="bits", **other)
    assert [word["token"] for answer in again for word in answer["words"]] == tokens
    assert models["table"].calls == []


def test_tokens_and_names_are_never_markup():
    vocabulary = TableVocabulary((*SPECIAL, "<script>", "<b>", *WORDS))
    evil = TableModel(vocabulary=vocabulary)
    session = session_of(table=evil, noisy=evil)
    text = 'the <script> cat sat "><img onerror=alert(1)>'
    state = {"text": text, "compare": "noisy", "sentences": [text, "the <b>cat</b> sat on the mat"]}
    masks = "[MASK] [MASK]"
    state |= {"other": f"a {text} {masks}", "guesses": "<script> 3, cat", "truth": "<script>"}
    state["words"] = "<b>, <script>"
    whole = ("surprise", "apart", "parting")
    for name in (*whole, "answer", "joint", "mattered", "pair", "compared", "guess"):
        masked = {} if name in whole else {"text": f"{text} {masks}"}
        found = asked(SERVED[name], session, {**state, **masked})
        assert not found.get("error"), (name, found)
        pieces = re.findall(r'"((?:[^"\\]|\\.)*)"', json.dumps(found.get("html", found)))
        for piece in pieces:
            tags = Tags(json.loads(f'"{piece}"')) if "fm-" in piece else Tags("")
            assert not tags.names & {"script", "img"}, name
            assert not {own for own in tags.attributes if own.startswith("on")}
