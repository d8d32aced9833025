"""How a text becomes token ids and spans: what fast and slow tokenizers do differently."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fillmask_ui.models.marks import Marks
from fillmask_ui.records import Encoding, Span

if TYPE_CHECKING:
    from tokenizers import Tokenizer as RustTokenizer
    from transformers import PreTrainedTokenizerBase

Splitter = Callable[[str, bool], Encoding]
"""Text, and whether to add special tokens, to an encoding; nothing is cut or padded."""


def fast_splitter(backend: RustTokenizer, marks: Marks) -> Splitter:
    """Over the Rust tokenizer, which is used directly, with cutting and padding switched off.

    The Python wrapper around it sets both anew at each call, which fails when two threads do so
    at a time.
    """
    backend.no_truncation()
    backend.no_padding()
    # Without a pre-tokenizer the whole text is one word; the marks say more.
    is_one_word = backend.pre_tokenizer is None

    def split(text: str, special: bool) -> Encoding:
        encoded = backend.encode(text, add_special_tokens=special)
        added = tuple(bool(flag) for flag in encoded.special_tokens_mask)
        by_marks = _words_by_marks(encoded.tokens, added, marks) if is_one_word else None
        return Encoding(
            text=text,
            ids=tuple(encoded.ids),
            tokens=tuple(encoded.tokens),
            spans=tuple(
                _span_of_lone_mark(text, token, _trimmed(text, Span(*offsets)))
                for token, offsets in zip(encoded.tokens, encoded.offsets, strict=True)
            ),
            word_ids=tuple(by_marks or encoded.word_ids),
            special=added,
        )

    return split


def slow_splitter(tokenizer: PreTrainedTokenizerBase, marks: Marks) -> Splitter:
    """Over a tokenizer written in Python, which knows no spans: they are found word by word."""
    specials = set(tokenizer.all_special_tokens)

    def split(text: str, special: bool) -> Encoding:
        tokens = tokenizer.tokenize(text)
        ids = tokenizer.convert_tokens_to_ids(tokens)
        added = [0] * len(ids)
        if special:
            added = tokenizer.get_special_tokens_mask(ids)
            ids = tokenizer.build_inputs_with_special_tokens(ids)
        found = _find_words(text, [t if t in specials else marks.word(t) for t in tokens])
        spans, words = iter(found), iter(_words_by_spans(text, found))
        start, end = Span(0, 0), Span(len(text), len(text))
        return Encoding(
            text=text,
            ids=tuple(ids),
            tokens=tuple(tokenizer.convert_ids_to_tokens(ids)),
            spans=tuple(
                (end if i else start) if flag else next(spans) for i, flag in enumerate(added)
            ),
            word_ids=tuple(None if flag else next(words) for flag in added),
            special=tuple(map(bool, added)),
        )

    return split


def _words_by_marks(tokens: Sequence[str], added: Sequence[bool], marks: Marks) -> list[int | None]:
    words: list[int | None] = []
    current = -1
    for token, special in zip(tokens, added, strict=True):
        if not special and (current < 0 or not marks.is_continuation(token)):
            current += 1
        words.append(None if special else current)
    return words


def _words_by_spans(text: str, spans: Sequence[Span]) -> list[int]:
    """A word begins where a blank precedes a token."""
    words: list[int] = []
    current, end = -1, 0
    for span in spans:
        if current < 0 or any(c.isspace() for c in text[end : span.start]):
            current += 1
        words.append(current)
        end = span.end
    return words


def _trimmed(text: str, span: Span) -> Span:
    """A span without the blanks around it, unless it is nothing but blanks.

    Tokens that swallow the blank to their left (`Ġword`, RoBERTa's `<mask>`) report it in their
    range; what a reader marks in the text is the word.

    >>> _trimmed("a cat", Span(1, 5))
    Span(start=2, end=5)
    """
    covered = text[span.start : span.end]
    if not covered.strip():
        return span
    start = span.end - len(covered.lstrip())
    return Span(start, start + len(covered.strip()))


def _span_of_lone_mark(text: str, token: str, span: Span) -> Span:
    """The span of a token that is nothing but a mark (`▁`, `Ġ`): a blank, or no characters.

    Unigram tokenizers give such a token the first letter of the word behind it.

    >>> _span_of_lone_mark("cat", "▁", Span(0, 1))
    Span(start=0, end=0)
    """
    if token in ("▁", "Ġ") and not text[span.start : span.end].isspace():
        return Span(span.start, span.start)
    return span


def _find_words(text: str, words: Sequence[str]) -> tuple[Span, ...]:
    """Find words one after the other in the text they were made from.

    A word that is not there as it is (changed by the tokenizer, or unknown to it) gets what lies
    up to the next blank or the next word that is found.

    Args:
        text: that was tokenized.
        words: clean words of the tokens, in order.

    >>> _find_words("MK <mask>", ["M", "K", "<mask>"])
    (Span(start=0, end=1), Span(start=1, end=2), Span(start=3, end=9))
    """
    # Lower case may change the length of a text (İ): then positions would shift.
    folded = text.lower() if len(text.lower()) == len(text) else text
    spans: list[Span] = []
    cursor = 0
    for index, word in enumerate(words):
        while cursor < len(text) and text[cursor].isspace():
            cursor += 1
        if text.startswith(word, cursor) or folded.startswith(word.lower(), cursor):
            end = cursor + len(word)
        else:
            borders = [r"\s", *map(re.escape, filter(None, words[index + 1 : index + 2]))]
            border = re.compile("|".join(borders)).search(text, cursor + 1)
            end = border.start() if border else len(text)
        spans.append(Span(cursor, end))
        cursor = end
    return tuple(spans)
