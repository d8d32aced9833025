"""How the strings of a vocabulary mark word boundaries, and the words without the marks.

WordPiece marks what continues a word (`##ing`); byte-level BPE and Unigram mark what begins one
(`Ġthe`, `▁the`), and byte-level BPE also spells every byte as one printable character.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

# What a reader sees for tokens that are nothing but blanks.
_VISIBLE_BLANKS = {" ": "␣", "\n": "⏎", "\t": "⇥"}

_STARTS = {"bytes": "Ġ", "blank": "▁"}


@cache
def _byte_of_character() -> dict[str, int]:
    """The 256 printable characters that stand for bytes in byte-level vocabularies.

    Source:
        The table of GPT-2: bytes that print in Latin-1 stand for themselves, the other 68 get
        the code points from 256 on, in order.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in printable)
    table = {chr(byte): byte for byte in printable}
    table.update({chr(256 + index): byte for index, byte in enumerate(others)})
    return table


@dataclass(frozen=True)
class Marks:
    """The convention of one vocabulary.

    Attributes:
        style: `pieces` (##), `bytes` (Ġ), `blank` (▁) or `none`.
    """

    style: str

    @classmethod
    def of(cls, tokens: Iterable[str]) -> Marks:
        """The convention that most tokens follow.

        >>> Marks.of(["[MASK]", "play", "##ing", "##ed"]).style
        'pieces'
        """
        counts = dict.fromkeys(("pieces", "bytes", "blank"), 0)
        for token in tokens:
            if token.startswith("##") and len(token) > 2:
                counts["pieces"] += 1
            elif token.startswith("Ġ"):
                counts["bytes"] += 1
            elif token.startswith("▁"):
                counts["blank"] += 1
        best = max(counts, key=lambda style: counts[style])
        return cls(best if counts[best] else "none")

    def is_marked(self, text: str) -> bool:
        """Whether a text is written as a raw vocabulary string of this convention."""
        mark = "##" if self.style == "pieces" else _STARTS.get(self.style)
        return mark is not None and text.startswith(mark)

    def is_continuation(self, token: str) -> bool:
        """Whether a token that is not special continues the word to its left."""
        if self.style == "pieces":
            return token.startswith("##") and len(token) > 2
        start = _STARTS.get(self.style)
        return start is not None and not token.startswith(start)

    def word(self, token: str) -> str:
        """A token that is not special, without its marks.

        Bytes that are no complete UTF-8 stay as the raw token, and so does whatever would not
        be visible.

        >>> Marks("bytes").word("ĠcafÃ©"), Marks("bytes").word("Ã"), Marks("blank").word("▁")
        ('café', 'Ã', '␣')
        """
        text = self._text(token)
        if text is None:
            return token
        if text and all(character in _VISIBLE_BLANKS for character in text):
            return "".join(_VISIBLE_BLANKS[character] for character in text)
        stripped = text.removeprefix(" ")
        return stripped if stripped and not stripped.isspace() and _visible(stripped) else token

    def _text(self, token: str) -> str | None:
        if self.style == "pieces":
            return token[2:] if self.is_continuation(token) else token
        if self.style == "blank":
            return token.replace("▁", " ")
        if self.style == "bytes":
            table = _byte_of_character()
            if any(character not in table for character in token):
                return token  # an added token, written as it is
            try:
                return bytes(table[character] for character in token).decode("utf-8")
            except UnicodeDecodeError:
                return None
        return token.removesuffix("</w>")


def _visible(text: str) -> bool:
    return any(character.isprintable() for character in text)
