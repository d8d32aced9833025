"""What this feature adds."""

from fillmask_ui.extensions import SERVE, Command, Feature

FEATURE = Feature(
    name="classroom",
    package=__package__,
    commands={
        "class": Command(
            "Open the wall of a class that guesses against the model.",
            "fillmask_ui.features.classroom.command:class_",
            SERVE,
        )
    },
    on_page=["fillmask_ui.features.classroom.routes:join_page"],
    inserts={"present": "classroom/wall.html"},
    stores=["fillmask_ui.features.classroom.listed_classes:ListedClasses"],
)
