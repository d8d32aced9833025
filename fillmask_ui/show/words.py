"""What to call a token on a page: a word as a reader knows it, an ending as one."""

from collections import Counter
from collections.abc import Iterable, Sequence

from fillmask_ui.models.subword_prefixes import SubwordPrefixes
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Candidate

_ENDING = "…"


def token_name(token: str, word: str, ending: bool) -> str:
    """A token's name; an ending is marked, and what would be blank is shown raw.

    >>> token_name("##ing", "ing", True), token_name("Ġcat", "cat", False)
    ('…ing', 'cat')
    """
    if not word.strip():
        return token
    return _ENDING + word if ending and word[:1].isalnum() else word


def candidate_names(candidates: Sequence[Candidate], vocabulary: Vocabulary) -> list[str]:
    """What to call each of some candidates; two that would be called alike show their tokens."""
    names = [
        token_name(c.token, c.word, vocabulary.is_continuation(c.token_id)) for c in candidates
    ]
    often = Counter(names)
    return [
        name if often[name] == 1 else c.token for name, c in zip(names, candidates, strict=True)
    ]


class TokenNames:
    """Names of vocabulary strings where no vocabulary is at hand, by the marks that they have.

    >>> names = TokenNames(["play", "##ing"])
    >>> names("play"), names("##ing"), names("[UNK]")
    ('play', '…ing', '[UNK]')
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        self._prefixes = SubwordPrefixes.of(tokens)

    def __call__(self, token: str, *, first: bool = False) -> str:
        """The name of a token; what begins a text (`first`) ends no word."""
        prefixes = self._prefixes
        return token_name(
            token, prefixes.word(token), not first and prefixes.is_continuation(token)
        )
