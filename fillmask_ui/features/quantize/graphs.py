"""Graphs of variants: the model that they are made of, and a variant beside its baseline."""

import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from onnx import ModelProto

from fillmask_ui.errors import ModelError, OptionError
from fillmask_ui.files import finished_file, writing
from fillmask_ui.models.load import load_choice
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.models.model_files import has_tokenizer
from fillmask_ui.models.onnx_graph import read_graph, self_contained
from fillmask_ui.models.onnx_model import OnnxMaskedLM
from fillmask_ui.models.runtime_model import RuntimeModel
from fillmask_ui.onnx_tools.float32_graph import make_whole
from fillmask_ui.onnx_tools.graph_edits import Matching, in_full_precision, match_parts
from fillmask_ui.onnx_tools.graph_parts import MATRICES, choose_parts, find_parts
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.publishing.hub_folder import FULL, copy_beside
from fillmask_ui.records import ModelSignature
from fillmask_ui.tokenizers import same_tokenizer

# Products whose parts are not read: operators, what such a file is, and what to do.
_UNREAD = (
    (
        ("QLinearMatMul", "QGemm"),
        "a QOperator graph",
        "make it with quant_format=QuantFormat.QDQ, which stores the same numbers",
    ),
    (
        ("MatMulBnb4",),
        "in 4 bits of bitsandbytes",
        "make 4 bits in blocks with fillmask-ui quantize --scheme int4",
    ),
    (
        ("DynamicQuantizeMatMul", "MatMulIntegerToFloat", "QAttention"),
        "a graph that ONNX Runtime has optimized",
        "name the file that it was made from",
    ),
)

Loader = Callable[[ModelChoice], MaskedLM]
_GRAPH_BYTES = (1 << 31) - (1 << 20)  # protobuf, in which graphs are written, ends at 2 GiB
_MATCHED = 0.5  # of the baseline's matrices, at least, for it to be the same model


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

    A `ModelError` if it computes in half precision, or the export fails or gives other logits.
    """
    files = loaded.files
    if files.runtime != "torch":
        graph = self_contained(read_graph(files.weights[0], files.folder, files.name))
        make_whole(graph, choice.reference)
        model = cast("OnnxMaskedLM", loaded)
        return Source(choice.reference, loaded.signature, model, graph)
    from fillmask_ui.models.torch_model import check_parity, export_files  # may not be installed

    whole = export_files(files)
    path = folder / FULL
    path.write_bytes(whole.SerializeToString(deterministic=True))
    model = cast("OnnxMaskedLM", load(ModelChoice(str(path), threads=choice.threads)))
    in_float32 = choice.dtype in (None, "float32", "float64")
    compared = loaded if in_float32 else load(replace(choice, dtype=None))
    parity = check_parity(model, compared)
    return Source(choice.reference, loaded.signature, model, whole, parity)


@dataclass(frozen=True, eq=False)
class LoadedGraph:
    """A model and its graph."""

    choice: ModelChoice
    model: OnnxMaskedLM
    graph: ModelProto  # as in its file, with its weights inside


@dataclass(frozen=True, eq=False)
class GraphPair:
    """A quantized model and its baseline, with their parts matched."""

    quantized: LoadedGraph
    baseline: LoadedGraph
    matching: Matching  # of the quantized model's parts with those of the baseline

    def restored(self, names: Collection[str]) -> ModelProto:
        """The quantized graph with parts, named as in the baseline, in full precision."""
        chosen = choose_parts([pair.second for pair in self.matching.pairs], list(names))
        pairs = [pair for pair in self.matching.pairs if pair.second in chosen]
        return in_full_precision(self.quantized.graph, self.baseline.graph, pairs)

    @contextmanager
    def loaded(self, graph: ModelProto) -> Iterator[MaskedLM]:
        """A changed graph as a model, from files that are gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="fillmask-ui-") as scratch:
            path = Path(scratch) / "model.onnx"
            path.write_bytes(graph.SerializeToString(deterministic=True))
            copy_beside(self.quantized.model.files, path.parent)
            choice = replace(self.quantized.choice, onnx_file=None, tokenizer=None)
            yield load_choice(replace(choice, reference=str(path)))

    def write_restored(self, names: Collection[str], path: Path) -> None:
        """Write `restored` to a new .onnx file, which has its name once it has been run.

        Tokenizer and config.json are put beside it if there is no tokenizer. A FillmaskError for an
        unknown part, another name, a file that exists or cannot be written, or does not run.
        """
        if path.suffix != ".onnx":
            raise OptionError(f"{path} must end in .onnx, as every ONNX file does")
        if path.exists():
            raise OptionError(f"{path} exists: name another file")
        graph = self.restored(names)
        homes = [path.parent.parent, path.parent] if path.parent.name == "onnx" else [path.parent]
        with self.loaded(graph), writing(path, ": name a file where you may write"):
            path.parent.mkdir(parents=True, exist_ok=True)
            with finished_file(path) as fresh:
                fresh.write_bytes(graph.SerializeToString(deterministic=True))
            if not any(map(has_tokenizer, homes)):
                copy_beside(self.quantized.model.files, homes[0])


def open_pair(
    quantized: ModelChoice, baseline: ModelChoice, load: Loader = load_choice
) -> GraphPair:
    """Load two files of one model and match their parts; errors as of `diagnose`."""
    first = _load_graph(quantized, load)
    second = first if quantized == baseline else _load_graph(baseline, load)
    if not same_tokenizer(first.model.vocabulary, second.model.vocabulary):
        raise OptionError(
            f"{quantized.reference} and {baseline.reference} have different tokenizers: give the "
            "model that it was made from as the baseline"
        )
    matching = match_parts(find_parts(first.graph), find_parts(second.graph))
    matched = sum(pair.second.kind in MATRICES for pair in matching.pairs)
    matrices = matched + sum(part.kind in MATRICES for part in matching.only_second)
    if matched < max(1, _MATCHED * matrices):
        raise OptionError(
            f"of {matrices} matrices of {baseline.reference}, only {matched} have a counterpart "
            f"of the same shape in {quantized.reference}: give the model that it was made from as "
            "the baseline"
        )
    return GraphPair(first, second, matching)


def _load_graph(choice: ModelChoice, load: Loader) -> LoadedGraph:
    model = load(choice)
    if not isinstance(model, OnnxMaskedLM):
        raise ModelError(
            f"{choice.reference} runs on PyTorch, and a diagnosis reads graphs: write it as ONNX "
            f"with fillmask-ui export {choice.reference} -o FOLDER, and name FOLDER"
        )
    check_memory(choice.reference, model.signature.parameters)
    files = model.files
    graph = self_contained(read_graph(files.weights[0], files.folder, files.name))
    _refuse_unread(choice.reference, graph)
    return LoadedGraph(choice, model, graph)


def _refuse_unread(name: str, graph: ModelProto) -> None:
    counts = Counter(node.op_type for node in graph.graph.node)
    for operators, form, remedy in _UNREAD:
        for operator in operators:
            if counts[operator]:
                raise ModelError(
                    f"{name} is {form} ({counts[operator]} {operator}), which diagnose cannot take "
                    f"apart: {remedy}, and diagnose that; eval and check measure it as it is"
                )
