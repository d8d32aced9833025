"""A linear head on frozen states: softmax regression by gradient steps.

Definition. The probabilities of C classes are softmax(W z + b); z is the state of an example, each
dimension less its mean over the training examples and divided by its standard deviation. The fit
minimises the mean of -ln p of the true class plus DECAY / 2 times the sum of squares of W.

Axes: N examples, H hidden size, C classes.

Source:
    Softmax regression: Bishop 2006, Pattern Recognition and Machine Learning, section 4.3.4. The
    steps with momentum: Nesterov 2004, Introductory Lectures on Convex Optimization, section 2.2.
"""

from dataclasses import dataclass

import numpy as np

STEPS = 300
DECAY = 0.1
_FOLDS = 5


@dataclass(frozen=True, eq=False)
class LinearHead:
    """A head, and what its training examples were like."""

    centre: np.ndarray  # float64 [H], mean of the training states
    scale: np.ndarray  # float64 [H], their standard deviation
    weights: np.ndarray  # float64 [H, C]
    bias: np.ndarray  # float64 [C]
    losses: tuple[float, ...]  # mean -ln p of the training examples after 0, 1, ... steps, in nats

    def probabilities(self, states: np.ndarray) -> np.ndarray:
        """Float64 [N, C] of states [N, H]."""
        return _softmax((states - self.centre) / self.scale @ self.weights + self.bias)


def fit_head(
    states: np.ndarray, labels: np.ndarray, classes: int, steps: int = STEPS
) -> LinearHead:
    """Fit a head to states [N, H] and the classes of their examples, int64 [N], N above 0."""
    states, rows = np.asarray(states, np.float64), np.arange(len(states))
    centre, scale = states.mean(axis=0), states.std(axis=0)
    scale[scale < 1e-9] = 1.0  # a constant dimension is 0 afterwards
    z = (states - centre) / scale
    # The curvature of the loss bounds the step; a softmax adds at most a factor of 1/2. The input
    # of b is as large as the largest direction of z, else rare classes would need more steps.
    gram = z @ z.T if len(z) < z.shape[1] else z.T @ z
    largest = max(float(np.linalg.eigvalsh(gram)[-1]) / len(z), 1.0)
    inputs = np.column_stack([z, np.full(len(z), np.sqrt(largest))])  # [N, H + 1]
    decay = np.full((inputs.shape[1], 1), DECAY)
    decay[-1] = 0.0  # b is free
    curvature = largest / 2 + DECAY
    root = np.sqrt(curvature / DECAY)
    momentum = (root - 1) / (root + 1)
    truth = np.eye(classes)[labels]  # [N, C]
    weights = before = np.zeros((inputs.shape[1], classes))  # with the momentum and without
    losses = []
    for step in range(steps + 1):
        probabilities = _softmax(inputs @ weights)
        losses.append(float(-np.log(probabilities[rows, labels]).mean()))
        if step < steps:
            gradient = inputs.T @ (probabilities - truth) / len(z) + decay * weights
            after = weights - gradient / curvature
            weights, before = after + momentum * (after - before), after
    return LinearHead(centre, scale, weights[:-1], inputs[0, -1] * weights[-1], tuple(losses))


def held_out_classes(
    states: np.ndarray, labels: np.ndarray, groups: np.ndarray, classes: int
) -> np.ndarray | None:
    """The class of each example by a head that has not seen its group: int64 [N].

    A fifth of the groups, int64 [N], is left out at a time. None where too few examples of a class
    would be left to learn from.
    """
    predicted = np.zeros(len(labels), np.int64)
    for fold in range(_FOLDS):
        left_out = groups % _FOLDS == fold
        if not left_out.any() or len(np.unique(labels[~left_out])) < classes:
            return None
        head = fit_head(states[~left_out], labels[~left_out], classes)
        predicted[left_out] = head.probabilities(states[left_out]).argmax(axis=1)
    return predicted


def _softmax(logits: np.ndarray) -> np.ndarray:
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)
