"""Views beside the plain answer: bars, lenses, two models, a class's guesses, a token of a run.

What each shows for small models is recorded in `tests/recorded`; here is what a record cannot hold.
"""

import json
import math
import re

import numpy as np
import pytest
import torch
from explore_page import MIXED, asked, nll_at, recorded, session_of
from html_tags import Tags
from table_model import SPECIAL, WORDS, TableModel, TableVocabulary, letter_vocabulary

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.filling import score_candidate_at
from fillmask_ui.filling.guesses import parse_guesses
from fillmask_ui.runs import RunStore
from fillmask_ui.runs.tokens import TokenPlace, measured_tokens
from fillmask_ui.ui.explore import guess_view
from fillmask_ui.ui.explore.contrast_view import contrast_models
from fillmask_ui.ui.explore.explore_modes import served
from fillmask_ui.ui.explore.explore_state import Question
from fillmask_ui.ui.explore.prediction_view import answer
from fillmask_ui.ui.explore.sentence_strip import Draft
from fillmask_ui.ui.run_tokens import compared_readings, replayed

TEXT = "the old cat walked on the red mat, and ran."
MASKED = "the [MASK] sat on the mat."
SENTENCES = ["the old cat sat on the mat .", "the dog ran .", "too short .", "a red [MASK] dog ."]


def test_a_public_page_compares_what_it_offers():
    reply = asked(
        served()["compared"], session_of(public=True), {"text": MASKED, "compare": "noisy"}
    )
    assert reply["kind"] == "error"
    assert "not offered on this public page" in reply["notice"]


def windows(name, session, **values):
    """The answers of one question after the other, until there are no more words."""
    answers, start = [], 0
    while start is not None:
        answers.append(asked(served()[name], session, {**values, "start": start}))
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
        reply = asked(served()[name], session, {**state, **masked})
        assert not reply.get("error"), (name, reply)
        fragments = re.findall(r'"((?:[^"\\]|\\.)*)"', json.dumps(reply.get("html", reply)))
        for fragment in fragments:
            tags = Tags(json.loads(f'"{fragment}"')) if "fm-" in fragment else Tags("")
            assert not tags.names & {"script", "img"}, name
            assert not {name for name in tags.attributes if name.startswith("on")}


def guessed(typed):
    return guess_view.compare(session_of(), TableModel(), MASKED, parse_guesses(typed), "cat")


def test_a_class_beside_the_model():
    """The model's probabilities by torch's softmax, those of the class by hand."""
    model = TableModel()
    ids = model.vocabulary.encode(MASKED).ids
    logits = model.left[ids[1]] + model.right[ids[3]] + model.own[model.vocabulary.mask_id]
    probabilities = torch.softmax(torch.tensor(logits).double(), 0)
    comparison = guessed("cat 12, dog 5, river")
    assert comparison.losses.people == pytest.approx(math.log(1.5))
    truth = -math.log(probabilities[model.vocabulary.ids["cat"]])
    assert comparison.losses.model == pytest.approx(truth)
    # The true word comes first, then guesses, then what the model lists and nobody guessed.
    words = guessed("river, dog 5, CAT 2, walking").words
    assert [word.word for word in words[:4]] == ["cat", "dog", "river", "walking"]
    assert [word.asked for word in words[:4]] == [True, False, False, False]
    shares = [word.reference_probability for word in words[:4]]
    assert shares == pytest.approx([2 / 9, 5 / 9, 1 / 9, 1 / 9])
    assert words[4].candidate_probability == pytest.approx(max(probabilities).item())
    whole_words = sum(word.candidate_probability for word in words if word.word != "walking")
    assert whole_words == pytest.approx(1)
    chained = score_candidate_at(model, MASKED, "walking", 0)
    assert words[3].candidate_probability == pytest.approx(chained.probability)


def replay(session, state):
    return asked(served()["replay"], session, state)


WITHIN = EvaluationConfig("pseudo-perplexity", within_word=True)
SUFFIX = EvaluationConfig("suffix", suffix_tokens=3, max_tokens=7)


