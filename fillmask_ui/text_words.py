"""Which tokens of a text make a word: the one definition that everything else reads.

Definition. A word is what a reader would hide, be it one token or several: neighbouring tokens that
the tokenizer counts to one of its units (`Encoding.word_ids` as it came from the tokenizer), cut at
blanks and where letters meet signs. Tokens that share a character stay together. A blank that is a
token of its own makes a word of its own, but for the lone mark of a beginning (`▁`, `Ġ`), which
goes with what it begins.

Scripts that write no blanks between words (Chinese, Japanese, Thai, ...) do not show where a word
ends. There a word is a token.

Rivals: the tokenizer's own units are whole clauses where it does not cut at blanks, and take the
comma into the word where it cuts at blanks alone; `##`, `▁` and `@@` mark words differently.

Source:
    Scripts without blanks between words: Unicode Standard Annex #14, classes ID and SA.
"""

import re
import unicodedata
from dataclasses import dataclass

from fillmask_ui.records import Encoding, Span

_WITHOUT_BLANKS = (
    "\u0e00-\u0fff"  # Thai, Lao, Tibetan
    "\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff"  # Myanmar
    "\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\uaa80-\uaadf"  # Khmer, Tai Le, Tai Tham, Tai Viet
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U0003fffd"
    "\u3041-\u312f\u31f0-\u31ff\uff66-\uff9f"  # Hiragana, Katakana, Bopomofo
)
UNSPACED = re.compile(f"[{_WITHOUT_BLANKS}]")
UNSPACED_NOTE = "this script has no blanks between words: each token counts as a word"
LONE_MARKS = ("▁", "Ġ")  # tokens that only mark the beginning of a word
_VISIBLE_BLANKS = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥"})


@dataclass(frozen=True)
class TextWord:
    """One word of an encoded text."""

    text: str  # without blanks around it; of a blank word the blanks as signs (␣)
    start: int  # its first character in the encoded text
    end: int  # one past its last
    tokens: tuple[int, ...]  # indices of its tokens in the encoding, ascending
    is_blank: bool = False  # whether it is nothing but blanks


def text_words(encoding: Encoding) -> tuple[TextWord, ...]:
    """The words of a text from left to right, without masks and special tokens.

    >>> from fillmask_ui import load_model
    >>> encoding = load_model("embedded").vocabulary.encode("It freezes, [MASK]!")
    >>> [word.text for word in text_words(encoding)]
    ['It', 'freezes', ',', '!']
    """
    whole, last = encoding.text, len(encoding) - 1
    groups: dict[int, list[int]] = {}
    for index, number in enumerate(encoding.word_ids):
        if number is not None:
            groups.setdefault(number, []).append(index)
    words = []
    for tokens in groups.values():
        ranges = [characters(encoding, index) for index in tokens]
        visible = [span for span in ranges if span.start < span.end]
        spans = visible or [encoding.spans[index] for index in tokens]
        start, end = spans[0].start, max(span.end for span in spans)
        # What the tokenizer drops, such as accents, goes with the word that it follows.
        behind = min(tokens[-1] + 1, last)
        border = len(whole) if encoding.special[behind] else encoding.spans[behind].start
        while visible and end < border and not whole[end].isspace():
            end += 1
        # Some tokenizers say only where a blank ends.
        floor = encoding.spans[tokens[0] - 1].end if tokens[0] else 0
        while not visible and start > floor and whole[start - 1].isspace():
            start -= 1
        covered = whole[start:end]
        text = covered if visible else visible_blanks(covered) or "␣"
        words.append(TextWord(text, start, end, tuple(tokens), not visible))
    return tuple(words)


