"""A text cut into sentences.

A sentence ends at `.`, `!`, `?` or `…` with what closes a quotation, before blanks and anything
but a small letter; at `。`, `！`, `？`; and at the end of a line. It is a rule of thumb, for a
search that no wrong cut can mislead: what is cut is measured just as it is shown. Abbreviations
other than titles and initials end a sentence too early where a capital follows.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fillmask_ui.records import Example

_END = re.compile(r"""[.!?…]["'”’»)\]]*\s+|[。！？][」』”’]*|\n+""")
_NO_END = re.compile(r"(?:^|\W)(?:\w|Mr|Mrs|Ms|Dr|Prof|St)\.\s+$")


@dataclass(frozen=True)
class Sentence:
    """One sentence of one text."""

    example: int  # id of the text
    number: int  # in the text, from 0
    text: str  # without blanks around it


def sentences(example: Example) -> Iterator[Sentence]:
    """The sentences of a text, from left to right.

    >>> [own.text for own in sentences(Example(0, 'Mr. Ray said "No." It was 3 p.m. then! Why?'))]
    ['Mr. Ray said "No."', 'It was 3 p.m. then!', 'Why?']
    """
    start, cut = 0, []
    text = example.text
    for end in _END.finditer(text):
        goes_on = text[end.end() : end.end() + 1].islower() or _NO_END.search(text[: end.end()])
        if "\n" in end.group() or not goes_on:
            cut.append(text[start : end.end()])
            start = end.end()
    pieces = [piece.strip() for piece in (*cut, text[start:])]
    for number, piece in enumerate(filter(None, pieces)):
        yield Sentence(example.id, number, piece)
