"""What a class guesses for a hidden word, as a distribution, and its loss.

Definition. The share of a word is how many guessed it, divided by how many guessed. The loss on the
true word is -ln of its share, the cross-entropy of language models; infinite for a word that nobody
guessed. Rivals: a distance between the distributions of two guessers does not ask who was right;
the share of right guesses does not ask how sure anybody was.
"""

import math
import re
from dataclasses import dataclass

from fillmask_ui.errors import OptionError

_GUESS = re.compile(r"(.*?)(?:(?:^|\s|[:=])\s*([+-]?\d+(?:\.\d+)?)\s*(%?))?", re.DOTALL)
_MOST = 1_000_000
_MOST_PERCENT = 101  # percents that were rounded one by one


@dataclass(frozen=True)
class Guess:
    """A word and how many of the class guessed it."""

    word: str  # as it was first typed
    amount: float  # people, or percent of them


@dataclass(frozen=True)
class Guesses:
    """The guesses of a class for one hidden word."""

    guesses: tuple[Guess, ...] = ()  # distinct words but for case, in the order typed
    percent: bool = False  # whether amounts are percents of the class, not people

    @property
    def people(self) -> float:
        """How many guessed; 100 for percents, of which some may be no guess."""
        total = sum(guess.amount for guess in self.guesses)
        return max(total, 100.0) if self.percent else total

    @property
    def no_guess(self) -> float:
        """Share of the class that percents leave over, in [0, 1]; 0 for counts."""
        total = sum(guess.amount for guess in self.guesses)
        return 1.0 - total / self.people if self.people else 0.0

    def share(self, word: str) -> float:
        amounts = (guess.amount for guess in self.guesses if key(guess.word) == key(word))
        return sum(amounts) / self.people

    def nll_nats(self, word: str) -> float:
        """Loss of the class on the true word, -ln(share).

        >>> round(parse_guesses("mat 1, floor 1").nll_nats("mat"), 4)
        0.6931
        """
        share = self.share(word)
        return -math.log(share) + 0.0 if share else math.inf  # + 0.0 turns -0.0 into 0.0

    def nll_with_one_more(self, word: str) -> float:
        """`nll_nats` as if one more person, or 1% of the class, had guessed the word.

        >>> round(parse_guesses("floor 23").nll_with_one_more("mat"), 4)  # ln 24
        3.1781
        """
        people = self.people if self.percent else self.people + 1
        return math.log(people / (self.share(word) * self.people + 1))


def key(word: str) -> str:
    """Equal for guesses of the same word, whatever case and blanks.

    >>> key(" Ice  Cream ") == key("ice cream")
    True
    """
    return " ".join(word.split()).casefold()


def parse_guesses(typed: str) -> Guesses:
    """Guesses as people type them, separated by commas, semicolons or line ends, in that order.

    A word may be followed by a count or a percent, else it counts once; repeated words add up.

    Raises:
        OptionError: names the guess that has no word, a bad count, or a count among percents; or
            for percents above 100.

    >>> parse_guesses("mat 12, floor 5, sofa, Mat").guesses[0]
    Guess(word='mat', amount=13.0)
    >>> round(parse_guesses("mat 60%, floor 30%").no_guess, 4)
    0.1
    """
    words: dict[str, Guess] = {}
    kinds: dict[bool, str] = {}  # whether an amount is a percent -> the first such word
    for item in filter(None, (item.strip() for item in re.split(r"[,;\n]", typed))):
        guess, percent = _read(item)
        kinds.setdefault(percent, guess.word)
        before = words.get(key(guess.word), Guess(guess.word, 0.0))
        words[key(guess.word)] = Guess(before.word, before.amount + guess.amount)
    if len(kinds) > 1:
        raise OptionError(
            f"{kinds[False]!r} has no percent and others have one: give all guesses with percents, "
            "as in: mat 60%, floor 40%, or none"
        )
    guesses = Guesses(tuple(words.values()), True in kinds)
    if guesses.percent and guesses.people > _MOST_PERCENT:
        raise OptionError(
            f"the percents add up to {guesses.people:g}: make them 100 at most, or give how many "
            "said each word, as in: mat 12, floor 5"
        )
    return guesses


def _read(item: str) -> tuple[Guess, bool]:
    """One guess, and whether its amount is a percent."""
    match = _GUESS.fullmatch(item)
    word, amount, percent = match.groups() if match else ("", None, None)
    word = " ".join(word.split())
    if not word or "%" in word:
        raise OptionError(
            f"{item[:40]!r} is no guess: write a word and, behind it, how many said it or its "
            "percent, as in: mat 12, or: mat 60%"
        )
    value = 1.0 if amount is None else float(amount)
    if not 0 < value <= _MOST:
        raise OptionError(f"{item[:40]!r}: the number must be above 0 and at most {_MOST:,}")
    return Guess(word, value), bool(percent)
