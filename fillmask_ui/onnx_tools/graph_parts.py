"""The parts of a model that a graph names: its matrices, embeddings, biases and norms.

A part is one learned constant where it is read. A matrix is seen through what exporters and
quantizers wrap it in: Cast and Transpose, DequantizeLinear, the integer products of dynamic
quantization, the blocks of MatMulNBits and GatherBlockQuantized.

Source:
    Operators as in https://onnx.ai/onnx/operators/ and, for the domain com.microsoft, in
    docs/ContribOperators.md of onnxruntime.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
    place: int  # index of that operator's input
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
    search = _Search(nodes, constants)
    found = list(search.parts())
    layers = _Layers(model, nodes, constants, found)
    readers = Counter(part.constant for part in found)
    seen: Counter[str] = Counter()
    parts = []
    for part in found:
        kind = "projection" if part.node == layers.projection and part.kind == "product" else ""
        kind = kind or part.kind
        shared = readers[part.constant] > 1
        name = search.name(part, shared)
        # Exporters merge equal biases and norms, whose names then tell nothing.
        layer = layers.of(part, "" if shared and kind in ("bias", "norm") else name)
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


@dataclass(frozen=True)
class _Scaled:
    """The float value of an integer product or of integer rows."""

    output: str
    scales: list[str]  # constant factors
    nodes: set[int]  # ids of the operators that scale


class _Search:
    """Parts without name, layer and the kind `projection`, in order."""

    def __init__(self, nodes: Sequence[NodeProto], constants: Constants) -> None:
        self.nodes, self.constants = nodes, constants
        self.from_text: set[str] = set()  # values that rows of an embedding went into

    def parts(self) -> Iterator[Part]:
        scaling: set[int] = set()  # Mul nodes of integer products
        for node in self.nodes:
            learned = [] if id(node) in scaling else list(self._learned(node))
            if self.from_text.intersection(node.input) or (
                learned and node.op_type.startswith("Gather")
            ):
                self.from_text.update(node.output)
            for place, kind in learned:
                part = self._part(node, place, kind)
                if part is None:
                    continue
                if node.op_type == "MatMulInteger":
                    scaling |= self._scaled_product(node).nodes
                yield part

    def _learned(self, node: NodeProto) -> Iterator[tuple[int, str]]:
        for place, kind in _LEARNED.get(node.op_type, ()):
            constant = self.constants.kind(node.input[place]) if place < len(node.input) else None
            if constant is None:
                continue
            if kind in ("bias", "norm"):
                others = [name for own, name in enumerate(node.input) if own != place]
                if constant.is_float and constant.is_vector and self.from_text & {*others}:
                    yield place, kind
            elif len(constant.dims) >= 2 and self.constants.kind(node.input[1 - place]) is None:
                yield place, kind

    def _part(self, node: NodeProto, place: int, kind: str) -> Part | None:
        constants, value = self.constants, node.input[place]
        own = constants.known(value)
        attributes = attributes_of(node)
        scales = [node.input[i] for i in _SCALES.get(node.op_type, ()) if i < len(node.input)]
        output, source, shape, half = node.output[0], node.input[0], own.dims, own.is_half
        if kind in ("bias", "norm"):
            scales = []
            if place == 0:
                source = node.input[1]
        elif node.op_type == "MatMulInteger":
            product = self._scaled_product(node)
            if not product.scales:
                return None
            output, scales = product.output, [*scales, *product.scales]
        elif node.op_type == "MatMulNBits":
            shape = (attributes["K"], attributes["N"])
            half = constants.known(node.input[2]).is_half
        elif kind == "embedding":
            source = node.input[1]
            if node.op_type == "GatherBlockQuantized":
                half = constants.known(node.input[2]).is_half
                bits = attributes.get("bits", 4)
                if constants.stored[value].data_type == 2 and bits < 8:  # several in a byte
                    shape = (*own.dims[:-1], own.dims[-1] * 8 // bits)
            elif not own.is_float:
                scaled = self._scaled_rows(output, source)
                if scaled is None:
                    return None  # position ids and the like
                output, scales = scaled.output, scaled.scales
            elif len(own.dims) != 2:
                return None
        elif attributes.get("transB"):
            shape = own.dims[::-1]
        factors = {attributes.get("alpha", 1.0), attributes.get("beta", 1.0)}  # of Gemm
        if kind == "product" and (attributes.get("transA") or factors != {1.0}):
            return None
        root = constants.roots(value)[0]
        if root not in constants.stored:
            return None  # written into the code, such as the zeros of a norm without a bias
        return Part(
            name="",
            kind=kind,
            layer=None,
            output=output,
            constant=root,
            shape=tuple(shape),
            source=source if kind != "product" else constants.unquantized(source),
            node=node.output[0],
            place=place,
            scales=tuple(dict.fromkeys(filter(None, scales))),
            half=half,
            quantized=not constants.known(root).is_float or node.op_type == "MatMulNBits",
        )

    def _scaled_rows(self, rows: str, ids: str) -> _Scaled | None:
        """Looked-up integer rows as floats."""
        reader = next(iter(self.constants.readers.get(rows, [])), None)
        if reader is not None and reader.op_type == "DequantizeLinear":
            return _Scaled(reader.output[0], [*reader.input[1:]], set())
        if reader is None or reader.op_type != "Cast":
            return None
        for product in self.constants.readers.get(reader.output[0], []):
            others = [name for name in product.input if name != reader.output[0]]
            if product.op_type == "Mul" and others:
                scale = self._looked_up(others[0], ids)
                return _Scaled(product.output[0], [scale], set()) if scale else None
        return None

    def _looked_up(self, scale: str, ids: str) -> str:
        """The constant that a scale is, or is looked up in by the same ids; else ""."""
        maker = self.constants.makers.get(scale)
        while maker is not None and maker.op_type in ("Unsqueeze", "Gather"):
            if maker.op_type == "Gather" and maker.input[1] != ids:
                return ""
            scale = maker.input[0]
            maker = self.constants.makers.get(scale)
        return scale if self.constants.kind(scale) is not None else ""

    def _scaled_product(self, node: NodeProto) -> _Scaled:
        """An integer product behind its Cast and the Mul by its scales."""
        value = integers = node.output[0]
        for operator in ("Cast", "Mul"):
            reader = next(iter(self.constants.readers.get(value, [])), None)
            if reader is None or reader.op_type != operator:
                return _Scaled(value, [], set())
            integers, value = value, reader.output[0]
            node = reader
        scale = next(name for name in node.input if name != integers)
        maker = self.constants.makers.get(scale)
        factors = maker.input if maker is not None and maker.op_type == "Mul" else [scale]
        scales = [name for name in factors if self.constants.kind(name) is not None]
        return _Scaled(value, scales, {id(node), id(maker)})

    def name(self, part: Part, shared: bool) -> str:
        """What a part is called; of two readers of one constant the product is `shared`."""
        module, tidy = _module_of(part.constant), _tidy(part.constant)
        if part.kind in ("bias", "norm"):
            ending = ".bias" if tidy.endswith((".bias", ".beta")) else ""
            return module + ending if module else tidy
        if module and not (part.kind == "product" and shared):
            return module
        for reader in self.constants.readers.get(part.output, []):  # a bias keeps its name
            for place, what in _LEARNED.get(reader.op_type, ()):
                added = reader.input[place] if what == "bias" and place < len(reader.input) else ""
                if added and self.constants.kind(added):
                    behind = _module_of(self.constants.roots(added)[0])
                    if behind:
                        return behind
        node = self.constants.makers[part.node]
        for text in (
            node.name,
            part.output,
        ):  # exporters write the module's path: /encoder/query/MatMul
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


class _Layers:
    """The layer of each part, and the vocabulary projection.

    Without a layer in the name, the attention in front of a part is counted: queries, keys and
    values belong to the next one, all else to the last.
    """

    def __init__(
        self,
        model: ModelProto,
        nodes: Sequence[NodeProto],
        constants: Constants,
        parts: Sequence[Part],
    ) -> None:
        self.constants = constants
        self.products = {part.node: part for part in parts if part.kind == "product"}
        self.by_output = {part.output: part for part in self.products.values()}
        self._attention: dict[str, int] = {}  # value -> a bit for each attention it depends on
        bit = 1
        for node in nodes:
            before = 0
            for name in node.input:
                before |= self._attention.get(name, 0)
            if node.op_type in _ATTENTION:
                before, bit = before | bit, bit << 1
            self._attention.update(dict.fromkeys(node.output, before))
        ends = [self._back(out.name) for out in model.graph.output]
        alone = [products[0] for products, _ in ends if len(products) == 1]
        widest = max(alone, key=lambda part: part.shape[-1], default=None)
        self.projection = widest.node if widest else ""  # node of the vocabulary projection
        self._head: set[str] = set()  # outputs of nodes from the encoder's end on
        if widest is not None:
            self._head = {widest.node}.union(*(seen for own, seen in ends if widest in own))
            products, seen = self._back(constants.makers[widest.node].input[0])
            if len(products) == 1:
                self._head |= {products[0].node, *seen}

    def of(self, part: Part, name: str) -> int | None:
        """The layer of a part, by its name if that tells it."""
        if part.kind == "embedding" or part.node in self._head:
            return None
        if match := _LAYER.search(name):
            return int(match[1])
        before = self._attention.get(part.node, 0).bit_count()
        layer = before if self._reaches_attention(part.output) else before - 1
        return None if layer < 0 else layer

    def _back(self, value: str) -> tuple[list[Part], set[str]]:
        """The products that a value is made of, and the values on the way to them."""
        pending, seen, products = [value], set[str](), list[Part]()
        while pending:
            value = pending.pop()
            node = self.constants.makers.get(value)
            if node is None or value in seen:
                continue
            seen.add(value)
            part = self.by_output.get(value) or self.products.get(node.output[0])
            if part is not None:
                products += [part] if part not in products else []
            else:
                pending += [name for name in node.input if name]
        return products, seen

    def _reaches_attention(self, value: str) -> bool:
        """Whether attention reads a value before any constant product does."""
        pending, seen = [value], set[str]()
        while pending:
            for node in self.constants.readers.get(pending.pop(), []):
                if node.op_type in _ATTENTION or self._multiplies_activations(node):
                    return True
                if node.output[0] in self.products or node.op_type in _ENDS:
                    continue
                new = [name for name in node.output if name and name not in seen]
                seen.update(new)
                pending += new
        return False

    def _multiplies_activations(self, node: NodeProto) -> bool:
        return node.op_type in ("MatMul", "FusedMatMul") and not any(
            self.constants.kind(name) for name in node.input
        )
