"""Hiding and filling by click: what the model then sees is what was clicked on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_model import TableVocabulary

from fillmask_ui.filling.prompt import mask_positions
from fillmask_ui.models.vocabulary import load_vocabulary
from fillmask_ui.text_words import text_words
from fillmask_ui.ui.explore import sentence_strip
from fillmask_ui.ui.explore.sentence_strip import Draft

TABLE = TableVocabulary()


@pytest.fixture(scope="session", params=["bert", "roberta", "xlm-roberta", "modernbert", "esm"])
def vocabulary(request, tiny_models):
    return load_vocabulary(tiny_models.folder(request.param), request.param)


def first_words(vocabulary, text):
    encoding = vocabulary.encode(text)
    return encoding, [word.tokens[0] for word in text_words(encoding)]


@pytest.mark.parametrize("text", ["The cat sat on the mat.", "MKTAYIAKQR", "A souvenir, 12 cafés!"])
def test_a_hidden_word_comes_back_as_it_was(vocabulary, text):
    _, tokens = first_words(vocabulary, text)
    assert tokens
    for token in tokens:
        hidden = sentence_strip.hide(Draft(text), vocabulary, token)
        assert len(mask_positions(vocabulary.encode(hidden.text), vocabulary)) == 1
        (word,) = hidden.hidden
        assert word and word in text
        assert sentence_strip.restore(hidden, vocabulary, 0) == Draft(text)


def test_the_model_sees_the_token_that_was_filled_in(vocabulary):
    """Filled text, tokenized again, differs from the masked text in that one id."""
    text = f"The cat {vocabulary.mask_token} on the mat."
    encoding = vocabulary.encode(text)
    (position,) = mask_positions(encoding, vocabulary)
    exact = total = 0
    for token_id in range(vocabulary.size):
        if token_id in vocabulary.special_ids:
            continue
        filled = sentence_strip.fill_in(Draft(text, (None,)), vocabulary, 0, token_id)
        assert filled.hidden == ()
        assert vocabulary.mask_token not in filled.text
        ids = vocabulary.encode(filled.text).ids
        wanted = (*encoding.ids[:position], token_id, *encoding.ids[position + 1 :])
        exact += ids == wanted
        total += 1
    # The rest are tokens that no text gives at this place, such as single bytes of a character.
    assert exact / total > 0.5


@pytest.mark.parametrize(
    ("edited", "hidden"),
    [
        ("The [MASK] sat on the mat.", ("cat",)),  # nothing changed
        ("The ____ sat on the mat.", ("cat",)),  # another spelling of the mask
        ("Then the [MASK] sat on the mat.", ("cat",)),
        ("The [MASK] sat on the [MASK].", ("cat", "mat")),  # a word replaced by a mask
        ("The [MASK] [MASK] sat on the mat.", ("cat", None)),
        ("The sat on the mat.", ()),
        ("Water is [MASK] mat.", (None,)),  # another sentence
    ],
)
def test_edits_by_hand_keep_the_words_of_masks_they_leave_alone(edited, hidden):
    before = Draft("The [MASK] sat on the mat.", ("cat",))
    after = sentence_strip.carried(before, edited, "[MASK]")
    assert after.hidden == hidden
    assert after.text == edited.replace("____", "[MASK]")


@pytest.mark.parametrize("typed", ["[MASK]", "<mask>", "___"])
def test_typing_a_mask_letter_by_letter_hides_no_word(typed):
    draft = Draft()
    for end in range(len(typed) + 1):
        draft = sentence_strip.carried(draft, f"The cat {typed[:end]} here.", "[MASK]")
    assert draft == Draft("The cat [MASK] here.", (None,))


words = st.lists(st.sampled_from(["the", "cat", "sat", "[MASK]", "mat", ",", " ", "  ", "quickly"]))


@given(words, words, st.lists(st.sampled_from(["a", "b", None])))
def test_there_is_always_one_entry_a_mask(old, new, hidden):
    draft = sentence_strip.carried(Draft(" ".join(old), tuple(hidden)), "".join(new), "[MASK]")
    assert len(draft.hidden) == draft.text.count("[MASK]")
    assert "".join(sentence_strip.split_pieces(draft.text, "[MASK]")) == draft.text


@given(st.text(alphabet="the cat.,quickly[MASK] \n"), st.integers(0, 30))
def test_hiding_changes_nothing_else(text, token):
    draft = sentence_strip.carried(Draft(), text, "[MASK]")
    hidden = sentence_strip.hide(draft, TABLE, token)
    assert len(hidden.hidden) - len(draft.hidden) in (0, 1)
    if hidden != draft:
        number = next(i for i, word in enumerate(hidden.hidden) if word is not None)
        assert sentence_strip.restore(hidden, TABLE, number) == draft
