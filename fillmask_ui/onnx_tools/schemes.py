"""The ways to make a graph smaller or faster, each by ONNX Runtime's own tool.

Each starts from a whole float32 graph (`onnx_tools.float32_graph`) and writes one file. Tied word
embeddings stay one constant except in 4 bits, whose blocks have another order in a lookup.

Source:
    onnxruntime.quantization and onnxruntime.transformers.float16,
    https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html
"""

import importlib.util
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper
from onnx.numpy_helper import from_array, to_array

from fillmask_ui.errors import (
    FillmaskError,
    ModelError,
    OptionError,
    first_line,
    how_to_install,
    unknown,
)
from fillmask_ui.files import writing
from fillmask_ui.onnx_tools.constant_folding import copy_model, rename, replace_nodes
from fillmask_ui.onnx_tools.dynamic_int8 import dynamic_int8, quantize_matrix, quiet_tools
from fillmask_ui.onnx_tools.float32_graph import split_ties, transposed_constants
from fillmask_ui.onnx_tools.graph_edits import stored_bytes
from fillmask_ui.onnx_tools.graph_parts import find_parts, nodes_of
from fillmask_ui.onnx_tools.smoothing import smoothed

_LARGEST_HALF = 65504.0

Feeds = Sequence[Mapping[str, np.ndarray]]  # inputs of a graph by name, a text each


@dataclass(frozen=True)
class Scheme:
    """One row of the table."""

    label: str  # a few words
    description: str  # one sentence
    file: str  # in the folder `onnx/`, as the hub calls such files
    write: Callable[[ModelProto, Path, list[str], Feeds], None]
    settings: Mapping[str, Any]  # for the card
    calibrated: bool = False  # whether it runs the model on texts
    package: str = ""  # needed beside onnxruntime, an extra of this project


def write_variant(
    name: str, model: ModelProto, path: Path, *, exclude: Collection[str] = (), feeds: Feeds = ()
) -> None:
    """Apply a scheme to a whole graph, which is not changed, and save the result.

    Nodes of the names `exclude` stay in float32; `feeds` are texts to calibrate with.

    Raises:
        OptionError: for an unknown scheme.
        ModelError: if the tool fails, is not installed, or finds nothing to do.
    """
    scheme = find_scheme(name, installed=True)
    start = split_ties(model, exclude)
    with quiet_tools(), writing(path):
        try:
            scheme.write(start, path, sorted(exclude), feeds)
            result = onnx.load(path)
        except (OSError, FillmaskError):
            raise
        except Exception as error:  # of any kind, by the tools
            raise ModelError(
                f"onnxruntime's tool for {name} fails on this graph: {first_line(error)}"
            ) from error
    if stored_bytes(result) >= stored_bytes(start):
        raise ModelError(
            f"{name} finds nothing to make smaller: no product or embedding with a constant "
            "matrix is left; exclude less"
        )


def find_scheme(name: str, *, installed: bool = False) -> Scheme:
    """A row of the table, or an OptionError; a ModelError if it is to be `installed` and is not."""
    if name not in SCHEMES:
        raise OptionError(unknown("scheme", name, [*SCHEMES, "all"]))
    package = SCHEMES[name].package
    if installed and package and importlib.util.find_spec(package) is None:
        raise ModelError(
            f"{name} needs the package {package.replace('_', '-')}, which is not installed: "
            f"{how_to_install('quantize')}"
        )
    return SCHEMES[name]


def _embedded_int8(model: ModelProto, path: Path, exclude: list[str], feeds: Feeds) -> None:
    # The last product of a feed-forward part, which has more rows than columns: on the embedded
    # model rounding the activations that enter it costs the most loss, and its weights none.
    outputs = [
        part
        for part in find_parts(model)
        if part.kind == "product" and part.layer is not None and part.shape[0] > part.shape[1]
    ]
    float_products = nodes_of(model, outputs)
    left_out = float_products.union(exclude)
    result = dynamic_int8(smoothed(model, feeds, exclude=left_out), exclude=left_out)
    _store_in_int8(result, float_products.difference(exclude))
    _store_in_half(result, exclude)
    onnx.save(result, path)


