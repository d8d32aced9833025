"""What this feature adds."""

from fillmask_ui.extensions import Command, Feature, Tab

FEATURE = Feature(
    name="quantize",
    package=__package__,
    commands={
        "check": Command(
            "Run an ONNX file on all providers and levels of this machine, and compare the logits.",
            "fillmask_ui.features.quantize.diagnose_command:check",
        ),
        "diagnose": Command(
            "Find the parts of a quantized model that cost its loss.",
            "fillmask_ui.features.quantize.diagnose_command:diagnose",
        ),
        "export": Command(
            "Write a PyTorch model as ONNX in float32, and compare it with PyTorch.",
            "fillmask_ui.features.quantize.quantize_command:export",
        ),
        "quantize": Command(
            "Make quantized variants of a model in full precision, and measure them.",
            "fillmask_ui.features.quantize.quantize_command:quantize",
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
