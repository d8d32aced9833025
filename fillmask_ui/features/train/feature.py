"""What this feature adds."""

from fillmask_ui.extensions import Command, Feature

FEATURE = Feature(
    name="train",
    package=__package__,
    commands={
        "train": Command(
            "Train a masked language model on text, from weights or from scratch.",
            "fillmask_ui.features.train.command:train",
        ),
        "package": Command(
            "Make a model folder to publish from a training run.",
            "fillmask_ui.features.train.command:package",
        ),
    },
)
