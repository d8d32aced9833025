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
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from onnx import ModelProto, NodeProto

from fillmask_ui.errors import OptionError
from fillmask_ui.onnx_tools.constant_folding import Constants, attributes_of, in_order

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
_ENDS = ("DynamicQuantizeLinear", "QuantizeLinear", "Shape", "Size")  # hand no activation on
# What quantizers and exporters put behind the name of a tensor.
_SUFFIX = re.compile(r"(_quantized|_Q\d+\w*|_scales?|_zero_points?|\.float32|\.shared|_DQ)+$")
_MODULE = re.compile(r"(?P<module>.+)\.(?P<end>weight|bias|gamma|beta)")
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
    half: bool = False  # whether the graph computes it in half precision
    quantized: bool = False  # whether it is stored in fewer bits than a float

    def is_called(self, pattern: str) -> bool:
        """Whether a pattern of `choose_parts` means it."""
        return pattern in (self.name, self.kind, f"layer:{self.layer}")


def find_parts(model: ModelProto) -> tuple[Part, ...]:
    """All parts, in the order of computation; weights need not be in the graph."""
    nodes = list(in_order(model.graph.node, [output.name for output in model.graph.output]))
    constants = Constants(model.graph)
    found = list(_search(nodes, constants))
    projection, head = _projection_and_head(model, constants, found)
    layer_of = _layers(nodes, constants, {part.node for part in found if part.kind == "product"})
    readers = Counter(part.constant for part in found)
    seen: Counter[str] = Counter()
    parts = []
    for part in found:
        kind = "projection" if (part.node, part.kind) == (projection, "product") else part.kind
        shared = readers[part.constant] > 1
        name = _name(constants, part, shared)
        layer = None
        if part.kind != "embedding" and part.node not in head:
            # Exporters merge equal biases and norms, whose names then tell nothing.
            tells = not (shared and kind in ("bias", "norm")) and _LAYER.search(name)
            layer = int(tells[1]) if tells else layer_of(part)
        seen[name] += 1
        again = f"#{seen[name]}" if seen[name] > 1 else ""
        parts.append(replace(part, name=name + again, kind=kind, layer=layer))
    return tuple(parts)


