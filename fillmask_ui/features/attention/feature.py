"""What this feature adds."""

from fillmask_ui.extensions import LOOK, Command, Feature, Mode

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
    modes=[
        Mode(
            "attention",
            "Attention",
            "where each head looks from the mask",
            masked="attention",
            needs_mask=True,
            views={
                "attention": f"{_HOME}.view:attention_view",
                "attention_file": f"{_HOME}.view:attention_file",
            },
            fields={"layer": "", "head": "", "look": "", "special": ""},
        )
    ],
    exports={
        "attention": "fillmask_ui.models.attention_weights:attention",
        "mask_attention": f"{_HOME}.mask_attention:mask_attention",
    },
    displays={f"{_HOME}.mask_attention:MaskAttention": f"{_HOME}.notebook:DISPLAY"},
)
