"""Heads on frozen states: fits as of scikit-learn, spans as counted by hand, edits of readers."""

import re
from collections import Counter
from functools import partial

import numpy as np
import pytest
from explore_page import session_of
from features.course.lesson_figures import show_figure
from html_tags import Tags
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from table_model import TableModel

from fillmask_ui.errors import ModelError, TextError
from fillmask_ui.features.course.chapter import chapters
from fillmask_ui.features.course.heads.entity_spans import entity_spans, repaired, score_spans
from fillmask_ui.features.course.heads.frozen_states import (
    fit_tags,
    predict_tags,
    text_states,
    word_tokens,
)
from fillmask_ui.features.course.heads.labeled_texts import (
    MOST_CHARACTERS,
    TAGS,
    labeled_texts,
    read_added,
    read_tagged,
)
from fillmask_ui.features.course.heads.linear_head import DECAY, fit_head, held_out_classes
from fillmask_ui.models import load_model

quick = pytest.mark.quick
TEXTS = labeled_texts()


@pytest.fixture(scope="module")
def show(shipped):
    """What a figure shows of the shipped model, for the pieces' HTML."""
    session = session_of(table=shipped)
    return partial(show_figure, session, shipped)


def of_scikit_learn(states, labels, head):
    """The reference: the same loss, minimised by another program.

    For two classes it has one vector of weights, half of which either class has in a softmax.
    """
    classes = len(np.unique(labels))
    strength = (2 if classes == 2 else 1) / (len(labels) * DECAY)
    inputs = (states - head.centre) / head.scale
    model = LogisticRegression(C=strength, tol=1e-10, max_iter=10_000).fit(inputs, labels)
    return model.predict_proba(inputs)


@pytest.fixture(scope="module")
def sentiment(shipped):
    return text_states(shipped, TEXTS.sentiment), labels_of(TEXTS.sentiment)


def labels_of(examples):
    return np.array([example.label for example in examples])


def test_a_fit_is_that_of_scikit_learn(shipped, sentiment):
    pairs = text_states(shipped, TEXTS.pairs, mean=True), labels_of(TEXTS.pairs)
    learn = word_tokens(shipped, TEXTS.learn)
    tags = [TAGS.index(own.sentence.tags[word]) for own in learn for word in own.word_numbers]
    words = np.concatenate([own.states for own in learn]), np.array(tags)
    for states, labels in (sentiment, pairs, words):
        head = fit_head(states, labels, len(np.unique(labels)))
        expected = of_scikit_learn(states, labels, head)
        np.testing.assert_allclose(head.probabilities(states), expected, atol=1e-5)
        assert head.losses[-1] == pytest.approx(log_loss(labels, expected), abs=1e-5)
        assert head.losses[0] == pytest.approx(np.log(len(np.unique(labels))))
    assert fit_tags(learn).losses == head.losses


@quick
def test_more_steps_meet_scikit_learn_closer():
    rng = np.random.default_rng(5)
    states = rng.normal(size=(60, 20)) @ rng.normal(size=(20, 20)) + 3
    labels = rng.integers(0, 3, 60)
    head = fit_head(states, labels, 3, 1_000)
    expected = of_scikit_learn(states, labels, head)
    np.testing.assert_allclose(head.probabilities(states), expected, atol=1e-6)


@quick
def test_a_head_that_is_checked_has_not_seen_the_example():
    """Other labels of a group change what is predicted of the other groups alone."""
    rng = np.random.default_rng(1)
    states, labels, groups = rng.normal(size=(40, 8)), np.tile([0, 1], 20), np.arange(40) // 2
    before = held_out_classes(states, labels, groups, 2)
    fold = groups % 5 == 3
    after = held_out_classes(states, np.where(fold, 1 - labels, labels), groups, 2)
    assert (before[fold] == after[fold]).all()
    assert (before[~fold] != after[~fold]).any()
    assert held_out_classes(states[:2], labels[:2], groups[:2], 2) is None
    constant = fit_head(np.ones((4, 3)), np.array([0, 1, 1, 1]), 2)
    assert constant.probabilities(np.ones((1, 3)))[0, 1] == pytest.approx(0.75, abs=1e-3)


# ---- Spans


@quick
def test_spans_counted_by_hand():
    """Two of three predicted spans are right, of four true ones: P 2/3, R 1/2, F1 4/7."""
    true = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG", "I-ORG", "B-ORG"]]
    predicted = [["B-PER", "I-PER", "O", "O"], ["O", "B-ORG", "O", "B-ORG"]]
    scores = score_spans(true, predicted)
    assert (scores.right, scores.predicted, scores.true) == (2, 3, 4)
    assert scores.precision == pytest.approx(2 / 3)
    assert scores.recall == pytest.approx(1 / 2)
    assert scores.f1 == pytest.approx(4 / 7)
    assert 0 <= scores.interval.low < scores.f1 < scores.interval.high <= 1
    # A right boundary with a wrong type is wrong, and nothing at all is 0.
    assert score_spans([["B-PER"]], [["B-LOC"]]).f1 == 0
    nothing = score_spans([["O"]], [["O"]])
    assert (nothing.precision, nothing.recall, nothing.f1, nothing.interval) == (0, 0, 0, None)


