"""What this feature adds; `harness` is an entry point of lm-evaluation-harness."""

from fillmask_ui.extensions import Command, Feature

FEATURE = Feature(
    name="bridges",
    package=__package__,
    commands={
        "runs push": Command(
            "Write a run to an experiment tracker.",
            "fillmask_ui.features.bridges.command:push",
        )
    },
)
