"""The sentences on which two models differ most, against each of them alone and by hand."""

import json

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy
from table_model import TableModel, letter_vocabulary, sample_texts

from fillmask_ui import divergent_sentences, fill, load_model
from fillmask_ui.comparing.divergence_search import Sentence, look, sentences
from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.records import Example

FIRST, SECOND = TableModel(seed=3), TableModel(seed=3, noise=0.4)
OTHER = TableModel(seed=5, vocabulary=letter_vocabulary())
TEXTS = [Example(number, text) for number, text in enumerate(sample_texts(40, seed=2))]


def last(*arguments, **options):
    return [*divergent_sentences(*arguments, **options)][-1]


def distributions(pair, masked, mask=0):
    """Of each model alone, by token id."""
    for model in pair:
        candidates = fill(model, masked, top_k=None, joint=0).masks[mask].candidates
        ordered = sorted(candidates, key=lambda candidate: candidate.token_id)
        yield np.array([candidate.probability for candidate in ordered])


def check_sides(pair, divergence):
    """Both numbers of everything are those of either model alone."""
    words = [divergence.word] if divergence.word else []
    reference, candidate = (
        fill(model, divergence.masked, top_k=1, candidates=words).masks[divergence.mask]
        for model in pair
    )
    assert (divergence.reference_first, divergence.candidate_first) == (
        reference.candidates[0],
        candidate.candidates[0],
    )
    if words:
        losses = reference.scored[0].nll_nats, candidate.scored[0].nll_nats
        assert (divergence.reference_nll_nats, divergence.candidate_nll_nats) == losses


def test_plain_strings_are_numbered_as_examples():
    search = last(FIRST, SECOND, [example.text for example in TEXTS], most=5)
    assert search.to_dict() == last(FIRST, SECOND, TEXTS, most=5).to_dict()
    for texts in ("the cat sat .", b"the cat sat .", TEXTS[0]):
        with pytest.raises(OptionError, match=r"one text: give a list of them, as in \[text\]"):
            last(FIRST, SECOND, texts)
    for text in (b"the cat sat .", None):
        with pytest.raises(TextError, match="a text was wanted"):
            last(FIRST, SECOND, [text])


def test_every_number_is_that_of_either_model_alone():
    """Of models that a batch changes."""
    pair = [load_model(name) for name in ("embedded", "embedded:int8")]
    text = "The dog barked all night and nobody slept. He left early because of the rain."
    best = last(*pair, [Example(0, text)], most=5).best
    assert best
    for divergence in best:
        start, end, text = divergence.start, divergence.end, divergence.sentence.text
        assert text[start:end] == divergence.word
        assert divergence.masked == f"{text[:start]}[MASK]{text[end:]}"
        check_sides(pair, divergence)
        assert divergence.flipped == (
            divergence.reference_first.token_id != divergence.candidate_first.token_id
        )
        p, q = distributions(pair, divergence.masked)
        assert divergence.kl_nats == pytest.approx(entropy(p, q), rel=1e-6)
        assert divergence.js_nats == pytest.approx(jensenshannon(p, q) ** 2, rel=1e-6)


@pytest.mark.parametrize("second", [SECOND, TableModel(seed=3, noise=0.4, width=70)])
def test_a_sentence_stands_for_the_word_that_changes_most(second):
    """Every word is hidden by hand, in a model that no batch changes; also with a padded one."""
    text = "the old cat walked on the red mat and ran ."
    words, orders = text.split()[:-1], []
    for index, word in enumerate(words):
        masked = " ".join([*words[:index], "[MASK]", *words[index + 1 :], "."])
        p, q = (
            probabilities[: FIRST.vocabulary.size]
            for probabilities in distributions((FIRST, second), masked)
        )
        orders.append((p.argmax() != q.argmax(), entropy(p, q), word))
    looked = look(FIRST, second, Sentence(0, 0, text), words_per_sentence=50)
    few = [
        look(FIRST, SECOND, Sentence(0, 0, text), words_per_sentence=3, seed=seed)
        for seed in range(8)
    ]
    assert few[3] == look(FIRST, SECOND, Sentence(0, 0, text), words_per_sentence=3, seed=3)
    assert len({searched.largest.start for searched in few}) > 1
    assert len(looked.hidden) == len(words)
    assert (looked.largest.flipped, looked.largest.word) == (max(orders)[0], max(orders)[2])
    assert looked.largest.kl_nats == pytest.approx(max(orders)[1])


