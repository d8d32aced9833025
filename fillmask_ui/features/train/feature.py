"""What this feature adds."""

from fillmask_ui.extensions import MAKE, Command, Feature

FEATURE = Feature(
    name="train",
    package=__package__,
    commands={
        "train": Command(
            "Train a masked language model on text.",
            "fillmask_ui.features.train.command:train",
            MAKE,
        ),
        "package": Command(
            "Make a model folder to publish from a training run.",
            "fillmask_ui.features.train.command:package",
            MAKE,
        ),
    },
)
