"""The model that variants are made of, as one whole float32 graph, and texts to calibrate with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
from onnx import ModelProto

from fillmask_ui.errors import DataError, ModelError, TextError
from fillmask_ui.masking import MaskRecipe, generator, hide_random, hideable
from fillmask_ui.models import ModelChoice
from fillmask_ui.models.onnx_graph import read_graph
from fillmask_ui.models.onnx_model import OnnxMaskedLM
from fillmask_ui.models.runtime_model import RuntimeModel
from fillmask_ui.onnx_tools.float32_graph import make_whole
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.quantizing.hub_folder import FULL
from fillmask_ui.records import Example, ModelSignature

Loader = Callable[[ModelChoice], MaskedLM]
_GRAPH_BYTES = (1 << 31) - (1 << 20)  # protobuf, in which graphs are written, ends at 2 GiB
_MOST_TOKENS, _SEED = 256, 42  # of a calibration text


@dataclass(frozen=True, eq=False)
class Source:
    """A model in full precision."""

    reference: str  # as the user wrote it
    signature: ModelSignature  # of the model that was named
    model: OnnxMaskedLM  # the same on ONNX Runtime
    whole: ModelProto  # its graph, see `onnx_tools.float32_graph`
    parity: float | None = None  # largest difference of a logit from PyTorch; None if not exported


def check_memory(name: str, parameters: int | None) -> None:
    """Stop with a ModelError for a model that is too large to be worked on here."""
    full = 4 * (parameters or 0)
    if full > _GRAPH_BYTES:
        raise ModelError(
            f"{name} has {full / 1e9:.1f} GB of weights in float32, and a graph that "
            f"onnxruntime's tools can write holds {_GRAPH_BYTES / 1e9:.1f} GB at most: take a "
            "smaller model"
        )


def load_source(choice: ModelChoice, load: Loader) -> RuntimeModel:
    """The model of a choice; a ModelError if it is quantized already or too large."""
    loaded = cast("RuntimeModel", load(choice))
    if loaded.signature.precision.startswith("int"):
        raise ModelError(
            f"{choice.reference} is quantized already ({loaded.signature.precision}): give the "
            "model that it was made from, in full precision"
        )
    check_memory(choice.reference, loaded.signature.parameters)
    return loaded


def read_source(choice: ModelChoice, loaded: RuntimeModel, load: Loader, folder: Path) -> Source:
    """The model with its graph; one on PyTorch is exported into the folder.

    Raises:
        ModelError: if it computes in half precision, or the export fails or gives other logits.
    """
    files = loaded.files
    if files.runtime != "torch":
        graph = read_graph(files.weights[0], files.folder, files.name)
        make_whole(graph.model, graph.homes.others, choice.reference)
        model = cast("OnnxMaskedLM", loaded)
        return Source(choice.reference, loaded.signature, model, graph.model)
    from fillmask_ui.models.torch_model import check_parity, export_files  # may not be installed

    whole = export_files(files)
    path = folder / FULL
    path.write_bytes(whole.SerializeToString(deterministic=True))
    model = cast("OnnxMaskedLM", load(ModelChoice(str(path), threads=choice.threads)))
    in_float32 = choice.dtype in (None, "float32", "float64")
    compared = loaded if in_float32 else load(replace(choice, dtype=None))
    parity = check_parity(model, compared)
    return Source(choice.reference, loaded.signature, model, whole, parity)


def calibration_feeds(model: OnnxMaskedLM, texts: Sequence[Example]) -> list[dict[str, np.ndarray]]:
    """Inputs of the model's graph, a text each, some tokens hidden, cut at 256 tokens."""
    vocabulary, longest = model.vocabulary, min(_MOST_TOKENS, model.max_tokens)
    feeds = []
    for text in texts:
        try:
            encoding = vocabulary.encode(text.text)
        except TextError:
            continue
        if not hideable(encoding.ids, vocabulary.special_ids).any():
            continue
        hidden = hide_random(encoding, vocabulary, MaskRecipe(), generator(_SEED, text.id))
        ids = hidden.input_ids  # int64 [T]
        if len(ids) > longest:
            ids = np.append(ids[: longest - 1], ids[-1])
        feeds.append(model.arrays(ids[None], np.ones_like(ids[None])))
    if not feeds:
        raise DataError(
            f"none of the {len(texts)} calibration texts can be used: they are blank, or of "
            "special or unknown tokens alone; give some sentences, one a line"
        )
    return feeds
