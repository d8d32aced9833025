"""The parts of a model that a graph names: its matrices, embeddings, biases and norms.

A part is one learned constant where it is read. A matrix is seen through what exporters and
quantizers wrap it in: Cast and Transpose, DequantizeLinear, the integer products of dynamic
quantization, the blocks of MatMulNBits and GatherBlockQuantized.

Source:
    Operators as in https://onnx.ai/onnx/operators/ and, for the domain com.microsoft, in
    docs/ContribOperators.md of onnxruntime.
"""

import difflib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from onnx import ModelProto, NodeProto

from fillmask_ui.errors import OptionError
from fillmask_ui.onnx_tools.constant_folding import (
    SMOOTHING,
    UNSMOOTHING,
    Constants,
    attributes_of,
    nodes_for,
)

MATRICES = ("product", "projection", "embedding")
KINDS = (*MATRICES, "bias", "norm")

# Operator -> its learned inputs and their kinds; of Add and Mul at either side.
_LEARNED: dict[str, tuple[tuple[int, str], ...]] = {
    "MatMul": ((1, "product"),),
    "Gemm": ((1, "product"), (2, "bias")),
    "MatMulInteger": ((1, "product"),),
    "MatMulNBits": ((1, "product"), (5, "bias")),
    "Gather": ((0, "embedding"),),
    "GatherBlockQuantized": ((0, "embedding"),),
    "Add": ((0, "bias"), (1, "bias")),
    "Mul": ((0, "norm"), (1, "norm")),
    "BiasGelu": ((1, "bias"),),
    "FastGelu": ((1, "bias"),),
    "LayerNormalization": ((1, "norm"), (2, "norm")),
    "SimplifiedLayerNormalization": ((1, "norm"),),
    "RMSNormalization": ((1, "norm"),),
    "SkipLayerNormalization": ((2, "norm"), (3, "norm"), (4, "bias")),
    "SkipSimplifiedLayerNormalization": ((2, "norm"), (3, "bias")),
}
# Operator -> inputs that are scales and zero points of its matrix.
_SCALES = {
    "MatMulInteger": (3,),
    "MatMulNBits": (2, 3, 4),
    "GatherBlockQuantized": (2, 3),
    "DequantizeLinear": (1, 2),
}
_ATTENTION = ("Softmax", "Attention", "MultiHeadAttention", "GroupQueryAttention", "QAttention")
# Operators that hand no activation on.
_NO_ACTIVATION = ("DynamicQuantizeLinear", "QuantizeLinear", "Shape", "Size")
# What quantizers and exporters put behind the name of a tensor.
_SUFFIX = re.compile(r"(_quantized|_Q\d+\w*|_scales?|_zero_points?|\.float32|\.shared|_DQ)+$")
_MODULE = re.compile(r"(?P<module>.+)\.(?:weight|bias|gamma|beta)")
_LAYER = re.compile(r"(?:^|[./])(?:layers?|h|blocks?)[./](\d+)(?:[./]|$)")


@dataclass(frozen=True)
class Part:
    """One learned constant, where the graph reads it."""

    # In the model, without `.weight`, as far as the graph tells it; of a bias with `.bias`. Unique:
    # further readers of one constant end in #2, ...
    name: str
    kind: str  # one of `KINDS`
    layer: int | None  # of the encoder, from 0; None outside
    output: str  # the float value that it yields: a product, rows, what a bias is added to
    constant: str  # the stored tensor with its numbers
    shape: tuple[int, ...]  # as used: [K, N] of a product
    source: str  # the float value, or for an embedding the ids, that it is applied to
    node: str  # first output of the operator that reads it
    input_index: int  # of that operator's input
    scales: tuple[str, ...] = ()  # values with its scales and zero points
    smoothing: str = ""  # stored 1 / s of its rows, of a norm of its numbers, see `smoothing`
    half: bool = False  # whether the graph computes it in half precision
    quantized: bool = False  # whether it is stored in fewer bits than a float

    def is_called(self, pattern: str) -> bool:
        """Whether a pattern of `choose_parts` means it."""
        return pattern in (self.name, self.kind, f"layer:{self.layer}")


