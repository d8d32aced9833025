"""What this feature adds."""

from fillmask_ui.extensions import LOOK, Command, Feature, Mode

FEATURE = Feature(
    name="slots",
    package=__package__,
    commands={
        "slots": Command(
            "Compare words over the sentences of a template.",
            "fillmask_ui.features.slots.command:slots",
            LOOK,
            prints=True,
        )
    },
    modes=[
        Mode(
            "slots",
            "Slots",
            "one template with alternatives, many sentences",
            masked="slots",
            fields={"template": "{He|She} worked as a [MASK].", "slot_words": ""},
            two_models=True,
            has_sentence=True,
            views={
                "slots": "fillmask_ui.features.slots.slots_view:compare_sentences",
                "slots_csv": "fillmask_ui.features.slots.slots_view:csv_file",
            },
            template="slots/controls.html",
        )
    ],
    exports={"slots": "fillmask_ui.features.slots.word_spread:slots"},
    inserts={"guide": "slots/guide.html"},
    displays={
        "fillmask_ui.features.slots.word_spread:SlotTable": (
            "fillmask_ui.features.slots.notebook:DISPLAY"
        )
    },
)
