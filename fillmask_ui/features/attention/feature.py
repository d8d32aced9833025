"""What this feature adds."""

from fillmask_ui.extensions import Command, Feature

_HOME = "fillmask_ui.features.attention"

FEATURE = Feature(
    name="attention",
    package=__package__,
    commands={
        "attention": Command(
            "Show where each attention head looks from a mask, and from where it is looked at.",
            f"{_HOME}.command:attention",
            prints=True,
        )
    },
    exports={
        "attention": f"{_HOME}.attention_weights:attention",
        "mask_attention": f"{_HOME}.mask_attention:mask_attention",
    },
)