def find_parts(model: ModelProto) -> tuple[Part, ...]:
    """All parts, in the order of computation; weights need not be in the graph."""
    nodes = list(nodes_for(model.graph.node, [output.name for output in model.graph.output]))
    constants = Constants(model.graph)
    unnamed = list(_search(nodes, constants))
    head = _find_head(model, constants, unnamed)
    depths = _layer_depths(nodes, constants, {p.node for p in unnamed if p.kind == "product"})
    readers = Counter(part.constant for part in unnamed)
    uses: Counter[str] = Counter()  # of each name
    parts = []
    for part in unnamed:
        kind, shared = part.kind, readers[part.constant] > 1
        if kind == "product" and part.node == head.projection:
            kind = "projection"
        name = _name(constants, part, shared)
        layer = None
        if kind != "embedding" and part.node not in head.nodes:
            numbered = _LAYER.search(name)
            # Exporters merge equal biases and norms, whose names then tell nothing.
            if numbered and not (shared and kind in ("bias", "norm")):
                layer = int(numbered[1])
            else:
                layer = depths.layer_of(part)
        uses[name] += 1
        if uses[name] > 1:
            name += f"#{uses[name]}"
        parts.append(replace(part, name=name, kind=kind, layer=layer))
    return tuple(parts)


def choose_parts(parts: Sequence[Part], patterns: Sequence[str]) -> tuple[Part, ...]:
    """The parts that any pattern (a name, a kind, `layer:3`) means, in their order.

    Raises:
        OptionError: for a pattern that means none, with names near it.
    """
    for pattern in patterns:
        if not any(part.is_called(pattern) for part in parts):
            layers = sorted({part.layer for part in parts if part.layer is not None})
            groups = sorted({part.kind for part in parts}) + [f"layer:{n}" for n in layers]
            names = groups + [part.name for part in parts]
            words = {word: name for name in names for word in (*name.split("."), name)}
            close = difflib.get_close_matches(pattern, words, 3)
            near = list(dict.fromkeys(words[word] for word in close))
            raise OptionError(
                f"no part of the model is called {pattern!r}; near names: "
                f"{', '.join(near) or 'none'}; give a name, a kind or a layer: {', '.join(groups)}"
            )
    return tuple(part for part in parts if any(map(part.is_called, patterns)))


def nodes_of(model: ModelProto, parts: Iterable[Part]) -> set[str]:
    """Names of the nodes that read parts of a whole graph."""
    outputs = {part.node for part in parts}
    return {node.name for node in model.graph.node if outputs.intersection(node.output)}


def _search(nodes: Iterable[NodeProto], constants: Constants) -> Iterator[Part]:
    """Parts without name, layer and the kind `projection`, in order."""
    from_text: set[str] = set()  # values that rows of an embedding went into
    scales: set[str] = set()  # of products in integers: the Mul by them is no norm
    for node in nodes:
        parts = []
        for index, kind in _LEARNED.get(node.op_type, ()):
            value = node.input[index] if index < len(node.input) else ""
            constant = constants.kind(value)
            if constant is None or value in scales or value.endswith((SMOOTHING, UNSMOOTHING)):
                continue
            other_inputs = [*node.input[:index], *node.input[index + 1 :]]
            if kind in ("bias", "norm"):
                reads_text = not from_text.isdisjoint(other_inputs)
                is_part = constant.is_float and constant.is_vector and reads_text
            else:
                is_part = len(constant.dims) >= 2 and constants.kind(other_inputs[0]) is None
            part = _part(constants, node, index, kind) if is_part else None
            if part is not None:
                parts.append(part)
                scales.update(part.scales)
        if any(part.kind == "embedding" for part in parts) or from_text.intersection(node.input):
            from_text.update(node.output)
        yield from parts


