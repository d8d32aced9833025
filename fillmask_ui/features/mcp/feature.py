"""What this feature adds."""

from fillmask_ui.extensions import SERVE, Command, Feature

FEATURE = Feature(
    name="mcp",
    package=__package__,
    commands={
        "mcp": Command(
            "Start the page with tools for language models (MCP).",
            "fillmask_ui.features.mcp.command:mcp",
            SERVE,
        )
    },
)
