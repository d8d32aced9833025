"""Names of tokens and words, and how a rank changes from one model to another."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from fillmask_ui.comparing.contrast import ComparedJoint, Contrast, ContrastedWord
from fillmask_ui.models.vocabulary import SubwordPrefixes
from fillmask_ui.records import Candidate, ScoredPart
from fillmask_ui.show.numbers import loss_number, percent, signed


class Spelling(Protocol):
    """What names need of a vocabulary; methods as of `Vocabulary`."""

    def token(self, token_id: int) -> str: ...
    def word(self, token_id: int) -> str: ...
    def is_continuation(self, token_id: int) -> bool: ...


class ListedTokens:
    """The spelling of the tokens that a record lists, without a vocabulary at hand."""

    def __init__(self, tokens: Mapping[Any, str]) -> None:
        self._tokens, self._prefixes = tokens, SubwordPrefixes.of(tokens.values())

    def token(self, token_id: Any) -> str:
        return self._tokens.get(token_id, f"[{token_id}]")

    def word(self, token_id: Any) -> str:
        return self._prefixes.word(self.token(token_id))

    def is_continuation(self, token_id: Any) -> bool:
        return self._prefixes.is_continuation(self.token(token_id))


def token_name(token: str, word: str, ending: bool) -> str:
    """A token's name: an ending is marked, and a blank word is shown as its token.

    >>> token_name("##ing", "ing", True), token_name("Ġcat", "cat", False)
    ('…ing', 'cat')
    """
    if not word.strip():
        return token
    return f"…{word}" if ending and word[:1].isalnum() else word


def named(vocabulary: Spelling, token_id: int, *, first: bool = False) -> str:
    """The name of a token; the `first` of a text cannot be an ending.

    >>> listed = ListedTokens({3: "play", 4: "##ing"})
    >>> named(listed, 4), named(listed, 4, first=True)
    ('…ing', 'ing')
    """
    ending = not first and vocabulary.is_continuation(token_id)
    return token_name(vocabulary.token(token_id), vocabulary.word(token_id), ending)


def candidate_names(candidates: Sequence[Candidate], vocabulary: Spelling) -> list[str]:
    """Names of candidates; two of the same name show their tokens."""
    names = [
        token_name(c.token, c.word, vocabulary.is_continuation(c.token_id)) for c in candidates
    ]
    often = Counter(names)
    return [
        name if often[name] == 1 else c.token for name, c in zip(names, candidates, strict=True)
    ]


def guesses(candidates: Sequence[Candidate], vocabulary: Spelling, most: int = 3) -> str:
    """The first of some candidates by name, each with its probability."""
    names = candidate_names(candidates, vocabulary)
    pairs = [*zip(names, candidates, strict=True)][:most]
    return ", ".join(f"{name} {percent(candidate.probability)}" for name, candidate in pairs)


def factors(parts: Sequence[ScoredPart], unit: str) -> str:
    """Sub-tokens with their losses, which add up to that of the word."""
    return " + ".join(f"{part.token} {loss_number(part.nll_nats, unit)}" for part in parts)


def compared_name(row: ContrastedWord, first: Spelling, second: Spelling) -> str:
    """The name of a word, given the vocabularies of reference and candidate."""
    for token, token_id, vocabulary in (
        (row.reference_token, row.reference_token_id, first),
        (row.candidate_token, row.candidate_token_id, second),
    ):
        if token is not None and token_id is not None:
            return token_name(token, row.word, vocabulary.is_continuation(token_id))
    return row.word


def mark(row: ContrastedWord | ComparedJoint) -> str:
    """`new` if only the candidate lists the word, `gone` if only the reference, else `asked`."""
    if row.reference_listed != row.candidate_listed:
        return "gone" if row.reference_listed else "new"
    return "" if row.reference_listed else "asked"


def points(row: ContrastedWord) -> str:
    """Probability under the candidate less the reference's, in percentage points.

    >>> from types import SimpleNamespace as Row
    >>> points(Row(difference=0.0153)), points(Row(difference=-1e-9)), points(Row(difference=None))
    ('+1.53', '0.00', '')
    """
    return "" if row.difference is None else signed(100 * row.difference, 2)


def rank_change(row: ContrastedWord) -> str:
    """How many places higher the candidate ranks a word; blank without two ranks.

    >>> from types import SimpleNamespace as Row
    >>> rank_change(Row(reference_rank=4, candidate_rank=2))
    '▲2'
    """
    if row.reference_rank is None or row.candidate_rank is None:
        return ""
    change = row.reference_rank - row.candidate_rank
    return f"{'▲' if change > 0 else '▼'}{abs(change):,}" if change else "="


def first_words(mask: Contrast) -> tuple[ContrastedWord, ContrastedWord]:
    """The most probable word of the reference and that of the candidate."""
    words = mask.candidates
    reference = next(w for w in words if w.reference_listed and w.reference_rank == 1)
    candidate = next(w for w in words if w.candidate_listed and w.candidate_rank == 1)
    return reference, candidate
