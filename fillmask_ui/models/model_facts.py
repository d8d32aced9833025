"""What the files of a model say about it: its card, and its graph as Netron would show it."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fillmask_ui.models.model_choice import parse_reference
from fillmask_ui.models.model_files import ModelFiles, is_inside
from fillmask_ui.models.onnx_files import GraphFacts

_CARD = "README.md"
_CARD_BYTES = 200_000  # read of a card; longer ones are cut


@dataclass(frozen=True)
class ModelFacts:
    """A model by its files, which need not be loaded."""

    reference: str
    runtime: str  # a key of `RUNTIMES`
    file: str  # of its weights
    size_bytes: int  # of the weights' files
    card_url: str = ""  # of a model of the hub
    card: str = ""  # Markdown of a model in a folder, written by whoever made it
    graph: GraphFacts | None = None  # of an ONNX file

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        values = asdict(self)
        if self.graph is not None:
            values["graph"]["quantized_share"] = self.graph.quantized_share
        return values


def read_facts(files: ModelFiles) -> ModelFacts:
    """Of the files of a model; a ModelError for a graph that cannot be read."""
    graph, size = None, sum(path.stat().st_size for path in files.weights)
    if files.runtime == "onnx":
        from fillmask_ui.models.onnx_graph import graph_facts, read_graph

        source = read_graph(files.weights[0], files.folder, files.name)
        graph, size = graph_facts(source), source.size_bytes
    reference = parse_reference(files.name)
    url = ""
    if reference.kind == "hub":
        revision = f"/tree/{reference.revision}" if reference.revision else ""
        url = f"https://huggingface.co/{reference.hub_id}{revision}"
    return ModelFacts(
        reference=files.name,
        runtime=files.runtime,
        file=files.weights[0].name,
        size_bytes=size,
        card_url=url,
        card="" if url else _card(files.folder),
        graph=graph,
    )


def _card(folder: Path) -> str:
    """README.md without the settings at its top; blank if there is none of the folder's own."""
    path = folder / _CARD
    if not path.is_file() or not is_inside(path, folder):
        return ""
    with path.open("rb") as file:
        text = file.read(_CARD_BYTES).decode("utf-8", errors="replace")
    if text.startswith("---\n"):
        settings, line, rest = text[4:].partition("\n---")
        text = rest if line else settings
    return text.strip()
