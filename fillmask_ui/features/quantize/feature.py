"""What this feature adds."""

from fillmask_ui.extensions import MAKE, MEASURE, Command, Feature, Tab

FEATURE = Feature(
    name="quantize",
    package=__package__,
    commands={
        "check": Command(
            "Run an ONNX file wherever this machine can, and compare logits.",
            "fillmask_ui.features.quantize.diagnose_command:check",
            MEASURE,
        ),
        "diagnose": Command(
            "Find the parts of a quantized model that cost its loss.",
            "fillmask_ui.features.quantize.diagnose_command:diagnose",
            MEASURE,
        ),
        "export": Command(
            "Write a PyTorch model as ONNX, and compare the two.",
            "fillmask_ui.features.quantize.quantize_command:export",
            MAKE,
        ),
        "quantize": Command(
            "Make quantized variants of a model, and measure them.",
            "fillmask_ui.features.quantize.quantize_command:quantize",
            MAKE,
        ),
    },
    # Not on a public page: it writes files and keeps the processor busy.
    tabs=[
        Tab(
            "quantize",
            "Quantize",
            "fillmask_ui.features.quantize.tab:build",
            after="unmask",
            private=True,
        )
    ],
    inserts={"guide": "quantize/guide.html"},
    models=["fillmask_ui.features.quantize.variant_store:local_variants"],
)
