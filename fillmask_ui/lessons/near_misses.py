"""Two predictions that top-1 accuracy calls the same and the loss does not."""

from dataclasses import dataclass

import numpy as np

from fillmask_ui.scoring import ranks, target_nll_nats

TRUE_WORD = "mat"
# What the true word leaves is shared out in these parts, whatever it leaves.
_OTHERS = {"floor": 0.75, "sofa": 0.15, "roof": 0.10}


@dataclass(frozen=True)
class SmallPrediction:
    """A distribution over four words, the true one first."""

    probabilities: dict[str, float]  # by word; they add up to 1
    nll_nats: float  # of the true word
    rank: int  # of the true word, 1 for the best guess

    @property
    def best_guess(self) -> str:
        return max(self.probabilities, key=lambda word: self.probabilities[word])


def prediction(true_probability: float) -> SmallPrediction:
    """The prediction that gives the true word a probability in (0, 1), and the others the rest.

    >>> found = prediction(0.4)
    >>> found.best_guess, found.rank, round(found.nll_nats, 3)
    ('floor', 2, 0.916)
    """
    rest = {word: part * (1 - true_probability) for word, part in _OTHERS.items()}
    probabilities = {TRUE_WORD: true_probability, **rest}
    log_probs = np.log([[*probabilities.values()]])  # [1, 4]
    target = np.array([0])
    return SmallPrediction(
        probabilities,
        float(target_nll_nats(log_probs, target)[0]),
        int(ranks(log_probs, target)[0]),
    )
