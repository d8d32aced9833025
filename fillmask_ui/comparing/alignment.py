"""The words of one text under two tokenizers: which stand for the same characters.

Where both cut a text alike, that is word by word. Else it is the shortest stretches at whose ends
both have the end of a word: `don` `'t` and `don` `'` `t` share `don` and `'t`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fillmask_ui.errors import TextError
from fillmask_ui.filling.surprise import encode_unmasked
from fillmask_ui.filling.text_words import TextWord, text_words
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Encoding


@dataclass(frozen=True)
class SharedStretch:
    """Words of either tokenizer that together stand for the same characters."""

    start: int  # its first character
    end: int  # one past its last
    first: range  # numbers of the words of A
    second: range  # numbers of the words of B


@dataclass(frozen=True)
class Alignment:
    """The words of one text under two tokenizers."""

    text: str
    alike: bool  # whether both read the very same tokens
    stretches: tuple[SharedStretch, ...]  # from left to right; one per word where `alike`


def align_text(model_a: MaskedLM, model_b: MaskedLM, text: str) -> Alignment:
    """The words of a text without masks under two models' tokenizers.

    Raises:
        TextError: as `compare_sentence`.
    """
    first = encode_unmasked(model_a, text)
    try:
        second = encode_unmasked(model_b, text)
    except TextError as error:
        raise TextError(f"{model_b.signature.name}: {error}") from error
    alike = _tokens(first) == _tokens(second)
    stretches = align_words(
        text_words(first, model_a.vocabulary), text_words(second, model_b.vocabulary)
    )
    return Alignment(first.text, alike, stretches)


def _tokens(encoding: Encoding) -> tuple[object, ...]:
    return encoding.ids, encoding.tokens, encoding.spans


def align_words(first: Sequence[TextWord], second: Sequence[TextWord]) -> tuple[SharedStretch, ...]:
    """The shortest stretches that both cut at their ends; a word that one lacks is left out.

    >>> don, mark, t = (TextWord("don't"[a:b], a, b, (n,)) for n, (a, b) in
    ...     enumerate([(0, 3), (3, 4), (4, 5)]))
    >>> align_words([don, mark, t], [don, TextWord("'t", 3, 5, (1,))])[1]
    SharedStretch(start=3, end=5, first=range(1, 3), second=range(1, 2))
    """
    stretches, here, there = [], 0, 0
    while here < len(first) and there < len(second):
        if first[here].end <= second[there].start:
            here += 1
        elif second[there].end <= first[here].start:
            there += 1
        else:
            begin = (here, there)
            end = max(first[here].end, second[there].end)
            while True:
                while here < len(first) and first[here].start < end:
                    here += 1
                while there < len(second) and second[there].start < end:
                    there += 1
                reached = max(first[here - 1].end, second[there - 1].end)
                if reached == end:
                    break
                end = reached
            start = min(first[begin[0]].start, second[begin[1]].start)
            stretches.append(
                SharedStretch(start, end, range(begin[0], here), range(begin[1], there))
            )
    return tuple(stretches)