def test_the_most_changed_come_first_and_the_best_so_far_after_each_sentence():
    searches = [*divergent_sentences(FIRST, SECOND, TEXTS, most=6)]
    for number, search in enumerate(searches, start=1):
        so_far = [search.latest.largest for search in searches[:number] if search.latest.largest]
        expected = sorted(
            so_far, key=lambda divergence: (not divergence.flipped, -divergence.kl_nats)
        )
        assert list(search.best) == expected[:6]
        assert search.looked + search.left_out == number
        assert (search.parted, search.flipped) == (
            len(so_far),
            sum(divergence.flipped for divergence in so_far),
        )
    assert 0 < search.flipped < search.parted
    assert search.hidden_words == sum(len(search.latest.hidden) for search in searches)
    same = last(OTHER, TableModel(seed=5, vocabulary=letter_vocabulary()), TEXTS)
    assert (same.parted, same.flipped, same.best) == (0, 0, ())
    assert json.loads(json.dumps(search.to_dict()))["best"][0]["masked"] == search.best[0].masked


def test_of_different_tokenizers_whole_words_are_compared():
    best = last(FIRST, OTHER, TEXTS, most=200).best
    for change in best:
        assert change.kl_nats is None and change.js_nats is None
        check_sides((FIRST, OTHER), change)
        assert change.flipped == (change.reference_first.word != change.candidate_first.word)
    orders = [
        (divergence.flipped, abs(divergence.reference_nll_nats - divergence.candidate_nll_nats))
        for divergence in best
    ]
    assert orders == sorted(orders, reverse=True)
    # A word that is one token of one vocabulary and several of the other is among them.
    assert any(len(FIRST.vocabulary.encode_word(divergence.word)) == 1 for divergence in best)


def test_a_sentence_with_masks_of_its_own_is_compared_there():
    largest = look(FIRST, SECOND, Sentence(0, 0, "the ___ and the <mask> ran .")).largest
    assert largest.masked == largest.sentence.text == "the [MASK] and the [MASK] ran ."
    assert (
        largest.word is None
        and largest.reference_nll_nats is None
        and largest.candidate_nll_nats is None
    )
    assert largest.masked[largest.start : largest.end] == "[MASK]"
    pairs = [[*distributions((FIRST, SECOND), largest.masked, mask)] for mask in range(2)]
    orders = [(p.argmax() != q.argmax(), entropy(p, q)) for p, q in pairs]
    assert largest.mask == orders.index(max(orders))
    assert largest.kl_nats == pytest.approx(max(orders)[1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four… Five", ["One.", "Two!", "Three?", "Four…", "Five"]),
        ('He said "No." She left.', ['He said "No."', "She left."]),
        ("Dr. Who met J. Smith. He ran.", ["Dr. Who met J. Smith.", "He ran."]),
        ("It is 3.5 p.m. or so. Yes.", ["It is 3.5 p.m. or so.", "Yes."]),
        ("a line\nanother\r\n\n third", ["a line", "another", "third"]),
        ("猫がいる。犬もいる。", ["猫がいる。", "犬もいる。"]),
        (" \n ", []),
    ],
)
def test_sentences(text, expected):
    cut = [*sentences(Example(4, text))]
    assert cut == [Sentence(4, number, sentence) for number, sentence in enumerate(expected)]
