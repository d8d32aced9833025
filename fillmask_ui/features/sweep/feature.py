"""What this feature adds."""

from fillmask_ui.extensions import MEASURE, Command, Feature

FEATURE = Feature(
    name="sweep",
    package=__package__,
    commands={
        "sweep": Command(
            "Measure many models and data sets, and print one table.",
            "fillmask_ui.features.sweep.command:sweep",
            MEASURE,
        )
    },
)
