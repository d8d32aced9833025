"""The metric `every-other`."""

from dataclasses import dataclass

from fillmask_ui.evaluation.metrics.metric import Metric


@dataclass(frozen=True)
class EveryOther(Metric):
    name = "every-other"
    label = "Every other token"
    note = "Every second token of a text is hidden."
    hides = "every second token"
    figure_label = "Mean loss, every second token hidden"
    seeded = False

    def choose(self, positions, rng):
        return positions[1::2]
