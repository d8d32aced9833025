"""What this feature adds."""

from fillmask_ui.extensions import Command, Feature, Tab

FEATURE = Feature(
    name="course",
    package=__package__,
    commands={
        "learn": Command(
            "Open the page at a chapter of the course on the masked-LM loss.",
            "fillmask_ui.features.course.command:learn",
        )
    },
    tabs=[Tab("learn", "Learn", "fillmask_ui.features.course.tab:build")],
    inserts={"guide": "course/guide.html"},
)