@quick
def test_tags_that_bio_forbids_begin_an_entity():
    """As conlleval reads them: each of these has three entities."""
    for tags in ("I-PER O I-LOC I-ORG", "B-PER B-PER I-PER I-LOC", "B-LOC I-PER I-ORG I-ORG"):
        assert len(entity_spans(tags.split())) == 3
        fixed = repaired(tags.split())
        assert entity_spans(fixed) == entity_spans(tags.split())
        for before, tag in zip(("O", *fixed), fixed, strict=False):
            assert tag[0] != "I" or before[2:] == tag[2:]


# ---- Sentences


def test_the_sentences_are_as_many_as_the_chapter_says():
    chapter = next(own for own in chapters() if own.name == "heads")
    text = " ".join(step.text for step in chapter.steps)
    assert {f"{len(TEXTS.sentiment)} sentences", f"{len(TEXTS.pairs)} pairs"} <= {
        *re.findall(r"\d+ \w+", text)
    }
    assert f"has {len(TEXTS.test)} sentences" in text
    assert len(TEXTS.learn) == 36
    assert Counter(labels_of(TEXTS.sentiment).tolist()) == {0: 20, 1: 20}
    assert Counter(labels_of(TEXTS.pairs).tolist()) == {0: 12, 1: 12, 2: 12}
    every = [own.text for own in (*TEXTS.sentiment, *TEXTS.learn, *TEXTS.test)]
    assert len({*every}) == len(every)
    entities = [span for own in TEXTS.test for span in entity_spans(own.tags)]
    marks = sum(own.marked.count("[") for own in TEXTS.test)
    assert len(entities) == marks == 27
    assert {span.entity for span in entities} == {"PER", "LOC", "ORG"}


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_sub_tokens_belong_to_the_word_that_they_spell(tiny_models, family):
    model = load_model(tiny_models.folder(family))
    sentences = [read_tagged("[Mt. Sanitas]LOC, we saw, is (very) high!"), TEXTS.learn[9]]
    for tokens in word_tokens(model, sentences):
        assert [*tokens.word_numbers] == sorted(tokens.word_numbers)
        for word, spelled in enumerate(tokens.sentence.spelled):
            parts = "".join(tokens.tokens[token] for token in tokens.tokens_of(word))
            written = re.sub("##|Ġ|▁", "", parts).casefold()
            assert written == spelled.casefold() or "unk" in parts.casefold()
    head = fit_tags([tokens])
    said = predict_tags(head, tokens)
    firsts = [tokens.tokens_of(word)[0] for word in range(len(said.word_tags))]
    assert [said.token_tags[first] for first in firsts] == [*said.word_tags]
    np.testing.assert_allclose(said.probabilities.sum(axis=1), 1)


def test_special_tokens_have_a_vector_of_their_own(shipped):
    """[CLS] is the model's own state there, the mean that over all others."""
    (example,) = TEXTS.sentiment[:1]
    ids = np.array([shipped.vocabulary.encode(example.text).ids])
    rows, cols = np.zeros(ids.shape[1], np.int64), np.arange(ids.shape[1])
    states = shipped.states_at(ids, np.ones_like(ids), rows, cols)
    np.testing.assert_allclose(text_states(shipped, [example])[0], states[0], atol=1e-5)
    mean = text_states(shipped, [example], mean=True)[0]
    np.testing.assert_allclose(mean, states[1:-1].mean(axis=0), atol=1e-5)


# ---- Figures


def shares(html):
    return [float(share) for share in re.findall(r"--p:([\d.]+)", html)]


def test_a_head_learns_step_by_step_and_from_a_reader(show, sentiment):
    states, labels = sentiment
    start, *_, last = (show("sentiment", steps=steps).pieces for steps in (0, 10, 300))
    assert shares(start["prediction"]) == [0.5, 0.5]
    head = fit_head(states, labels, 2)
    assert f"{head.losses[-1]:.3f} nats" in last["fit"]
    groups = np.tile(np.arange(20), 2)
    right = int((held_out_classes(states, labels, groups, 2) == labels).sum())
    assert f"{right} of 40 sentences right" in last["check"]
    # Two sentences of a reader are enough to learn something else.
    typed = {"added": "+ Rain.\n− Sun.", "examples": "yours"}
    assert shares(show("sentiment", sentence="Rain.", **typed).pieces["prediction"])[1] > 0.9
    assert shares(show("sentiment", sentence="Sun.", **typed).pieces["prediction"])[0] > 0.9
    assert "too few" in show("sentiment", **typed).pieces["check"]
    assert (
        "learned from 42 sentences" in show("sentiment", added=typed["added"]).pieces["prediction"]
    )
    assert last["prediction"] != show("sentiment", reads="mean").pieces["prediction"]


