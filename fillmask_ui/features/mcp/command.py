"""`fillmask-ui mcp`: the page with tools for language models."""

from importlib.util import find_spec
from typing import Any

from fillmask_ui.cli import options
from fillmask_ui.cli.serve import start_page
from fillmask_ui.errors import OptionError, how_to_install

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
        raise OptionError(
            f"the tools need the library mcp, which is not installed: {how_to_install('mcp')}"
        )
    endpoint = "gradio_api/mcp/"
    start_page(model, host=host, port=port, public=public, endpoint=endpoint, settings=SETTINGS)
