"""What a model loses that reads nothing, and whether a model is hardly better.

Definition. The uniform model gives each of V tokens the probability 1 / V, a loss of ln V. The
unigram model knows how often each token stands in the texts: a token that is c of their N tokens
gets c / (N - 1 + V), its share of the other tokens with every count raised by one.

Rivals: the plain share c / N has seen the token that it guesses, so that few texts make it look
good: over 100 texts 6.0 nats where this one has 7.7.

Source:
    Counts raised by one: Laplace's rule of succession, in Jurafsky and Martin, Speech and Language
    Processing, section 3.6.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

NEAR_CHANCE = 0.9  # share of the loss of a model that reads nothing


@dataclass(frozen=True)
class Chance:
    """The lower of both losses."""

    nll_nats: float
    guess: str  # how the model of that loss guesses

    @classmethod
    def of(
        cls, occurrences: Mapping[int, int], hidden: Mapping[int, int], vocabulary_size: int
    ) -> "Chance":
        """By how often each token stands in the texts, and is hidden in them; ids of the true ones.

        >>> Chance.of({5: 99, 6: 1}, {5: 10}, vocabulary_size=1000).nll_nats.__round__(3)
        2.407
        """
        total = sum(occurrences.values()) - 1 + vocabulary_size
        losses = (-count * math.log(occurrences[token] / total) for token, count in hidden.items())
        unigram = math.fsum(losses) / sum(hidden.values())
        if unigram < math.log(vocabulary_size):
            return cls(unigram, "guessing by how often each token occurs in the texts")
        return cls(math.log(vocabulary_size), f"guessing among {vocabulary_size:,} tokens")

    def is_near(self, mean_nll_nats: float) -> bool:
        return mean_nll_nats >= NEAR_CHANCE * self.nll_nats

    def alarm(self, name: str, mean_nll_nats: float) -> str:
        """What to tell a reader of the model called `name` if it is near chance; else blank."""
        if not self.is_near(mean_nll_nats):
            return ""
        return (
            f"{name} is near chance: its mean NLL is {mean_nll_nats:.2f} nats and "
            f"{self.guess} has {self.nll_nats:.2f}; its weights, its quantization or its "
            "tokenizer may be broken"
        )
