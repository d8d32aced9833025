"""A class guesses a hidden word: what each student says, the class's distribution, and its losses.

The loss is -ln s(w), s(w) = 0.99 (p(w) + u / V) + 0.01 / V, with the share p(w) of a word, the part
u that is not placed and V tokens in the model's vocabulary; `docs/class.md` says why. An infinite
loss for a word that nobody named would end the game at the first surprise.
"""

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fillmask_ui.errors import OptionError, TextError, opening
from fillmask_ui.features.classroom.class_run import ClassRound, RoundLosses
from fillmask_ui.filling.guesses import Guess, Guesses, key
from fillmask_ui.filling.prompt import normalise_masks
from fillmask_ui.intervals import Interval, ratio_interval

MIXED = 0.01  # weight of the even distribution over the vocabulary
MOST_WORDS = 3  # of a student
MOST_CHARACTERS = 40  # of a word
MOST_SENTENCES = 500
MOST_SENTENCE_CHARACTERS = 1000
# Unseen beside controls and formats: Unicode's Default_Ignorable_Code_Point, the blank of Braille.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
_JOINERS = "\u200c\u200d"  # formats that words of Persian or Hindi are spelled with
_MARKED = re.compile(r"\[([^\[\]]+)\]")


@dataclass(frozen=True)
class ClassSentence:
    """A sentence with a gap."""

    text: str  # with one mask
    truth: str = ""  # the hidden word; blank if it is unknown
    question: str = ""  # to the class


def parse_sentence(line: str) -> ClassSentence:
    """A sentence whose hidden word stands in square brackets, or `[MASK]` if it is unknown.

    A question to the class may follow after a tab. A `TextError` if no word or several are hidden,
    or the word or the sentence is too long.

    >>> parse_sentence("The opposite of hot is [cold].")
    ClassSentence(text='The opposite of hot is [MASK].', truth='cold', question='')
    >>> parse_sentence("Bees make [MASK].").truth
    ''
    """
    text, _, question = (part.strip() for part in line.partition("\t"))
    if len(line) > MOST_SENTENCE_CHARACTERS:
        raise TextError(
            f"the sentence has {len(line):,} characters and a wall shows at most "
            f"{MOST_SENTENCE_CHARACTERS:,}: shorten it"
        )
    marked = [match for match in _MARKED.finditer(text) if match[1].strip().lower() != "mask"]
    if not marked and normalise_masks(text, "") == text:
        raise TextError(
            "no word is hidden; write the hidden word in square brackets, as in: The opposite of "
            "hot is [cold]."
        )
    if not marked:
        return ClassSentence(text, "", question)
    if len(marked) > 1:
        raise TextError(
            f"{len(marked)} words are in brackets in {text[:60]!r}: mark one hidden word"
        )
    start, end = marked[0].span()
    return ClassSentence(f"{text[:start]}[MASK]{text[end:]}", checked_word(marked[0][1]), question)


def read_sentences(path: Path) -> tuple[ClassSentence, ...]:
    """The sentences of a UTF-8 file, one a line; a `TextError` names the line that is none."""
    with opening("sentences", path):
        lines = path.read_text("utf-8-sig").splitlines()
    sentences = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            sentences.append(parse_sentence(line))
        except (TextError, OptionError) as error:
            raise TextError(f"{path}, line {number}: {error}") from error
    if not 0 < len(sentences) <= MOST_SENTENCES:
        raise TextError(f"{path} has {len(sentences):,} sentences; give 1 to {MOST_SENTENCES}")
    return tuple(sentences)


def checked_word(word: str) -> str:
    """A word in one spelling of its characters and blanks, without those that nobody sees.

    An `OptionError` if nothing is left, or too much.

    >>> checked_word("  ice \u200b  cream\u202e ")
    'ice cream'
    """
    characters = _BLANK.sub("", unicodedata.normalize("NFC", word))
    visible = "".join(
        character
        for character in characters
        if character.isspace()
        or character in _JOINERS
        or unicodedata.category(character) not in ("Cc", "Cf")
    )
    word = " ".join(visible.split()).strip(f"{_JOINERS} ")
    if not 0 < len(word) <= MOST_CHARACTERS:
        raise OptionError(
            f"a word has 1 to {MOST_CHARACTERS} characters; {word[:60]!r} has {len(word)}"
        )
    return word


def split_of(guesses: Sequence[Guess]) -> Guesses:
    """What a student says: at most three words with percents; the same word twice adds up.

    An `OptionError` for a bad word, too many, or percents below 0 or above 100 in all.

    >>> split_of([Guess("Tea", 50), Guess(" tea", 20), Guess("milk", 0)]).guesses
    (Guess(word='Tea', amount=70),)
    """
    percents = [guess.amount for guess in guesses]
    if len(guesses) > MOST_WORDS:
        raise OptionError(f"there were {len(guesses)} words; give at most {MOST_WORDS}")
    if not all(percent >= 0 for percent in percents) or sum(percents) > 100 + 1e-6:
        raise OptionError(f"percentages must be 0 to 100 and add up to at most 100; got {percents}")
    guess_by_key: dict[str, Guess] = {}
    for guess in guesses:
        if guess.amount > 0:
            word = checked_word(guess.word)
            before = guess_by_key.get(key(word), Guess(word, 0))
            guess_by_key[key(word)] = Guess(before.word, before.amount + guess.amount)
    return Guesses(tuple(guess_by_key.values()), percent=True)


def smoothed_nll(split: Guesses, truth: str, vocabulary_size: int) -> float:
    """The loss of a student or of the class on the hidden word, -ln s, in nats."""
    share = split.share(truth) + split.no_guess / vocabulary_size
    return -math.log((1 - MIXED) * share + MIXED / vocabulary_size)


def pool(splits: Sequence[Guesses]) -> Guesses:
    """The class's distribution, the mean of one split or more; the largest share first.

    Each word as most typed it.

    >>> pool([split_of([Guess("Tea", 100)]), split_of([Guess("tea", 40)])]).guesses
    (Guess(word='Tea', amount=70.0),)
    """
    guesses = [guess for split in splits for guess in split.guesses]
    spellings = Counter(guess.word for guess in guesses)
    names = {word: key(word) for word in spellings}
    percents = defaultdict[str, list[float]](list)
    for guess in guesses:
        percents[names[guess.word]].append(guess.amount)
    common: dict[str, str] = {}
    for word, _ in spellings.most_common():
        common.setdefault(names[word], word)
    means = {name: math.fsum(each) / len(splits) for name, each in percents.items()}
    order = sorted(means, key=lambda name: (-means[name], name))
    words = (Guess(common[name], means[name]) for name in order)
    return Guesses(tuple(words), percent=True)


@dataclass(frozen=True)
class Standing:
    """Class against model over the sentences that have both losses."""

    losses: tuple[RoundLosses, ...]  # of each
    people_nats: float  # mean loss
    student_nats: float
    model_nats: float
    interval: Interval | None  # of the class's mean less the model's; None below two sentences


def standing(rounds: Iterable[ClassRound]) -> Standing | None:
    """Who is better so far; None before a sentence with both losses."""
    losses = [
        finished.losses
        for finished in rounds
        if finished.losses and finished.losses.model is not None
    ]
    if not losses:
        return None
    table = np.array(
        [(each.people, each.student, each.model) for each in losses], np.float64
    )  # [N, 3]
    people, student, model = (math.fsum(column) / len(losses) for column in table.T.tolist())
    interval = ratio_interval(table[:, 0] - table[:, 2], np.ones(len(losses)))
    return Standing(tuple(losses), people, student, model, interval)
