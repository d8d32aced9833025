"""How the strings of a vocabulary mark where words begin."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

_PREFIXES = {"pieces": "##", "bytes": "Ġ", "blank": "▁"}
# What a reader sees for tokens that are nothing but blanks.
_VISIBLE_BLANKS = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥"})


@dataclass(frozen=True)
class SubwordPrefixes:
    """How the strings of a vocabulary mark word boundaries, and the words without the marks.

    WordPiece marks what continues a word (`##ing`); byte-level BPE and Unigram mark what begins
    one (`Ġthe`, `▁the`), and byte-level BPE also spells every byte as one printable character.
    """

    style: str  # `pieces` (##), `bytes` (Ġ), `blank` (▁) or `none`

    @classmethod
    def of(cls, tokens: Iterable[str]) -> "SubwordPrefixes":
        """What most tokens follow.

        >>> SubwordPrefixes.of(["[MASK]", "play", "##ing", "##ed"]).style
        'pieces'
        """
        counts = Counter(
            style
            for own in tokens
            for style, mark in _PREFIXES.items()
            if own.startswith(mark) and own != "##"
        )
        return cls(max(counts, key=lambda style: counts[style], default="none"))

    def is_marked(self, text: str) -> bool:
        """Whether a text is written as a raw vocabulary string of this convention."""
        return self.style in _PREFIXES and text.startswith(_PREFIXES[self.style])

    def is_continuation(self, token: str) -> bool:
        """Whether a token that is not special continues the word to its left."""
        if self.style == "pieces":
            return token.startswith("##") and len(token) > 2
        return self.style in _PREFIXES and not self.is_marked(token)

    def word(self, token: str) -> str:
        """A token that is not special, without its marks; raw where that would not be visible.

        >>> [SubwordPrefixes("bytes").word(token) for token in ("ĠcafÃ©", "Ã", "Ġ")]
        ['café', 'Ã', '␣']
        """
        if self.style == "pieces":
            text = token[2:] if self.is_continuation(token) else token
        elif self.style == "blank":
            text = token.replace("▁", " ")
        elif self.style == "none":
            text = token.removesuffix("</w>")
        else:
            from tokenizers.decoders import ByteLevel

            text = ByteLevel().decode([token])  # with U+FFFD for half a letter
        if not text.strip(" \n\t"):
            return text.translate(_VISIBLE_BLANKS) or token
        text = text.removeprefix(" ")
        is_visible = not text.isspace() and any(map(str.isprintable, text))
        return text if is_visible and "\ufffd" not in text else token