def number_words(encoding: Encoding, mask_id: int) -> tuple[int | None, ...]:
    """The word of each token, of an encoding whose `word_ids` are the tokenizer's own units.

    T indices, ascending; None for masks and for special tokens that the tokenizer adds.
    """
    numbers: list[int | None] = []
    left: _Fragment | None = None
    count = 0
    for index, token_id in enumerate(encoding.ids):
        if encoding.special[index] or token_id == mask_id:
            numbers.append(None)
            left = None
            continue
        fragment = _Fragment.of(encoding, index, left)
        continues = left is not None and fragment.continues(left, encoding.text)
        if not continues:
            count += 1
        numbers.append(count - 1)
        if not (continues and fragment.is_empty):
            left = fragment
    return tuple(numbers)


def characters(encoding: Encoding, token: int) -> Span:
    """A token's range of characters, without blanks before it."""
    start, end = encoding.spans[token].start, encoding.spans[token].end
    while start < end and encoding.text[start].isspace():
        start += 1
    return Span(start, end)


def visible_blanks(text: str) -> str:
    """Blanks as signs.

    >>> visible_blanks("  ")
    '␣␣'
    """
    return re.sub(r"\s", "␣", text.translate(_VISIBLE_BLANKS))


def is_unspaced(text: str) -> bool:
    """Whether most of a text is in a script without blanks between words.

    >>> is_unspaced("今天天气很好。"), is_unspaced("Tokyo (東京) is a city.")
    (True, False)
    """
    return 2 * len(UNSPACED.findall(text)) >= len("".join(text.split())) > 0


def meet_unspaced(left: str, right: str) -> bool:
    """Whether one of two neighbouring characters is of a script without blanks between words."""
    return bool(UNSPACED.match(left) or UNSPACED.match(right))


def word_fault(encoding: Encoding) -> str:
    """What contradicts the definition of a word, in words; blank if nothing does.

    Each token but masks and special ones is in one word, no word has a blank inside, and
    words, masks and blanks are the whole text.
    """
    words = text_words(encoding)
    covered = set[int]()
    for word in words:
        covered.update(range(word.start, word.end))
        if not word.is_blank and re.search(r"\s", word.text):
            return f"{word.text!r} counts as one word"
    for span, number in zip(encoding.spans, encoding.word_ids, strict=True):
        if number is None:
            covered.update(range(span.start, span.end))
    lost = [c for at, c in enumerate(encoding.text) if at not in covered and not c.isspace()]
    return f"no token stands for {''.join(lost)!r} in {encoding.text!r}" if lost else ""


@dataclass(frozen=True)
class _Fragment:
    """One token as a part of a word."""

    token: str
    unit: int | None  # of the tokenizer
    span: Span  # with blanks
    visible: Span  # without blanks before it
    has_letters: bool  # else it has signs alone

    @classmethod
    def of(cls, encoding: Encoding, index: int, left: "_Fragment | None") -> "_Fragment":
        visible = characters(encoding, index)
        text = encoding.text[visible.start : visible.end]
        has_letters = text.isalnum() or any(map(str.isalnum, text))
        if not has_letters and not any(unicodedata.category(c)[0] in "PS" for c in text):
            # Accents and joiners are of the kind of what they follow.
            has_letters = left is not None and left.has_letters
        unit, span = encoding.word_ids[index], encoding.spans[index]
        return cls(encoding.tokens[index], unit, span, visible, has_letters)

    @property
    def is_empty(self) -> bool:
        """Whether it stands for no character, and marks nothing."""
        return self.span.start == self.span.end and self.token not in LONE_MARKS

    @property
    def is_blank(self) -> bool:
        return self.visible.start == self.visible.end

    def continues(self, left: "_Fragment", text: str) -> bool:
        """Whether it is of the same word as the token to its left."""
        if self.span.start < left.span.end:
            return True
        if self.unit is None or self.unit != left.unit:
            return False
        if re.search(r"\s", text[left.span.end : self.visible.start]):
            return False
        if self.is_blank or left.is_blank:
            return self.is_empty or (left.token in LONE_MARKS and not self.is_blank)
        if meet_unspaced(text[left.span.end - 1], text[self.visible.start]):
            return False
        return self.has_letters == left.has_letters
