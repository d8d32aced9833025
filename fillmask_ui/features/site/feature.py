"""What this feature adds."""

from fillmask_ui.extensions import SERVE, Command, Feature

FEATURE = Feature(
    name="site",
    package=__package__,
    commands={
        "space": Command(
            "Write the page as a folder that a Hugging Face Space runs.",
            "fillmask_ui.features.site.command:space",
            SERVE,
        ),
        "site": Command(
            "Write a page for any static host, with the model in the browser.",
            "fillmask_ui.features.site.command:site",
            SERVE,
        ),
    },
)
