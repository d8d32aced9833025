"""How the strings of a vocabulary mark word boundaries, and the words without the marks.

WordPiece marks what continues a word (`##ing`); byte-level BPE and Unigram mark what begins one
(`Ġthe`, `▁the`), and byte-level BPE also spells every byte as one printable character.
"""

from collections.abc import Iterable
from dataclasses import dataclass

_MARKS = {"pieces": "##", "bytes": "Ġ", "blank": "▁"}
# What a reader sees for tokens that are nothing but blanks.
_VISIBLE_BLANKS = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥"})


@dataclass(frozen=True)
class Marks:
    """The convention of one vocabulary."""

    style: str  # `pieces` (##), `bytes` (Ġ), `blank` (▁) or `none`

    @classmethod
    def of(cls, tokens: Iterable[str]) -> "Marks":
        """The convention that most tokens follow.

        >>> Marks.of(["[MASK]", "play", "##ing", "##ed"]).style
        'pieces'
        """
        # One string operation for most tokens, as few begin with a mark.
        starts = tuple(_MARKS.values())
        marked = [entry for entry in tokens if entry.startswith(starts) and entry != "##"]
        counts = {
            style: sum(entry.startswith(mark) for entry in marked) for style, mark in _MARKS.items()
        }
        return cls(max(_MARKS, key=lambda style: counts[style]) if marked else "none")

    def is_marked(self, text: str) -> bool:
        """Whether a text is written as a raw vocabulary string of this convention."""
        return self.style in _MARKS and text.startswith(_MARKS[self.style])

    def is_continuation(self, token: str) -> bool:
        """Whether a token that is not special continues the word to its left."""
        if self.style == "pieces":
            return token.startswith("##") and len(token) > 2
        return self.style in _MARKS and not self.is_marked(token)

    def word(self, token: str) -> str:
        """A token that is not special, without its marks.

        Bytes that are no complete UTF-8 stay as the raw token, and so does whatever would not
        be visible.

        >>> Marks("bytes").word("ĠcafÃ©"), Marks("bytes").word("Ã"), Marks("blank").word("▁")
        ('café', 'Ã', '␣')
        """
        text = self._text(token)
        if not text.strip(" \n\t"):
            return text.translate(_VISIBLE_BLANKS) or token
        stripped = text.removeprefix(" ")
        is_visible = not stripped.isspace() and any(map(str.isprintable, stripped))
        return stripped if is_visible and "\ufffd" not in stripped else token

    def _text(self, token: str) -> str:
        if self.style == "pieces":
            return token[2:] if self.is_continuation(token) else token
        if self.style == "blank":
            return token.replace("▁", " ")
        if self.style == "none":
            return token.removesuffix("</w>")
        from tokenizers.decoders import ByteLevel  # heavy, and `--help` imports this module

        return str(ByteLevel().decode([token]))