def test_the_measured_skill_is_told_as_it_is(show, shipped):
    pieces = show("entailment").pieces
    counts = [
        int(count)
        for count in re.findall(r"<strong>(\d+)</strong> <small>right", pieces["confusion"])
    ]
    states = text_states(shipped, TEXTS.pairs)
    groups = np.arange(len(TEXTS.pairs)) // 3
    predicted = held_out_classes(states, labels_of(TEXTS.pairs), groups, 3)
    assert sum(counts) == (predicted == labels_of(TEXTS.pairs)).sum()
    assert f"{sum(counts)} of 36 pairs right" in Tags(pieces["check"]).text
    assert sum(shares(pieces["prediction"])) == pytest.approx(1, abs=1e-4)


def test_a_reader_changes_tags(show):
    before = show("entity_tags", number=1)
    assert before.set == {"edits": ""}
    assert before.pieces["words"].count("<select") == 7
    changed = show("entity_tags", number=1, tag_0_2="I-ORG", tag_0_0="O", tag_0_1="I-LOC")
    assert changed.set == {"edits": "0_2=I-ORG 0_0=O"}
    assert "I-ORG at “is” continues no ORG" in changed.pieces["words"]
    assert "counts as B-LOC" in changed.pieces["words"]  # I-LOC, whose B-LOC is gone
    assert "with 2 changed" in changed.pieces["effect"]
    losses = re.findall(r">(\d\.\d{3})<", changed.pieces["effect"])
    assert len(losses) == 2 and losses[0] != losses[1]
    # They hold for other sentences, too, until they are restored one by one or together.
    kept = show("entity_tags", number=2, tag_0_0="B-LOC", **changed.set)
    assert kept.set == {"edits": "0_2=I-ORG"}
    assert "London" in kept.pieces["words"]
    reset = show("entity_tags", number=1, restore=1, tag_0_2="I-ORG", **changed.set)
    assert reset.set == {"edits": ""} and "changed" not in reset.pieces["effect"]
    nonsense = {"tag_99_0": "O", "tag_0_99": "O", "tag_0_0": "B-CAT", "edits": "0_1 x=O 7_7=I-"}
    assert show("entity_tags", **nonsense).set == {"edits": ""}


def test_f1_grows_with_sentences(show):
    few, all_of_them = (show("span_scores", count=count).pieces for count in (4, 36))

    def f1(pieces):
        _, _, score = re.findall(r"<dd[^>]*>([\d.]+)", pieces["figures"])
        right, _, predicted = re.search(r"(\d+)( of )(\d+) predicted", pieces["figures"]).groups()
        assert float(score) == pytest.approx(2 * int(right) / (int(predicted) + 27), abs=0.005)
        return float(score)

    assert f1(few) < 0.5 < 0.7 < f1(all_of_them)
    assert few["curve"].count("fm-whisker") == 9
    text = Tags(all_of_them["sentences"]).text
    assert text.count("right") + text.count("wrong") == 27 + int(
        re.search(r"of (\d+) predicted", all_of_them["figures"])[1]
    )


LONG = "x" * 1000


@pytest.mark.parametrize(
    ("figure", "values", "message"),
    [
        ("sentiment", {"examples": "yours"}, "no training sentence"),
        ("sentiment", {"examples": "yours", "added": "+ Good.\n+ Fine."}, "all .* are positive"),
        ("sentiment", {"examples": "yours", "added": "- Bad."}, "all .* are negative"),
        ("sentiment", {"added": "No sign."}, "has no label"),
        ("sentiment", {"added": "+"}, "a sentence is empty"),
        ("sentiment", {"added": f"+ {LONG}"}, "1,000 characters"),
        ("sentiment", {"added": "+ Ha.\n" * 21}, "21 sentences"),
        ("sentiment", {"sentence": " "}, "a sentence is empty"),
        ("sentiment", {"sentence": LONG}, "1,000 characters"),
        ("entailment", {"second": ""}, "a sentence is empty"),
        ("entailment", {"first": LONG}, "1,000 characters"),
        ("entity_tags", {"sentence": ""}, "a sentence is empty"),
        ("entity_tags", {"sentence": LONG}, "1,000 characters"),
    ],
)
def test_what_cannot_be_learned_is_said(show, figure, values, message):
    with pytest.raises(TextError, match=message):
        show(figure, **values)


def test_strange_sentences_are_read_and_never_markup(show):
    for sentence in (
        "<b>Hm</b>",
        "x" * MOST_CHARACTERS,
        "!!!",
        "[MASK]",
        "日本",
        "a . b",
        "[A]PER ][",
    ):
        for figure in ("sentiment", "entity_tags"):
            pieces = show(figure, sentence=sentence).pieces
            assert "b" not in Tags("".join(pieces.values())).names
    assert read_added(" \n") == ()


def test_a_model_without_states_is_refused():
    model = TableModel()
    for figure in ("sentiment", "entailment", "entity_tags", "span_scores"):
        with pytest.raises(ModelError, match="gives logits alone"):
            show_figure(session_of(table=model), model, figure)
