"""What people guess for a hidden word: guesses as they are typed, as a distribution, and its loss.

Definition. The guesses are a distribution over words: the share of a word is how many said it,
divided by how many spoke. Its loss on the true word is -ln of that word's share, the cross-entropy
that a language model is trained with; it is infinite for a word that nobody guessed. Rivals: a
distance between the distributions of two guessers, which does not ask who was right; the share of
right guesses, which does not ask how sure anybody was.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from fillmask_ui.errors import OptionError

_PIECE = re.compile(r"(.*?)(?:(?:^|\s|[:=])\s*([+-]?\d+(?:\.\d+)?)\s*(%?))?", re.DOTALL)
_MOST = 1_000_000
# Percents that were rounded one by one may add up to a little more than 100.
_MOST_PERCENT = 101


@dataclass(frozen=True)
class Guess:
    """A word and how much of the class stands behind it."""

    word: str  # as it was first typed
    amount: float  # people, or percent of them


@dataclass(frozen=True)
class Guesses:
    """The guesses of a class for one hidden word."""

    guesses: tuple[Guess, ...] = ()  # distinct words but for case, in the order typed
    percent: bool = False  # amounts are percents of the class, else numbers of people

    @property
    def people(self) -> float:
        """How many guessed; 100 for percents, of which some may be of no guess."""
        total = sum(guess.amount for guess in self.guesses)
        return max(total, 100.0) if self.percent else total

    @property
    def no_guess(self) -> float:
        """Share of the class that percents leave over, in [0, 1]; 0 for counts."""
        return (
            1.0 - sum(guess.amount for guess in self.guesses) / self.people if self.people else 0.0
        )

    def share(self, word: str) -> float:
        """Share of a word, in [0, 1]; case does not count."""
        said = (guess.amount for guess in self.guesses if key(guess.word) == key(word))
        return sum(said) / self.people

    def nll_nats(self, word: str) -> float:
        """Loss of the class on the true word, -ln(share); infinite where nobody guessed it.

        >>> round(parse_guesses("mat 1, floor 1").nll_nats("mat"), 4)
        0.6931
        """
        share = self.share(word)
        return -math.log(share) + 0.0 if share else math.inf  # + 0.0 turns -0.0 into 0.0

    def nll_with_one_more(self, word: str) -> float:
        """`nll_nats` as if one more had guessed it; of percents, as if 1 % of the class had.

        Add-one smoothing of one word: -ln((n + 1) / (N + 1)) for n of N guesses.

        >>> round(parse_guesses("floor 23").nll_with_one_more("mat"), 4)  # ln 24
        3.1781
        """
        own = self.share(word) * self.people
        return math.log((self.people + (not self.percent)) / (own + 1))


def key(word: str) -> str:
    """What makes two guesses the same word: not case, not blanks.

    >>> key(" Ice  Cream ") == key("ice cream")
    True
    """
    return " ".join(word.split()).casefold()


def parse_guesses(typed: str) -> Guesses:
    """Guesses as people type them, separated by commas, semicolons or line ends.

    Args:
        typed: each a word, or a word with a count or a percent behind it. A word alone counts
            once; the same word again adds up.

    Returns:
        In the order typed; empty for blank text.

    Raises:
        OptionError: for a piece without a word, a count that is none, counts among percents, or
            percents above 100; the message names the piece.

    >>> parse_guesses("mat 12, floor 5, sofa, Mat").guesses[0]
    Guess(word='mat', amount=13.0)
    >>> round(parse_guesses("mat 60%, floor 30%").no_guess, 4)
    0.1
    """
    pieces = [piece.strip() for piece in re.split(r"[,;\n]", typed)]
    read = [_read(piece) for piece in pieces if piece]
    percents = {percent for _, percent in read}
    if len(percents) > 1:
        odd = next(guess for guess, percent in read if not percent)
        raise OptionError(
            f"{odd.word!r} has no percent and others have one: give all guesses with percents, as "
            "in: mat 60%, floor 40%, or none"
        )
    found = Guesses(_added(guess for guess, _ in read), percents == {True})
    if found.percent and found.people > _MOST_PERCENT:
        raise OptionError(
            f"the percents add up to {found.people:g}: make them 100 at most, or give how many "
            "said each word, as in: mat 12, floor 5"
        )
    return found


def _read(piece: str) -> tuple[Guess, bool]:
    """One guess, and whether its amount is a percent."""
    match = _PIECE.fullmatch(piece)
    word, amount, percent = match.groups() if match else ("", None, None)
    word = " ".join(word.split())
    if not word or "%" in word:
        raise OptionError(
            f"{piece[:40]!r} is no guess: write a word and, behind it, how many said it or its "
            "percent, as in: mat 12, or: mat 60%"
        )
    value = 1.0 if amount is None else float(amount)
    if not 0 < value <= _MOST:
        raise OptionError(f"{piece[:40]!r}: the number must be above 0 and at most {_MOST:,}")
    return Guess(word, value), bool(percent)


def _added(guesses: Iterable[Guess]) -> tuple[Guess, ...]:
    """The same with one entry per word."""
    words: dict[str, Guess] = {}
    for guess in guesses:
        before = words.get(key(guess.word), Guess(guess.word, 0.0))
        words[key(guess.word)] = Guess(before.word, before.amount + guess.amount)
    return tuple(words.values())