def choose_parts(parts: Sequence[Part], patterns: Sequence[str]) -> tuple[Part, ...]:
    """The parts that any pattern (a name, a kind, `layer:3`) means, in their order.

    Raises:
        OptionError: for a pattern that means none, with names near it.
    """
    for pattern in patterns:
        if not any(part.is_called(pattern) for part in parts):
            layers = sorted({part.layer for part in parts if part.layer is not None})
            known = [*sorted({part.kind for part in parts}), *(f"layer:{own}" for own in layers)]
            names = [part.name for part in parts]
            words = [*known, *names, *{word for name in names for word in name.split(".")}]
            close = difflib.get_close_matches(pattern, words, 3)
            near = [own for own in [*known, *names] if {own, *own.split(".")} & {*close}][:5]
            raise OptionError(
                f"no part of the model is called {pattern!r}; near names: "
                f"{', '.join(near) or 'none'}; a name, a kind or a layer is wanted: "
                f"{', '.join(known)}"
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
        for place, kind in _LEARNED.get(node.op_type, ()):
            value = node.input[place] if place < len(node.input) else ""
            constant = constants.kind(value)
            if constant is None or value in scales:
                continue
            others = [name for own, name in enumerate(node.input) if own != place]
            if kind in ("bias", "norm"):
                is_part = constant.is_float and constant.is_vector
                is_part = is_part and not from_text.isdisjoint(others)
            else:
                is_part = len(constant.dims) >= 2 and constants.kind(others[0]) is None
            part = _part(constants, node, place, kind) if is_part else None
            if part is not None:
                parts.append(part)
                scales.update(part.scales)
        if any(part.kind == "embedding" for part in parts) or from_text.intersection(node.input):
            from_text.update(node.output)
        yield from parts


def _part(constants: Constants, node: NodeProto, place: int, kind: str) -> Part | None:
    """A learned constant at an input of a node; None if it is not that of a part."""
    value, attributes = node.input[place], attributes_of(node)
    own, root = constants.required_kind(value), constants.roots(value)[0]
    scales = [node.input[i] for i in _SCALES.get(node.op_type, ()) if i < len(node.input)]
    output, source, shape, half = node.output[0], node.input[0], own.dims, own.is_half
    factors = {attributes.get("alpha", 1.0), attributes.get("beta", 1.0)}  # of Gemm
    if kind == "product" and (attributes.get("transA") or factors != {1.0}):
        return None
    if root not in constants.stored:
        return None  # written into the code, such as the zeros of a norm without a bias
    if kind in ("bias", "norm"):
        source, scales = node.input[1 if place == 0 else 0], []
    elif node.op_type == "MatMulNBits":
        shape = (attributes["K"], attributes["N"])
        half = constants.required_kind(node.input[2]).is_half
    elif node.op_type == "GatherBlockQuantized":
        source, bits = node.input[1], attributes.get("bits", 4)
        half = constants.required_kind(node.input[2]).is_half
        if constants.stored[value].data_type == 2 and bits < 8:  # several in a byte
            shape = (*own.dims[:-1], own.dims[-1] * 8 // bits)
    elif not own.is_float:
        output, factors_of = _scaled(constants, output)
        if not factors_of:
            return None  # position ids and the like
        scales += factors_of
    elif attributes.get("transB"):
        shape = own.dims[::-1]
    elif kind == "embedding" and len(own.dims) != 2:
        return None
    if kind == "embedding":
        source = node.input[1]
    return Part(
        name="",
        kind=kind,
        layer=None,
        output=output,
        constant=root,
        shape=tuple(shape),
        source=source if kind != "product" else constants.unquantized(source),
        node=node.output[0],
        input_index=place,
        scales=tuple(dict.fromkeys(filter(None, scales))),
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
        for place, what in _LEARNED.get(reader.op_type, ()):
            added = reader.input[place] if what == "bias" and place < len(reader.input) else ""
            if constants.kind(added) and (behind := _module_of(constants.roots(added)[0])):
                return behind
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


def _projection_and_head(
    model: ModelProto, constants: Constants, parts: Iterable[Part]
) -> tuple[str, set[str]]:
    """Node of the vocabulary projection, and first outputs of the nodes of the head around it.

    Of the outputs that a single product yields that is the widest; a dense layer may stand before.
    """
    products = {own.node: own for own in parts if own.kind == "product"}
    products |= {own.output: own for own in products.values()}

    def back(value: str) -> tuple[set[Part], set[str]]:
        """The products that a value is made of, and the values on the way to them."""
        pending, seen, found = [value], set[str](), set[Part]()
        while pending:
            value = pending.pop()
            node = constants.makers.get(value)
            if node is None or value in seen:
                continue
            seen.add(value)
            part = products.get(value) or products.get(node.output[0])
            if part is not None:
                found.add(part)
            else:
                pending += [name for name in node.input if name]
        return found, seen

    ends = [back(output.name) for output in model.graph.output]
    alone = [part for found, _ in ends if len(found) == 1 for part in found]
    widest = max(alone, key=lambda part: part.shape[-1], default=None)
    if widest is None:
        return "", set()
    head = {widest.node}.union(*(seen for found, seen in ends if widest in found))
    found, seen = back(constants.makers[widest.node].input[0])
    if len(found) == 1:
        head |= {found.pop().node, *seen}
    return widest.node, head


def _layers(
    nodes: Sequence[NodeProto], constants: Constants, products: Collection[str]
) -> Callable[[Part], int | None]:
    """Tells the layer of a part whose name does not, by the attention in front of it.

    Queries, keys and values belong to the next attention, all else to the last.
    """
    depth: dict[str, int] = {}  # attentions on the longest way to a value
    for node in nodes:
        own = max((depth.get(name, 0) for name in node.input), default=0)
        depth.update(dict.fromkeys(node.output, own + (node.op_type in _ATTENTION)))
    attended: set[str] = set()  # values that attention reads before any constant product does
    for node in reversed(nodes):
        activations = node.op_type in ("MatMul", "FusedMatMul") and not any(
            map(constants.kind, node.input)
        )
        ends = node.output[0] in products or node.op_type in _ENDS
        goes_on = not ends and not attended.isdisjoint(node.output)
        if node.op_type in _ATTENTION or activations or goes_on:
            attended.update(node.input)

    def layer_of(part: Part) -> int | None:
        layer = depth[part.node] - (part.output not in attended)
        return None if layer < 0 else layer

    return layer_of
