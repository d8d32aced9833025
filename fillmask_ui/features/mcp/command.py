"""`fillmask-ui mcp`: the page with tools for language models."""

from importlib.util import find_spec
from typing import Any

from fillmask_ui.cli import options
from fillmask_ui.cli.serve import start_page
from fillmask_ui.errors import OptionError

SETTINGS: dict[str, Any] = {
    "endpoints": "fillmask_ui.features.mcp.tools:build",
    "launch": {"mcp_server": True},
}


def mcp(
    host: str | None = options.HOST,
    port: int | None = options.PORT,
    model: str = options.PICKED_MODEL,
    public: bool = options.PUBLIC,
) -> None:
    """Start the page with tools for language models (MCP)."""
    if find_spec("mcp") is None:
        raise OptionError("the tools need the package mcp: pip install 'fillmask-ui[mcp]'")
    start_page(model, host=host, port=port, public=public, settings=SETTINGS)
