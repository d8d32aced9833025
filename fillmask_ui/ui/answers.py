"""The latest answers to all visitors, bounded by the memory that they take."""

import threading
from collections import OrderedDict
from typing import Any

# Answers that are kept, and the candidates and scored words of all of them together (26 MB).
MOST_ANSWERS = 128
MOST_CANDIDATES = 100_000
# A candidate takes 265 bytes, a character of a text with its share of tokens and offsets 37.
_CHARACTERS_A_CANDIDATE = 8
_CHARACTERS_A_NUMBER = 4


class Answers:
    """Answers by their questions, those not asked for longest dropped first; safe from threads."""

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple, tuple[Any, int]] = OrderedDict()  # and its size
        self._lock = threading.Lock()

    def get(self, question: tuple) -> Any:
        """The answer; None if it is not kept."""
        with self._lock:
            if question not in self._answers:
                return None
            self._answers.move_to_end(question)
            return self._answers[question][0]

    def keep(self, question: tuple, answer: Any, candidates: int) -> None:
        """Keep an answer, and drop others until all are within the bounds.

        Args:
            question: what tells it from others; its texts count, as an answer has their tokens.
            answer: not None.
            candidates: in the answer, or as many as take its memory.
        """
        size = candidates + _characters(question) // _CHARACTERS_A_CANDIDATE
        with self._lock:
            self._answers[question] = answer, size
            total = self._total()
            while len(self._answers) > MOST_ANSWERS or total > MOST_CANDIDATES:
                _, (_, dropped) = self._answers.popitem(last=False)
                total -= dropped

    def _total(self) -> int:
        return sum(size for _, size in self._answers.values())


def _characters(part: Any) -> int:
    """What a part of a question takes, in characters of text.

    >>> _characters(("a [MASK]", 5, ("cat", "dog")))
    18
    """
    if isinstance(part, tuple):
        return sum(map(_characters, part))
    return len(part) if isinstance(part, str) else _CHARACTERS_A_NUMBER
