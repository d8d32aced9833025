"""What this package adds; what a target names is imported when somebody uses it."""

from fillmask_ui.extensions import Command, Feature, Mode, Tab

ABOUT = "How many letters the hidden word is expected to have."
VIEWS = {"letters": "fillmask_letters.page:mode"}
FEATURE = Feature(
    name="letters",
    package=__package__,
    commands={"letters": Command(ABOUT, "fillmask_letters.letters:command")},
    tabs=[Tab("letters", "Letters", "fillmask_letters.page:tab", after="evaluate")],
    metrics=["fillmask_letters.metric:EveryOther"],
    modes=[Mode("letters", "Letters", ABOUT, masked="letters", needs_mask=True, views=VIEWS)],
)
