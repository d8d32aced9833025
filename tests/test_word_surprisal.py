"""Surprisal and occlusion against what Explore, `evaluate`, torch and transformers say."""

import math

import numpy as np
import pytest
import torch
from table_model import TableModel, log_softmax_at

from fillmask_ui import EvaluationConfig, evaluate, filling, load_model, summarize, surprisal
from fillmask_ui.errors import OptionError, TextError

MODEL = TableModel(seed=3)
WORDS = MODEL.vocabulary
SENTENCE = "the cat was walking, and it warmed the stone."


def test_each_word_against_cross_entropy_by_hand():
    """walk ##ing: once both are masks, once the first stands there."""
    sentence = surprisal(MODEL, SENTENCE)
    ids, mask = list(sentence.encoding.ids), WORDS.mask_id
    assert [word.word.text for word in sentence.words] == [
        *("the", "cat", "was", "walking", ",", "and", "it", "warmed", "the", "stone", "."),
    ]
    cat, walking = sentence.words[1], sentence.words[3]
    hidden = {2: [mask], 4: [mask, mask], 5: [mask]}
    expected = {
        at: -log_softmax_at(MODEL, [*ids[:at], *masks, *ids[at + len(masks) :]], at)[ids[at]].item()
        for at, masks in hidden.items()
    }
    assert cat.nll_nats == pytest.approx(expected[2], abs=1e-9)
    assert [part.token for part in walking.parts] == ["walk", "##ing"]
    parts = [part.nll_nats for part in walking.parts]
    np.testing.assert_allclose(parts, [expected[4], expected[5]], atol=1e-9)
    assert walking.nll_nats == pytest.approx(sum(parts))
    assert walking.rank is None


def test_a_text_that_is_given_is_read_and_not_scored():
    """Its words have the losses of the whole text by hand; those of minicons are compared apart."""
    whole = surprisal(MODEL, f"a dog ran. {SENTENCE}")
    behind = surprisal(MODEL, SENTENCE, given=" a dog ran. ")
    assert behind.words == whole.words[4:] and behind.given == "a dog ran."
    assert behind.encoding.text == behind.to_dict()["text"] == f"a dog ran. {SENTENCE}"
    assert surprisal(MODEL, SENTENCE, given=" ") == surprisal(MODEL, SENTENCE)
    for text, given in ((" ", "a dog"), (SENTENCE, "a [MASK]"), (SENTENCE, "a dog " * 500)):
        with pytest.raises(TextError):
            surprisal(MODEL, text, given=given)


@pytest.mark.parametrize(
    "text", [SENTENCE, "happiness", "the ☃ ran quickly!", f"the quick{'s' * 70} ran"]
)
def test_a_click_shows_the_same_numbers(text):
    """The loss is that of the hidden word, `wanted` the candidates, once the word is hidden."""
    model = TableModel(seed=3, max_tokens=400)
    for sentence in surprisal(model, text).words:
        check_click(model, text, sentence)
    assert max(rows for _, rows in model.calls) <= 64


def check_click(model, text, word):
    start, end = word.word.start, word.word.end
    clicked = text[:start] + model.vocabulary.mask_token + text[end:]
    (mask,) = filling.fill(model, clicked, top_k=5).masks
    assert [best.token_id for best in word.expected] == [
        candidate.token_id for candidate in mask.candidates
    ]
    for best, same in zip(word.expected, mask.candidates, strict=True):
        assert best.probability == pytest.approx(same.probability, abs=1e-5)
    if not word.unknown:
        hidden = filling.score_candidate_at(model, clicked, text[start:end], 0)
        assert word.nll_nats == pytest.approx(hidden.nll_nats, abs=1e-4)
        assert word.rank == hidden.rank


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert"])
def test_real_models(family, tiny_models):
    """A click, `evaluate` and transformers' own pipeline agree; the models are of random weights.

    roberta writes the prefix of `unhappy` as a token of its own, which is hidden with the word.
    """
    from transformers import pipeline

    folder = tiny_models.folder(family, onnx=False)
    model = load_model(folder, runtime="torch")
    text = "It freezes, the cat walked over the unhappy café."
    sentence = surprisal(model, text)
    for own in sentence.words:
        check_click(model, text, own)
    assert sentence.summary.pseudo_perplexity == pytest.approx(evaluated(model, text), rel=1e-5)
    reference = pipeline("fill-mask", model=str(folder), device="cpu")
    alone = next(word for word in sentence.words if len(word.parts) == 1)
    start, end = alone.word.start, alone.word.end
    hidden = text[:start] + reference.tokenizer.mask_token + text[end:]
    expected = reference(hidden, top_k=model.signature.vocabulary_size)
    (same,) = [own for own in expected if own["token"] == alone.parts[0].token_id]
    assert alone.probability == pytest.approx(same["score"], rel=1e-4)
    assert [own.token_id for own in alone.expected] == [own["token"] for own in expected[:5]]


def evaluated(model, text):
    config = EvaluationConfig("pseudo-perplexity", within_word=True)
    return math.exp(summarize(evaluate(model, [text], config)).model.mean_nll_nats)


