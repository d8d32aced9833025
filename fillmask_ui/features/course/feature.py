"""What this feature adds."""

from fillmask_ui.extensions import SERVE, Command, Feature, Tab

FEATURE = Feature(
    name="course",
    package=__package__,
    commands={
        "learn": Command(
            "Open the course on the masked-LM loss at a chapter.",
            "fillmask_ui.features.course.command:learn",
            SERVE,
        )
    },
    tabs=[Tab("learn", "Learn", "fillmask_ui.features.course.tab:build")],
    inserts={"guide": "course/guide.html"},
)
