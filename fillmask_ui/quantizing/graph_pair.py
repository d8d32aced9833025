"""A quantized model and its baseline, opened: their graphs, their parts side by side."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fillmask_ui.errors import ModelError, OptionError
from fillmask_ui.evaluation.measure import same_tokenizer
from fillmask_ui.files import writing
from fillmask_ui.models.load import load_choice
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.models.model_files import has_tokenizer
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.quantizing.float32_source import Loader, check_memory
from fillmask_ui.quantizing.hub_folder import copy_beside

if TYPE_CHECKING:
    from onnx import ModelProto

    from fillmask_ui.models.onnx_model import OnnxMaskedLM
    from fillmask_ui.onnx_tools.graph_edits import Matching, Pair


_MATCHED = 0.5  # of the baseline's products, at least, for it to be the same model


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two models."""

    choice: ModelChoice
    model: OnnxMaskedLM
    graph: ModelProto  # as in its file, with its weights inside


@dataclass(frozen=True, eq=False)
class Opened:
    """Both models and what belongs together."""

    quantized: Side
    baseline: Side
    matching: Matching  # of the quantized model's parts with those of the baseline

    def restored(self, names: Collection[str]) -> ModelProto:
        """The quantized graph with some parts, by their names in the baseline, as they are there.

        Raises:
            OptionError: for a name that is no part of both.
        """
        from fillmask_ui.onnx_tools.graph_edits import in_full_precision
        from fillmask_ui.onnx_tools.graph_parts import choose_parts

        chosen = choose_parts([pair.second for pair in self.matching.pairs], list(names))
        kept = {part.name for part in chosen}
        pairs = [pair for pair in self.matching.pairs if pair.second.name in kept]
        return in_full_precision(self.quantized.graph, self.baseline.graph, pairs)

    @contextmanager
    def loaded(self, graph: ModelProto, load: Loader = load_choice) -> Iterator[MaskedLM]:
        """A changed graph as a model, from files that are gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="fillmask-ui-") as scratch:
            path = Path(scratch) / "model.onnx"
            save(graph, path)
            self.copy_beside(path.parent)
            yield load(
                replace(self.quantized.choice, reference=str(path), onnx_file=None, tokenizer=None)
            )

    def copy_beside(self, folder: Path) -> None:
        """Put the quantized model's config.json and tokenizer into a folder."""
        copy_beside(self.quantized.model.files, folder)


def open_both(quantized: ModelChoice, baseline: ModelChoice, load: Loader = load_choice) -> Opened:
    """Load two files of one model and match their parts.

    Raises:
        ModelError: if one cannot be loaded, runs on PyTorch, or does not fit into memory.
        OptionError: if they are not the same model.
    """
    from fillmask_ui.onnx_tools.graph_edits import match_parts
    from fillmask_ui.onnx_tools.graph_parts import find_parts

    first = _side(quantized, load)
    second = first if quantized == baseline else _side(baseline, load)
    if not same_tokenizer(first.model.vocabulary, second.model.vocabulary):
        raise OptionError(
            f"{quantized.reference} and {baseline.reference} have different tokenizers, so one is "
            "no quantization of the other: give the model that it was made from as the baseline"
        )
    matching = match_parts(find_parts(first.graph), find_parts(second.graph))
    matched = sum(_is_matrix(pair) for pair in matching.pairs)
    wanted = matched + sum(part.kind in _MATRICES for part in matching.only_second)
    if matched < max(1, _MATCHED * wanted):
        raise OptionError(
            f"of {wanted} matrices of {baseline.reference} only {matched} have one of the same "
            f"shape and place in {quantized.reference}: give the model that it was made from as "
            "the baseline"
        )
    return Opened(first, second, matching)


_MATRICES = ("product", "projection", "embedding")


def _is_matrix(pair: Pair) -> bool:
    return pair.second.kind in _MATRICES


def _side(choice: ModelChoice, load: Loader) -> Side:
    from fillmask_ui.models.onnx_graph import read_graph
    from fillmask_ui.models.onnx_model import OnnxMaskedLM
    from fillmask_ui.onnx_tools.float32_graph import inline_weights

    model = load(choice)
    if not isinstance(model, OnnxMaskedLM):
        raise ModelError(
            f"{choice.reference} runs on PyTorch, and a diagnosis reads graphs: write it as ONNX "
            f"with fillmask-ui export {choice.reference} -o FOLDER, and name FOLDER"
        )
    check_memory(choice.reference, model.signature.parameters)
    files = model.files
    graph = read_graph(files.weights[0], files.folder, files.name)
    inline_weights(graph.model, graph.homes.others)
    return Side(choice, model, graph.model)


def save(graph: ModelProto, path: Path) -> None:
    """Write a graph into one file."""
    with writing(path):
        path.write_bytes(graph.SerializeToString(deterministic=True))


def write_restored(
    opened: Opened, names: Collection[str], path: Path, *, force: bool = False
) -> None:
    """Write the quantized model with some parts in full precision.

    The file has its name when it has been run; the tokenizer and config.json are put beside it
    where none are there.

    Args:
        opened: both models.
        names: of the parts, as in the baseline.
        path: ends in .onnx.
        force: write over a file that is there.

    Raises:
        OptionError: for an unknown part, or a path that must not be written.
        DataError: if it cannot be written.
        ModelError: if the result does not run.
    """
    if path.suffix != ".onnx":
        raise OptionError(f"{path} must end in .onnx, as every ONNX file does")
    if path.is_dir() or (path.exists() and not force):
        raise OptionError(f"{path} exists: name another file")
    real = path.resolve()
    if real in {
        own.model.files.weights[0].resolve() for own in (opened.quantized, opened.baseline)
    }:
        raise OptionError(f"{path} is one of the two models: name another file")
    graph = opened.restored(names)
    homes = [path.parent.parent, path.parent] if path.parent.name == "onnx" else [path.parent]
    with writing(path, ": name a file where you may write"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".draft-") as scratch:
            draft = Path(scratch) / path.name
            save(graph, draft)
            opened.copy_beside(draft.parent)
            choice = replace(opened.quantized.choice, onnx_file=None, tokenizer=None)
            load_choice(replace(choice, reference=str(draft)))  # or an error, and nothing is left
            if not any(map(has_tokenizer, homes)):
                opened.copy_beside(homes[0])
            draft.replace(path)