def _store_in_int8(model: ModelProto, products: Collection[str]) -> None:
    """Store the matrices that only these products read in int8, behind a Cast and a Mul.

    There is one scale a column. ONNX Runtime computes the float32 matrix when it opens the graph.
    """
    graph = model.graph
    read_elsewhere, read = set[str](), set[str]()
    for node in graph.node:
        if node.name not in products:
            read_elsewhere.update(node.input)
        elif node.op_type == "MatMul":
            read.add(node.input[1])
    nodes: list[NodeProto] = []
    added: list[TensorProto] = []
    renamed: dict[str, str] = {}
    for tensor in graph.initializer:
        name = tensor.name
        if name not in read or name in read_elsewhere:
            continue
        values, scale = quantize_matrix(to_array(tensor), 0)
        stored, floats = f"{name}_quantized", f"{name}_quantized.float32"
        added += [from_array(values, stored), from_array(scale, f"{name}_scale")]
        nodes += [
            helper.make_node("Cast", [stored], [floats], to=TensorProto.FLOAT),
            helper.make_node("Mul", [floats, f"{name}_scale"], [f"{name}_DQ"]),
        ]
        renamed[name] = f"{name}_DQ"
    rename(graph, renamed)
    replace_nodes(graph, [*nodes, *graph.node], added)


def _store_in_half(model: ModelProto, exclude: Collection[str]) -> None:
    """Store float matrices in float16 behind a Cast, except those of excluded nodes."""
    graph = model.graph
    exact = {name for node in graph.node if node.name in exclude for name in node.input}
    matrices = [
        tensor
        for tensor in graph.initializer
        if tensor.data_type == TensorProto.FLOAT
        and len(tensor.dims) == 2
        and tensor.name not in exact
        and np.abs(to_array(tensor)).max() <= _LARGEST_HALF
    ]
    renamed = {tensor.name: f"{tensor.name}.float32" for tensor in matrices}
    rename(graph, renamed)
    for tensor in matrices:
        tensor.CopyFrom(from_array(to_array(tensor).astype(np.float16), tensor.name))
    casts = [
        helper.make_node("Cast", [name], [output], to=TensorProto.FLOAT)
        for name, output in renamed.items()
    ]
    replace_nodes(graph, [*casts, *graph.node])


def _dynamic(
    model: ModelProto, path: Path, exclude: list[str], _: Feeds, *, per_channel: bool
) -> None:
    from onnxruntime.quantization import quantize_dynamic

    # The tool does not see that a transposed matrix is constant: it must not test, and be told
    # which products have no constant.
    quantize_dynamic(
        copy_model(model),
        path,
        per_channel=per_channel,
        nodes_to_exclude=[*exclude, *_attention_products(model)],
        extra_options={"MatMulConstBOnly": False},
    )


