"""Views of a sentence beside the plain answer: bars, lenses, two models, a class's guesses.

What each shows for small models is recorded in `tests/recorded`; here is what a record cannot hold.
"""

import json
import math
import re

import pytest
import torch
from explore_page import asked, session_of
from page_tags import Tags
from table_model import SPECIAL, WORDS, TableModel, TableVocabulary

from fillmask_ui.filling import score_candidate_at
from fillmask_ui.filling.guesses import parse_guesses
from fillmask_ui.ui.explore import guess_view
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


def guessed(typed):
    return guess_view.compare(session_of(), TableModel(), MASKED, parse_guesses(typed), "cat")


def test_a_class_beside_the_model():
    """The model's probabilities by torch's softmax, those of the class by hand."""
    model = TableModel()
    ids = model.vocabulary.encode(MASKED).ids
    logits = model.left[ids[1]] + model.right[ids[3]] + model.own[model.vocabulary.mask_id]
    probabilities = torch.softmax(torch.tensor(logits).double(), 0)
    found = guessed("cat 12, dog 5, river")
    assert found.losses.people == pytest.approx(math.log(1.5))
    truth = -math.log(probabilities[model.vocabulary.ids["cat"]])
    assert found.losses.model == pytest.approx(truth)
    # The true word comes first, then guesses, then what the model lists and nobody guessed.
    words = guessed("river, dog 5, CAT 2, walking").words
    assert [own.word for own in words[:4]] == ["cat", "dog", "river", "walking"]
    assert [own.asked for own in words[:4]] == [True, False, False, False]
    shares = [own.probability for own in words[:4]]
    assert shares == pytest.approx([2 / 9, 5 / 9, 1 / 9, 1 / 9])
    assert words[4].other_probability == pytest.approx(max(probabilities).item())
    whole_words = sum(own.other_probability for own in words if own.word != "walking")
    assert whole_words == pytest.approx(1)
    chained = score_candidate_at(model, MASKED, "walking", 0)
    assert words[3].other_probability == pytest.approx(chained.probability)