def _part(constants: Constants, node: NodeProto, index: int, kind: str) -> Part | None:
    """A learned constant at an input of a node; None if it is not that of a part."""
    value, attributes = node.input[index], attributes_of(node)
    constant, root = constants.required_kind(value), constants.roots(value)[0]
    shape, half = constant.dims, constant.is_half
    scales = [node.input[i] for i in _SCALES.get(node.op_type, ()) if i < len(node.input)]
    output, source = node.output[0], node.input[0]
    factors = {attributes.get("alpha", 1.0), attributes.get("beta", 1.0)}  # of Gemm
    if kind == "product" and (attributes.get("transA") or factors != {1.0}):
        return None
    if root not in constants.stored:
        return None  # written into the code, such as the zeros of a norm without a bias
    if kind in ("bias", "norm"):
        source, scales = node.input[1 if index == 0 else 0], []
    elif node.op_type == "MatMulNBits":
        shape = (attributes["K"], attributes["N"])
        half = constants.required_kind(node.input[2]).is_half
    elif node.op_type == "GatherBlockQuantized":
        source, bits = node.input[1], attributes.get("bits", 4)
        half = constants.required_kind(node.input[2]).is_half
        if constants.stored[value].data_type == 2 and bits < 8:  # several in a byte
            shape = (*shape[:-1], shape[-1] * 8 // bits)
    elif not constant.is_float:
        output, output_scales = _scaled(constants, output)
        if not output_scales:
            return None  # position ids and the like
        scales += output_scales
    elif attributes.get("transB"):
        shape = shape[::-1]
    elif kind == "embedding" and len(shape) != 2:
        return None
    if kind == "embedding":
        source = node.input[1]
        for reader in constants.readers.get(output, ()):
            if reader.op_type == "Mul" and reader.input[1].endswith(UNSMOOTHING):
                output = reader.output[0]
    smoothing = constants.smoothing(value) if kind == "norm" else ""
    if kind in ("product", "projection"):
        direct = constants.unquantized(source)
        smoothing, source = constants.smoothing(direct), constants.unsmoothed(direct)
    return Part(
        name="",
        kind=kind,
        layer=None,
        output=output,
        constant=root,
        shape=tuple(shape),
        source=source,
        node=node.output[0],
        input_index=index,
        scales=tuple(dict.fromkeys(filter(None, scales))),
        smoothing=smoothing,
        half=half,
        quantized=not constants.required_kind(root).is_float or node.op_type == "MatMulNBits",
    )


def _scaled(constants: Constants, value: str) -> tuple[str, list[str]]:
    """The float value of an integer product or of integer rows, and its constant factors."""
    for reader in constants.readers.get(value, []):
        if reader.op_type == "DequantizeLinear":
            return reader.output[0], [*reader.input[1:]]
        for product in constants.readers.get(reader.output[0], []):
            if reader.op_type == "Cast" and product.op_type == "Mul":
                pending = [name for name in product.input if name != reader.output[0]]
                scales = []
                while pending:
                    name = pending.pop()
                    maker = constants.makers.get(name)
                    if constants.kind(name) is not None:
                        scales.append(name)
                    elif maker is not None and maker.op_type == "Mul":
                        pending += maker.input
                    elif maker is not None and maker.op_type in ("Unsqueeze", "Gather"):
                        pending.append(maker.input[0])
                return product.output[0], scales
    return value, []


def _name(constants: Constants, part: Part, shared: bool) -> str:
    """What a part is called; of two readers of one constant the product is `shared`."""
    module, tidy = _module_of(part.constant), _tidy(part.constant)
    if part.kind in ("bias", "norm"):
        ending = ".bias" if tidy.endswith((".bias", ".beta")) else ""
        return module + ending if module else tidy
    if module and not (part.kind == "product" and shared):
        return module
    for reader in constants.readers.get(part.output, []):  # a bias keeps its name
        for index, kind in _LEARNED.get(reader.op_type, ()):
            bias = reader.input[index] if kind == "bias" and index < len(reader.input) else ""
            if not constants.kind(bias):
                continue
            root = constants.roots(bias)[0]
            # Exporters merge equal biases: the name of a shared one may be of another module.
            if len(constants.readers.get(root, [])) == 1 and (bias_module := _module_of(root)):
                return bias_module
    # Exporters write the module's path: /encoder/query/MatMul
    for text in (constants.makers[part.node].name, part.output):
        if text.startswith("/") and text.count("/") > 1:
            return text.strip("/").rpartition("/")[0].replace("/", ".")
    return module or tidy


def _tidy(name: str) -> str:
    """A tensor's name without the suffixes of quantizers.

    >>> _tidy("val_57_quantized")
    'val_57'
    """
    return _SUFFIX.sub("", name)


def _module_of(name: str) -> str:
    """The module of a tensor with a name of the model, "" for any other name.

    >>> _module_of("encoder.layer.0.query.weight_quantized"), _module_of("onnx::MatMul_391")
    ('encoder.layer.0.query', '')
    """
    match = _MODULE.fullmatch(_tidy(name))
    return match["module"] if match else ""


@dataclass(frozen=True)
class _Head:
    projection: str  # first output of the vocabulary projection; "" if there is none
    nodes: frozenset[str]  # first outputs of the nodes from the encoder to the logits


def _find_head(model: ModelProto, constants: Constants, parts: Iterable[Part]) -> _Head:
    """The widest of the products that alone yield an output, with a dense layer before it."""
    products: dict[str, Part] = {}  # by the values that they yield
    for part in parts:
        if part.kind == "product":
            products[part.node] = products[part.output] = part
    origins = [_origin(constants, products, output.name) for output in model.graph.output]
    alone = [product for origin in origins for product in origin.products if origin.is_single]
    widest = max(alone, key=lambda part: part.shape[-1], default=None)
    if widest is None:
        return _Head("", frozenset())
    nodes = {widest.node}
    for origin in origins:
        if widest in origin.products:
            nodes |= origin.values
    before = _origin(constants, products, constants.makers[widest.node].input[0])
    if before.is_single:
        nodes |= before.values | {product.node for product in before.products}
    return _Head(widest.node, frozenset(nodes))


@dataclass(frozen=True)
class _Origin:
    """What a value is made of."""

    products: set[Part]  # the nearest ones
    values: set[str]  # up to them

    @property
    def is_single(self) -> bool:
        return len(self.products) == 1


def _origin(constants: Constants, products: Mapping[str, Part], value: str) -> _Origin:
    origin, pending = _Origin(set(), set()), [value]
    while pending:
        value = pending.pop()
        node = constants.makers.get(value)
        if node is None or value in origin.values:
            continue
        origin.values.add(value)
        product = products.get(value) or products.get(node.output[0])
        if product is not None:
            origin.products.add(product)
        else:
            pending += [name for name in node.input if name]
    return origin


@dataclass(frozen=True)
class _LayerDepths:
    """Tells the layer of a part whose name does not, by the attention in front of it."""

    depth: dict[str, int]  # attentions on the longest path to a value
    attended: set[str]  # values that attention reads before any constant product does

    def layer_of(self, part: Part) -> int | None:
        """Queries, keys and values belong to the next attention, all else to the last."""
        layer = self.depth[part.node] - (part.output not in self.attended)
        return None if layer < 0 else layer


def _layer_depths(
    nodes: Sequence[NodeProto], constants: Constants, products: Collection[str]
) -> _LayerDepths:
    depth: dict[str, int] = {}
    for node in nodes:
        input_depth = max((depth.get(name, 0) for name in node.input), default=0)
        depth.update(dict.fromkeys(node.output, input_depth + (node.op_type in _ATTENTION)))
    attended: set[str] = set()
    for node in reversed(nodes):
        multiplies_activations = node.op_type in ("MatMul", "FusedMatMul") and not any(
            map(constants.kind, node.input)
        )
        stops = node.output[0] in products or node.op_type in _NO_ACTIVATION
        leads_to_attention = not stops and not attended.isdisjoint(node.output)
        if node.op_type in _ATTENTION or multiplies_activations or leads_to_attention:
            attended.update(node.input)
    return _LayerDepths(depth, attended)
