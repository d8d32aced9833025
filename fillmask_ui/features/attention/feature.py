"""What this feature adds."""

from fillmask_ui.extensions import LOOK, Command, Feature

_HOME = "fillmask_ui.features.attention"

FEATURE = Feature(
    name="attention",
    package=__package__,
    commands={
        "attention": Command(
            "Show where each attention head looks from a mask.",
            f"{_HOME}.command:attention",
            LOOK,
            prints=True,
        )
    },
    exports={
        "attention": f"{_HOME}.attention_weights:attention",
        "mask_attention": f"{_HOME}.mask_attention:mask_attention",
    },
)