def _static(model: ModelProto, path: Path, exclude: list[str], feeds: Feeds) -> None:
    from onnxruntime.quantization import (
        CalibrationDataReader,
        CalibrationMethod,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    class CalibrationTexts(CalibrationDataReader):
        def __init__(self) -> None:
            self.remaining = iter(feeds)

        def get_next(self) -> Any:
            return next(self.remaining, None)

    quantize_static(
        copy_model(model),
        path,
        CalibrationTexts(),
        quant_format=QuantFormat.QDQ,
        op_types_to_quantize=["MatMul", "Gemm", "Gather", "Transpose"],
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        calibrate_method=CalibrationMethod.MinMax,
        nodes_to_exclude=[*exclude, *_attention_products(model)],
        extra_options={
            # The mean of each text's extremes. On the embedded model, 3.020 nats in full precision:
            # 3.056 with it, 3.070 without, 3.396 where outputs of products are quantized too.
            "CalibMovingAverage": True,
            "OpTypesToExcludeOutputQuantization": ["MatMul", "Gemm"],
        },
    )


def _blocks(model: ModelProto, path: Path, exclude: list[str], _: Feeds) -> None:
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(
        split_ties(model),
        block_size=32,
        is_symmetric=False,
        accuracy_level=4,
        nodes_to_exclude=exclude,
        op_types_to_quantize=("MatMul", "Gather"),
        quant_axes=(("MatMul", 0), ("Gather", 1)),
    )
    quantizer.process()
    onnx.save(quantizer.model.model, path)


def _half(model: ModelProto, path: Path, exclude: list[str], _: Feeds) -> None:
    from onnxruntime.transformers.float16 import convert_float_to_float16

    half = convert_float_to_float16(copy_model(model), keep_io_types=True, node_block_list=exclude)
    # Two excluded nodes that read one value get two Casts of one name.
    by_output: dict[str, NodeProto] = {}
    for node in copy_model(half).graph.node:
        by_output.setdefault(node.output[0], node)
    del half.graph.node[:]
    half.graph.node.extend(by_output.values())
    onnx.save(half, path)


DEFAULT_SCHEME = "int8"  # the recipe of `embedded:int8`
SCHEMES: dict[str, Scheme] = {
    "int8": Scheme(
        "int8",
        "Weights in 8 bits with one scale a column, activations smoothed and scaled text by text; "
        "those that enter the last product of a feed-forward part stay in float32.",
        "model_int8.onnx",
        _embedded_int8,
        {
            "tool": "quantize_dynamic",
            "weights": "QInt8 per channel",
            "activations": "QUInt8",
            "smoothing": "SmoothQuant, alpha of each product by its error on the texts",
            "tied embeddings": "QInt8, one scale a row",
            "weights alone": "last products of feed-forward parts",
            "in float16": "other embeddings",
        },
        calibrated=True,
    ),
    "int8-channel": Scheme(
        "int8, one scale a column",
        "All matrices in 8 bits with one scale a column, activations scaled text by text.",
        "model_int8_channel.onnx",
        partial(_dynamic, per_channel=True),
        {"tool": "quantize_dynamic", "weights": "QInt8 per channel", "activations": "QUInt8"},
    ),
    "int8-tensor": Scheme(
        "int8, one scale a matrix",
        "All matrices in 8 bits with one scale a matrix, activations scaled text by text.",
        "model_int8_tensor.onnx",
        partial(_dynamic, per_channel=False),
        {"tool": "quantize_dynamic", "weights": "QInt8 per tensor", "activations": "QUInt8"},
    ),
    "qdq": Scheme(
        "int8, static",
        "Weights in 8 bits with one scale a column, activations with fixed scales, which are "
        "calibrated on texts.",
        "model_qdq.onnx",
        _static,
        {
            "tool": "quantize_static",
            "format": "QDQ",
            "weights": "QInt8 per channel",
            "activations": "QUInt8, inputs of products",
            "calibration": "MinMax, moving average",
        },
        calibrated=True,
    ),
    "int4": Scheme(
        "int4, in blocks",
        "Weights in 4 bits with a scale and zero point for each block of 32.",
        "model_q4.onnx",
        _blocks,
        {
            "tool": "MatMulNBitsQuantizer",
            "block size": 32,
            "symmetric": False,
            "accuracy level": 4,
            "operators": "MatMul, Gather",
        },
        package="onnx_ir",
    ),
    "fp16": Scheme(
        "float16",
        "Weights and activations in half precision; a CPU mostly computes in float32 anyway.",
        "model_fp16.onnx",
        _half,
        {"tool": "convert_float_to_float16", "inputs and outputs": "as they were"},
    ),
}


def _attention_products(model: ModelProto) -> list[str]:
    constants = {tensor.name for tensor in model.graph.initializer} | transposed_constants(
        model
    ).keys()
    return [
        node.name
        for node in model.graph.node
        if node.op_type == "MatMul" and not constants.intersection(node.input)
    ]
