"""What this feature adds."""

from fillmask_ui.extensions import LOOK, Command, Feature, Tab

FEATURE = Feature(
    name="unmask",
    package=__package__,
    commands={
        "unmask": Command(
            "Fill many masks step by step.",
            "fillmask_ui.features.unmask.command:unmask",
            LOOK,
            prints=True,
        )
    },
    tabs=[Tab("unmask", "Unmask", "fillmask_ui.features.unmask.tab:build", after="evaluate")],
    metrics=["fillmask_ui.features.unmask.metric:Unmasking"],
    exports={
        "unmask": "fillmask_ui.features.unmask.unmask_texts:unmask",
        "UnmaskingConfig": "fillmask_ui.features.unmask.unmasking_options:UnmaskingConfig",
    },
    inserts={"guide": "unmask/guide.html", "notebook": "unmask/notebook.css"},
    tools=["fillmask_ui.features.unmask.tool:unmask"],
    displays={
        "fillmask_ui.features.unmask.decoding_history:Unmasked": (
            "fillmask_ui.features.unmask.step_views:DISPLAY"
        )
    },
)
