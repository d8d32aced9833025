"""What this feature adds."""

from fillmask_ui.extensions import Command, Feature

FEATURE = Feature(
    name="site",
    package=__package__,
    commands={
        "space": Command(
            "Write the page as a folder that a Hugging Face Space runs, ready to upload.",
            "fillmask_ui.features.site.command:space",
        ),
        "site": Command(
            "Write a page that any static host serves, with the model in the browser.",
            "fillmask_ui.features.site.command:site",
        ),
    },
)
