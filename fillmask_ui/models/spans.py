"""Where tokens stand in the text that they were made of."""

import re
from collections.abc import Iterator, Sequence

from fillmask_ui.records import Span


def visible_span(text: str, token: str, start: int, end: int) -> Span:
    """A token's span without the blanks around it, unless it is nothing but blanks.

    Tokens that swallow the blank to their left (`Ġword`, RoBERTa's `<mask>`) report it in their
    range, and Unigram tokenizers give a token that is nothing but a mark (`▁`) the first letter
    of the word behind it. What a reader marks in the text is the word.

    >>> visible_span("a cat", "Ġcat", 1, 5), visible_span("cat", "▁", 0, 1)
    (Span(start=2, end=5), Span(start=0, end=0))
    """
    covered = text[start:end]
    own = covered.strip()
    if own == covered and token not in ("▁", "Ġ"):  # nearly all
        return Span(start, end)
    if own:
        start = end - len(covered.lstrip())
        end = start if token in ("▁", "Ġ") else start + len(own)
    return Span(start, end)


def find_pieces(text: str, pieces: Sequence[str]) -> Iterator[tuple[Span, int]]:
    """Find pieces one after the other in the text they were made from: span and word of each.

    A piece that is not there as it is (changed by the tokenizer, or unknown to it) gets what lies
    up to the next blank or the next piece that is found. A word begins behind a blank.

    >>> [*find_pieces("MK <mask>", ["M", "K", "<mask>"])]
    [(Span(start=0, end=1), 0), (Span(start=1, end=2), 0), (Span(start=3, end=9), 1)]
    """
    # Lower case may change the length of a text (İ): then positions would shift.
    folded = text.lower() if len(text.lower()) == len(text) else text
    end = word = 0
    for index, piece in enumerate(pieces):
        start = end
        while start < len(text) and text[start].isspace():
            start += 1
        word += index > 0 and start > end
        if text.startswith(piece, start) or folded.startswith(piece.lower(), start):
            end = start + len(piece)
        else:
            borders = [r"\s", *map(re.escape, filter(None, pieces[index + 1 : index + 2]))]
            border = re.compile("|".join(borders)).search(text, start + 1)
            end = border.start() if border else len(text)
        yield Span(start, end), word
