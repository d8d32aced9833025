"""The words of a text, made of the tokens that a model sees.

A word is what a reader would hide or be surprised at: `freezes` is one, be it a token or two. It is
the run of tokens that the tokenizer counts to one word, cut where letters meet signs, since some
tokenizers count the full stop to the word before it. Masks and special tokens belong to no word.
"""

from dataclasses import dataclass

from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding


@dataclass(frozen=True)
class TextWord:
    """One word of an encoded text."""

    text: str  # as it stands there, without blanks around it
    start: int  # its first character in the encoded text
    end: int  # one past its last
    tokens: tuple[int, ...]  # indices of its tokens in the encoding, ascending


def text_words(encoding: Encoding, vocabulary: Vocabulary) -> tuple[TextWord, ...]:
    """The words of a text from left to right; each stands for at least one character.

    >>> from fillmask_ui import load_model
    >>> vocabulary = load_model("embedded").vocabulary
    >>> [word.text for word in text_words(vocabulary.encode("It freezes, [MASK]!"), vocabulary)]
    ['It', 'freezes', ',', '!']
    """
    groups: list[list[int]] = []
    before: tuple[int | None, bool] | None = None  # of the token to the left
    marks: list[int] = []  # tokens to the left that are nothing but a mark (`Ġ`, `▁`)
    for index, word in enumerate(encoding.word_ids):
        start, end = characters(encoding, index)
        if encoding.special[index] or encoding.ids[index] == vocabulary.mask_id:
            before, marks = None, []
            continue
        if start == end:
            before = None
            marks.append(index)
            continue
        here = (word, any(c.isalnum() for c in encoding.text[start:end]))
        if here == before and word is not None:
            groups[-1].append(index)
        else:
            # Some tokenizers write the mark of a word as a token of its own, which goes with it.
            groups.append([*(i for i in marks if encoding.word_ids[i] == word is not None), index])
        before, marks = here, []
    return tuple(_word(encoding, tokens) for tokens in groups)


def _word(encoding: Encoding, tokens: list[int]) -> TextWord:
    start, end = characters(encoding, tokens[0])[0], characters(encoding, tokens[-1])[1]
    return TextWord(encoding.text[start:end], start, end, tuple(tokens))


def characters(encoding: Encoding, token: int) -> tuple[int, int]:
    """A token's range of characters; some tokenizers count the blank before a word to it."""
    start, end = encoding.spans[token].start, encoding.spans[token].end
    while start < end and encoding.text[start].isspace():
        start += 1
    return start, end
