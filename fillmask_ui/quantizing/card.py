"""The card of a folder of variants: written from its record alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelCardData

CARD = "README.md"
_TEMPLATE = Path(__file__).parent / "templates" / "card.md"


def card_text(name: str, record: Mapping[str, Any]) -> str:
    """Markdown with the header that the hub reads."""
    sources = list(record["sources"].values())
    hub = next((source["hub_id"] for source in sources if source["hub_id"]), None)
    data = ModelCardData(
        library_name="transformers",
        pipeline_tag="fill-mask",
        tags=["fill-mask", "onnx"],
        base_model=hub,
        base_model_relation="quantized" if hub else None,
    )
    content = {"name": name, "sources": sources, "files": record["files"]}
    return f"{ModelCard.from_template(data, str(_TEMPLATE), **content)}\n"
