"""What this feature adds."""

from fillmask_ui.extensions import Command, Feature

FEATURE = Feature(
    name="sweep",
    package=__package__,
    commands={
        "sweep": Command(
            "Measure the models, data sets, metrics and seeds of a file, and print one table.",
            "fillmask_ui.features.sweep.command:sweep",
        )
    },
)
