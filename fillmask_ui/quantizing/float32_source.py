"""The model that variants are made of: loaded, and as one whole float32 graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from fillmask_ui.errors import DataError, ModelError, TextError
from fillmask_ui.masking import MaskRecipe, generator, hide_random, hideable
from fillmask_ui.models import ModelChoice
from fillmask_ui.models.runtime_model import RuntimeModel
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.quantizing.hub_folder import FULL, Draft
from fillmask_ui.records import Example, ModelSignature
from fillmask_ui.texts import TextSource, open_texts

if TYPE_CHECKING:
    from onnx import ModelProto

    from fillmask_ui.models.onnx_model import OnnxMaskedLM


Loader = Callable[[ModelChoice], MaskedLM]


@dataclass(frozen=True, eq=False)
class Source:
    """A model in full precision."""

    reference: str  # as the user wrote it
    signature: ModelSignature  # of the model that was named
    model: OnnxMaskedLM  # the same on ONNX Runtime, exported where it was not
    whole: ModelProto  # its graph, see `onnx_tools.float32_graph`
    parity: float | None = (
        None  # largest difference of a logit from PyTorch's; None if not exported
    )


def named_model(choice: ModelChoice, load: Loader) -> RuntimeModel:
    """The model of a choice, if variants can be made of it.

    Raises:
        ModelError: if it cannot be loaded, is quantized already, or does not fit into memory.
    """
    loaded = cast("RuntimeModel", load(choice))
    if loaded.signature.precision.startswith("int"):
        raise ModelError(
            f"{choice.reference} is quantized already ({loaded.signature.precision}): give the "
            "model that it was made from, in full precision"
        )
    check_memory(choice.reference, loaded.signature.parameters)
    return loaded


def read_source(choice: ModelChoice, named: RuntimeModel, load: Loader, drafted: Draft) -> Source:
    """The model on ONNX Runtime with its graph; one on PyTorch is exported into the draft first.

    Raises:
        ModelError: if its graph computes in half precision, or cannot be exported.
    """
    if named.files.runtime == "torch":
        return exported(choice, named, load, drafted)
    whole = _whole(named, choice.reference)
    return Source(choice.reference, named.signature, cast("OnnxMaskedLM", named), whole)


def exported(choice: ModelChoice, named: RuntimeModel, load: Loader, drafted: Draft) -> Source:
    """A model on PyTorch exported into the draft as `FULL`, and compared with what it was.

    Raises:
        ModelError: if torch cannot export it, or the graph gives other logits.
    """
    from fillmask_ui.models.torch_model import check_parity, export_files

    whole = export_files(named.files)
    path = drafted.folder / FULL
    path.write_bytes(whole.SerializeToString(deterministic=True))
    again = load(ModelChoice(str(path), threads=choice.threads))
    in_float32 = choice.dtype in (None, "float32", "float64")
    compared = named if in_float32 else load(replace(choice, dtype=None))
    parity = check_parity(again, compared)
    return Source(choice.reference, named.signature, cast("OnnxMaskedLM", again), whole, parity)


def _whole(model: RuntimeModel, name: str) -> ModelProto:
    from fillmask_ui.models.onnx_graph import read_graph
    from fillmask_ui.onnx_tools.float32_graph import make_whole

    files = model.files
    graph = read_graph(files.weights[0], files.folder, files.name)
    make_whole(graph.model, graph.homes.others, name)
    return graph.model


_GRAPH_BYTES = (1 << 31) - (1 << 20)  # protobuf, in which graphs are written, ends at 2 GiB


def check_memory(name: str, parameters: int | None) -> None:
    """Stop with a ModelError for a model that is too large to be worked on here."""
    full = 4 * (parameters or 0)
    if full > _GRAPH_BYTES:
        raise ModelError(
            f"{name} has {full / 1e9:.1f} GB of weights in float32, and a graph that "
            f"onnxruntime's tools can write holds {_GRAPH_BYTES / 1e9:.1f} GB at most: take a "
            "smaller model"
        )


MEASURED = 200  # of the embedded texts, the first so many are for measuring
_MOST_TOKENS, _SEED = 256, 42


def read_texts(source: TextSource | None) -> list[Example]:
    """The texts of a source, by default the hundred embedded ones behind `MEASURED`."""
    with open_texts(source or TextSource()) as texts:
        return list(texts)[0 if source else MEASURED :]


def calibration_feeds(model: OnnxMaskedLM, texts: list[Example]) -> list[dict[str, np.ndarray]]:
    """Inputs of the model's graph, a text each, cut at 256 tokens.

    Raises:
        DataError: if no text can be used.
    """
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