@pytest.mark.parametrize("config", [MIXED, WITHIN, SUFFIX], ids=lambda config: config.signature)
def test_every_token_has_the_figures_of_the_run(tmp_path, config):
    """But for the float32 rounding of the batch that it was measured in."""
    session = session_of(tmp_path)
    rows, link = recorded(tmp_path, config)
    for index, row in rows.items():
        for entry, position in enumerate(row.cols.tolist()):
            position = {**link, "example": str(index), "token": str(position)}
            reply = replay(session, {"text": "whatever", **position})
            assert reply["kind"] == "none", reply["notice"]
            assert reply["truth"]["nll_nats"] == pytest.approx(row.scores.nll_nats[entry])
            assert reply["truth"]["rank"] == row.scores.ranks[entry]
            assert reply["mask"]["entropy_nats"] == pytest.approx(row.scores.entropy_nats[entry])
            best = reply["mask"]["candidates"][0]
            assert best["id"] == row.scores.top_ids[entry]
            assert best["probability"] == pytest.approx(row.scores.top_probabilities[entry])
            assert f"{row.scores.nll_nats[entry]:.4f} nats" in reply["html"]["strip"]


def test_on_a_public_page_runs_are_their_makers_alone(tmp_path):
    session = session_of(tmp_path, public=True)
    rows, link = recorded(tmp_path / "ada1")
    position = {**link, "token": str(rows[0].cols[0])}
    assert replay(session, {**position, "visitor": "ada1"})["kind"] == "none"
    visitors = {"eve2": "known: none", "": "who is asking", "../ada1": "who is asking"}
    for visitor, message in visitors.items():
        reply = replay(session, {**position, "visitor": visitor, "text": "a [MASK]"})
        assert reply["kind"] == "error"
        assert message in reply["notice"]


A, B = TableModel(1), TableModel(1, noise=0.3)


def both_of(session, root, link, position, side=0):
    """The token under either model, by the records alone."""
    token_place = TokenPlace(link["run"], 0, position, link.get("run_b", ""), side)
    seen_tokens = measured_tokens(RunStore(root), token_place)
    first, second = (
        replayed(session, token, top_k=4) for token in (seen_tokens[side], seen_tokens[1 - side])
    )
    return first, second, compared_readings(session, first, second)


def test_the_losses_are_those_of_the_rows_and_all_else_is_of_the_tables(tmp_path):
    session = session_of(tmp_path)
    rows, link = recorded(tmp_path, baseline=B)
    row = rows[0]
    seen = row.ids.copy()
    seen[row.cols] = row.shown_ids
    for entry, position in enumerate(row.cols.tolist()):
        first, _, contrast = both_of(session, tmp_path, link, position)
        np.testing.assert_array_equal(first.reading.ids, seen)
        (true,) = [word for word in contrast.candidates if word.asked]
        assert true.reference_token_id == true.candidate_token_id == row.true_ids[entry]
        assert true.reference_nll_nats == row.scores.nll_nats[entry]
        assert true.candidate_nll_nats == row.reference.nll_nats[entry]
        assert true.reference_rank == row.scores.ranks[entry]
        assert true.candidate_rank == row.reference.ranks[entry]
        for word in contrast.candidates:
            token_id = word.reference_token_id
            reference = nll_at(A, seen, position, token_id)
            assert word.reference_nll_nats == pytest.approx(reference, abs=1e-6)
            candidate_loss = nll_at(B, seen, position, token_id)
            assert word.candidate_nll_nats == pytest.approx(candidate_loss, abs=1e-6)
        assert sum(word.reference_listed for word in contrast.candidates) == 4
        assert sum(word.candidate_listed for word in contrast.candidates) == 4
        assert contrast.kl_nats == pytest.approx(row.difference.kl_nats[entry], abs=1e-9)
        assert contrast.reference_entropy_nats == row.scores.entropy_nats[entry]
        assert contrast.flipped == (row.scores.top_ids[entry] != row.reference.top_ids[entry])


@pytest.mark.parametrize("side", ["", "B"])
@pytest.mark.parametrize("asked_for", ["table", "noisy"])
def test_two_models_of_a_run_keep_their_roles(tmp_path, side, asked_for):
    """The run measured `table` against `noisy`, whichever of the two a link calls the candidate."""
    session = session_of(tmp_path)
    rows, link = recorded(tmp_path, baseline=B)
    state = {**link, "token": str(rows[0].cols[0]), "side": side, "compare": asked_for}
    reply = replay(session, {**state, "text": "whatever"})
    assert (reply["set"]["model"], reply["set"]["compare"]) == ("noisy", "table")
    html = asked(served()["both_replayed"], session, {**state, "text": "whatever"})["html"]
    reference, candidate = rows[0].reference.nll_nats[0], rows[0].scores.nll_nats[0]
    assert f"{reference:.3f} → {candidate:.3f} nats" in html
    ranks = rows[0].reference.ranks[0], rows[0].scores.ranks[0]
    assert "{:,} → {:,}".format(*ranks) in html
    # A model that is looked at alone is that of the side; a third one stays where it was put.
    alone = replay(session, {**state, "compare": "", "text": "whatever"})["set"]
    assert alone["model"] == ("noisy" if side else "table")
    third = replay(session, {**state, "compare": "letters", "alone": True, "text": "whatever"})
    assert (third["set"]["model"], third["set"]["compare"]) == ("noisy", "letters")


