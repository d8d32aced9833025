"""Which characters of a text a token covers, where the tokenizer does not say or says too much."""

from __future__ import annotations

from collections.abc import Sequence

from fillmask_ui.records import Span


def trim(text: str, span: Span) -> Span:
    """A span without the blanks around it, unless it is nothing but blanks.

    Tokens that swallow the blank to their left (`Ġword`, RoBERTa's `<mask>`) report it in their
    range; what a reader marks in the text is the word.

    >>> trim("a cat", Span(1, 5))
    Span(start=2, end=5)
    """
    start, end = span.start, span.end
    while start < end and text[start].isspace():
        start += 1
    if start == end:
        return span
    while text[end - 1].isspace():
        end -= 1
    return Span(start, end)


def span_of_lone_mark(text: str, token: str, span: Span) -> Span:
    """The span of a token that is nothing but a mark (`▁`, `Ġ`): a blank, or no characters.

    Unigram tokenizers give such a token the first letter of the word behind it.

    >>> span_of_lone_mark("cat", "▁", Span(0, 1))
    Span(start=0, end=0)
    """
    if token in ("▁", "Ġ") and not text[span.start : span.end].isspace():
        return Span(span.start, span.start)
    return span


def find_words(text: str, words: Sequence[str]) -> tuple[Span, ...]:
    """Find words one after the other in the text they were made from.

    A word that is not there as it is (changed by the tokenizer, or unknown to it) gets what lies
    up to the next blank or the next word that is found.

    Args:
        text: that was tokenized.
        words: clean words of the tokens, in order.

    >>> find_words("MK <mask>", ["M", "K", "<mask>"])
    (Span(start=0, end=1), Span(start=1, end=2), Span(start=3, end=9))
    """
    # Lower case may change the length of a text (İ): then positions would shift.
    folded = text.lower() if len(text.lower()) == len(text) else text
    spans = []
    cursor = 0
    for index, word in enumerate(words):
        while cursor < len(text) and text[cursor].isspace():
            cursor += 1
        if text.startswith(word, cursor) or folded.startswith(word.lower(), cursor):
            end = cursor + len(word)
        else:
            end = _border(text, cursor, words[index + 1] if index + 1 < len(words) else "")
        spans.append(Span(cursor, end))
        cursor = end
    return tuple(spans)


def _border(text: str, start: int, following: str) -> int:
    end = start
    while end < len(text) and not text[end].isspace():
        if following and end > start and text.startswith(following, end):
            break
        end += 1
    return end
