"""What tokens are called wherever they are shown: as words, the endings of words marked as such."""

from collections.abc import Iterable

from fillmask_ui.models.marks import Marks


def piece_name(word: str, *, continues: bool) -> str:
    """A token's word; letters that continue the word to their left begin with three dots.

    >>> piece_name("ing", continues=True), piece_name(".", continues=True)
    ('…ing', '.')
    """
    return f"…{word}" if continues and word[:1].isalnum() else word


class TokenNames:
    """Names of vocabulary strings, by the convention that some of them show.

    >>> names = TokenNames(["play", "##ing"])
    >>> names("play"), names("##ing"), names("[UNK]")
    ('play', '…ing', '[UNK]')
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        self._marks = Marks.of(tokens)

    def __call__(self, token: str, *, first: bool = False) -> str:
        """The name of a token; what begins a text (`first`) continues no word."""
        marks = self._marks
        return piece_name(marks.word(token), continues=not first and marks.is_continuation(token))