@pytest.mark.parametrize("text", [SENTENCE, "walked", "the ☃ ran quickly!"])
def test_pseudo_perplexity_is_that_of_an_evaluation(text):
    """Unknown words count in neither."""
    sentence = surprisal(MODEL, text)
    summary, spelled = sentence.summary, [word for word in sentence.words if word.word.text != "☃"]
    assert all(word.nll_nats > 0 for word in sentence.words)
    assert [word for word in sentence.words if not word.unknown] == spelled
    assert summary.total_nll_nats == pytest.approx(sum(own.nll_nats for own in spelled))
    assert summary.pseudo_perplexity == pytest.approx(evaluated(MODEL, text), rel=1e-9)
    assert summary.mean_token_nll_nats == pytest.approx(math.log(summary.pseudo_perplexity))
    assert summary.mean_word_nll_nats == pytest.approx(np.mean([own.nll_nats for own in spelled]))
    assert summary.most == max(spelled, key=lambda own: own.nll_nats)


def test_windows_give_the_same_words_and_can_be_stopped_and_resumed():
    model = TableModel(seed=3)
    whole = surprisal(model, SENTENCE).words
    model.calls.clear()
    windows = [*filling.surprisal_windows(model, SENTENCE, window_tokens=40)]
    assert len(windows) == len(model.calls) > 4
    assert [word for window in windows for word in window] == [*whole]
    assert all(rows * length <= 48 for (_, length), rows in model.calls)
    remaining = filling.surprisal_windows(model, SENTENCE, start=len(windows[0]))
    assert [*windows[0], *(word for window in remaining for word in window)] == [*whole]


def test_impossible_words_are_null_in_json():
    model = TableModel(seed=3)
    model.own[WORDS.mask_id, WORDS.ids["cat"]] = -np.inf
    sentence = surprisal(model, "the cat ran")
    assert sentence.words[1].nll_nats == math.inf
    assert sentence.summary.most == sentence.words[1]
    assert surprisal(model, "☃ ☃").summary is None
    written = sentence.to_dict()
    assert written["words"][1]["nll_nats"] is None
    assert written["total_nll_nats"] is written["pseudo_perplexity"] is None


TEXT = "the walking [MASK] ran, and the [MASK] sat"


@pytest.mark.parametrize(("mask", "position"), [(0, 4), (1, 9)])
def test_every_other_word_by_hand(mask, position):
    """KL from torch; a word of two sub-tokens is replaced by two masks."""
    sentence = filling.occlude(MODEL, TEXT, mask)
    ids = list(WORDS.encode(TEXT).ids)
    whole = log_softmax_at(MODEL, ids, position)
    assert (sentence.position, sentence.target.token_id) == (position, int(whole.argmax()))
    assert sentence.target.probability == pytest.approx(whole.max().exp().item())
    assert [word.word.text for word in sentence.words] == [
        *("the", "walking", "ran", ",", "and", "the", "sat"),
    ]
    for own in sentence.words:
        seen = [WORDS.mask_id if i in own.word.tokens else token for i, token in enumerate(ids)]
        without = log_softmax_at(MODEL, seen, position)
        expected = torch.nn.functional.kl_div(without, whole, log_target=True, reduction="sum")
        assert own.kl_nats == pytest.approx(expected.item(), abs=1e-9)
        change = (without - whole)[sentence.target.token_id].item()
        assert own.change_nats == pytest.approx(change, abs=1e-9)
        expected = without[sentence.target.token_id].exp().item()
        assert own.probability == pytest.approx(expected, rel=1e-9)


def test_the_true_word_is_followed_where_it_is_one_token():
    sentence = filling.occlude(MODEL, TEXT, word="dog")
    assert (sentence.target.word, sentence.is_true) == ("dog", True)
    (scored,) = filling.score_candidates(MODEL, TEXT, ["dog"])[0]
    assert (sentence.target.rank, sentence.target.nll_nats) == (scored.rank, scored.nll_nats)
    best = filling.occlude(MODEL, TEXT).target
    for unscorable in ("walking", "☃", "quick" + "s" * 80):
        sentence = filling.occlude(MODEL, TEXT, word=unscorable)
        assert (sentence.target, sentence.is_true) == (best, False)


def test_windows():
    model = TableModel(seed=3)
    whole = filling.occlude(model, TEXT)
    model.calls.clear()
    windows = [*filling.occlusion_windows(model, TEXT, window_tokens=30)]
    assert len(windows) == len(model.calls) - 1 > 2
    assert [word for window in windows for word in window.words] == [*whole.words]
    (last,) = filling.occlusion_windows(model, TEXT, start=6)
    assert last.words == whole.words[6:]
    assert filling.occlude(MODEL, "[MASK]").words == ()
    for mask in (-1, 2):
        with pytest.raises(OptionError, match="the text has 2 masks, and none of this number"):
            filling.occlude(MODEL, TEXT, mask)


def test_impossible_tokens_add_nothing():
    model = TableModel(seed=3)
    model.own[WORDS.mask_id, WORDS.ids["cat"]] = -np.inf
    sentence = filling.occlude(model, "the [MASK] ran")
    assert all(math.isfinite(word.kl_nats) for word in sentence.words)
    # And where only the other word makes it impossible, no number can hold the distance.
    model.left[WORDS.mask_id, WORDS.ids["dog"]] = -np.inf
    assert filling.occlude(model, "the [MASK] ran").words[0].kl_nats == math.inf