def test_two_sentences_without_a_mask_are_compared_by_their_losses():
    first, second = "the cat sat on the mat.", "the cat sat on the river."
    losses = []
    for text in (first, second):
        ids, masked = np.array(A.vocabulary.encode(text).ids), A.vocabulary.mask_id
        hidden = [
            np.where(np.arange(len(ids)) == position, masked, ids) for position in range(len(ids))
        ]
        words = range(1, len(ids) - 1)  # one token each, between the special ones
        losses.append(
            sum(nll_at(A, hidden[position], position, ids[position]) for position in words)
        )
    likely = "second" if losses[1] < losses[0] else "first"
    html = asked(served()["pair"], session_of(), {"text": first, "other": second})["html"]
    assert f"The {likely} sentence is more likely" in html
    assert f"{abs(losses[1] - losses[0]):.2f} nats" in html


def test_equal_as_printed_is_equal():
    """Two models whose logits differ in the seventh digit, as two runtimes of the same weights."""
    close = session_of(table=TableModel(1), near=TableModel(1, noise=1e-6))
    state = {"model": "table", "compare": "near"}
    html = contrast_models(close, Question(MASKED, by="change", **state))["html"]
    assert "no probability changes in the digits shown" in html
    assert "changes most" not in html
    sizes = re.findall(r"--from:[\d.]+;--p:([\d.]+)", html)
    assert sizes
    assert set(map(float, sizes)) == {0.0}
    words = Draft(MASKED, ("cat",))
    hidden_html = contrast_models(close, Question(MASKED, draft=words, **state))["html"]
    assert re.search("The hidden word <b[^>]*>cat</b> stays at [0-9.]+%", hidden_html)
    whole = windows("apart", close, text=MASKED.replace("[MASK]", "cat"), **state)[-1]
    assert "Both models give every word the same loss." in whole["html"]["story"]
    assert {word["label"] for answers in [whole] for word in answers["words"]} == {"="}
    search_html = asked(served()["parting"], close, {**state, "sentences": SENTENCES})["html"]
    assert "No difference seen: the predictions are equal to three decimals" in search_html
    assert "data-set" not in search_html
    for page in (html, hidden_html, whole["html"]["table"], search_html):
        assert not re.search(r"[-+−]0\.0+(?!\d)", page)


def tokens_of(root, *options):
    """Every token of the first text, as its run asked for it."""
    rows, link = recorded(root, *options)
    places = [TokenPlace(link["run"], 0, int(col)) for col in rows[0].cols]
    return [measured_tokens(RunStore(root), place)[0] for place in places]


def test_a_model_that_has_changed_is_said(tmp_path):
    token = tokens_of(tmp_path)[0]
    again = replayed(session_of(table=TableModel(2)), token, top_k=3)
    assert "has changed since" in again.changed
    stored, asked_again = token.scores.nll_nats[token.entry], again.mask.scored[0].nll_nats
    assert f"a loss of {stored:.4f} nats; the model now gives {asked_again:.4f}" in again.changed
    replaced = session_of(table=TableModel(1, vocabulary=letter_vocabulary()))
    with pytest.raises(DataError, match="replaced since"):
        replayed(replaced, token, top_k=3)


@pytest.mark.parametrize(("words", "expected"), [("cat, dog", False), ("cat, jumping", True)])
def test_words_of_several_sub_tokens_share_no_100_percent_with_single_ones(words, expected):
    session = session_of()
    question = Question(MASKED, draft=Draft(MASKED, ("",)), words=words)
    fragments = answer(session, question).html
    contrast_html = contrast_models(session, Question(MASKED, words=words, compare="noisy"))["html"]
    for html in (fragments["bars"], fragments["scored"], contrast_html):
        assert ("not part of the model's 100%" in html) == expected
