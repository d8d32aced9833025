"""The parts of a model that a graph names: its matrices, embeddings, biases and norms.

A part is one constant that the model learned, where it is read. A matrix is seen through what
exporters and quantizers wrap it in: Cast and Transpose, DequantizeLinear, the integer products of
dynamic quantization, the blocks of MatMulNBits and GatherBlockQuantized.

Source:
    Operators as in https://onnx.ai/onnx/operators/ and, for the domain com.microsoft, in
    docs/ContribOperators.md of onnxruntime.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from onnx import ModelProto, NodeProto

from fillmask_ui.errors import OptionError
from fillmask_ui.onnx_tools.constants import Constants, attributes_of, in_order
from fillmask_ui.onnx_tools.part_names import Layers, module_of, tidy

KINDS = ("embedding", "projection", "product", "bias", "norm")

# Operator -> which of its inputs are learned, and as what. Those of Add and Mul are at either side.
_LEARNED: dict[str, tuple[tuple[int, str], ...]] = {
    "MatMul": ((1, "product"),),
    "FusedMatMul": ((1, "product"),),
    "Gemm": ((1, "product"), (2, "bias")),
    "MatMulInteger": ((1, "product"),),
    "DynamicQuantizeMatMul": ((1, "product"), (4, "bias")),
    "MatMulIntegerToFloat": ((1, "product"), (6, "bias")),
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
    "DynamicQuantizeMatMul": (2, 3),
    "MatMulIntegerToFloat": (3, 5),
    "MatMulNBits": (2, 3, 4),
    "GatherBlockQuantized": (2, 3),
    "DequantizeLinear": (1, 2),
}


@dataclass(frozen=True)
class Part:
    """One learned constant, where the graph reads it."""

    # Name in the model without `.weight`, as far as the graph tells it; those of biases end in
    # `.bias`. Unique in the graph: of several readers of one constant the later ones end in #2, ...
    name: str
    kind: str  # one of `KINDS`
    layer: int | None  # of the encoder, from 0; None outside
    output: (
        str  # the float value that it yields: a product, looked-up rows, what a bias is added to
    )
    constant: str  # the stored tensor with its numbers
    shape: tuple[int, ...]  # as it is used: a product reads [K, N], rows times columns
    source: str  # the float value, or for an embedding the ids, that it is applied to
    node: str  # first output of the operator that reads it
    place: int  # which input of that operator it is
    scales: tuple[str, ...] = ()  # values that hold its scales, zero points and the like
    half: bool = False  # whether the graph computes it in half precision
    quantized: bool = False  # whether it is stored in fewer bits than a float

    def is_called(self, pattern: str) -> bool:
        """Whether a pattern of `choose_parts` means it."""
        return pattern in (self.name, self.kind, f"layer:{self.layer}")


def find_parts(model: ModelProto) -> tuple[Part, ...]:
    """All parts, in the order in which the model computes them.

    Weights need not be in the graph: only their types and shapes are read.
    """
    found = list(_Search(model).parts())
    layers = Layers(model, found)
    shared = Counter(part.constant for part in found)
    projection = layers.projection
    named = []
    for part in found:
        kind = "projection" if part.node == projection and part.kind == "product" else part.kind
        merged = shared[part.constant] > 1 and kind in ("bias", "norm")  # equal ones, by exporters
        named.append(replace(part, kind=kind, layer=layers.of(part, merged)))
    seen: Counter[str] = Counter()
    parts = []
    for part in named:
        seen[part.name] += 1
        again = f"#{seen[part.name]}" if seen[part.name] > 1 else ""
        parts.append(replace(part, name=part.name + again))
    return tuple(parts)


def choose_parts(parts: Sequence[Part], patterns: Sequence[str]) -> tuple[Part, ...]:
    """The parts that any of the patterns means, in their order.

    Args:
        parts: to choose from.
        patterns: names of parts, kinds, or `layer:3`.

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


class _Search:
    """Parts without kind `projection` and layers, in order."""

    def __init__(self, model: ModelProto) -> None:
        self.nodes = list(in_order(model))
        self.constants = Constants(model.graph)
        self.from_text: set[str] = set()  # values that rows of an embedding went into

    def parts(self) -> Iterator[Part]:
        scales: set[int] = set()  # Mul nodes of integer products
        for node in self.nodes:
            learned = [] if id(node) in scales else list(self._learned(node))
            if any(name in self.from_text for name in node.input) or (
                learned and node.op_type.startswith("Gather")
            ):
                self.from_text.update(node.output)
            for place, kind in learned:
                part = self._part(node, place, kind)
                if part is None:
                    continue
                if node.op_type == "MatMulInteger":
                    scales |= self._multiplied(node).nodes
                yield part

    def _learned(self, node: NodeProto) -> Iterator[tuple[int, str]]:
        for place, kind in _LEARNED.get(node.op_type, ()):
            if place >= len(node.input) or not node.input[place]:
                continue
            constant = self.constants.kind(node.input[place])
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
            product = self._multiplied(node)
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
                shape = self._unpacked_shape(node, own.dims)
            elif not own.is_float:
                scaled = self._scaled_rows(output, source)
                if scaled is None:
                    return None  # position ids and the like
                output, scales = scaled.output, scaled.scales
            elif len(own.dims) != 2:
                return None
        elif attributes.get("transB"):
            shape = own.dims[::-1]
        if kind == "product" and (attributes.get("transA") or attributes.get("alpha", 1.0) != 1.0):
            return None
        scales = [name for name in scales if name]
        root = constants.roots(value)[0]
        stored = constants.kind(root)
        if root not in constants.stored:
            return None  # written into the code, as the zeros of a norm without a bias
        return Part(
            self._name(node, root, output, kind),
            kind,
            None,
            output,
            root,
            tuple(shape),
            source if kind != "product" else self._unquantized(source),
            node.output[0],
            place,
            tuple(dict.fromkeys(scales)),
            half,
            not (stored and stored.is_float) or node.op_type in ("MatMulNBits",),
        )

    def _unpacked_shape(self, node: NodeProto, dims: tuple[int, ...]) -> tuple[int, ...]:
        bits = attributes_of(node).get("bits", 4)
        packed = self.constants.stored[node.input[0]].data_type == 2 and bits < 8
        return (*dims[:-1], dims[-1] * 8 // bits) if packed else dims

    def _scaled_rows(self, rows: str, ids: str) -> _Multiplied | None:
        """Follow looked-up rows through what makes floats of them."""
        reader = next(iter(self.constants.readers.get(rows, [])), None)
        if reader is not None and reader.op_type == "DequantizeLinear":
            return _Multiplied(reader.output[0], [*reader.input[1:]], set())
        if reader is None or reader.op_type != "Cast":
            return None
        for product in self.constants.readers.get(reader.output[0], []):
            others = [name for name in product.input if name != reader.output[0]]
            if product.op_type == "Mul" and others:
                scale = self._looked_up(others[0], ids)
                return _Multiplied(product.output[0], [scale], set()) if scale else None
        return None

    def _looked_up(self, scale: str, ids: str) -> str:
        """The constant that a scale is, or is taken from by the same ids; "" for none."""
        maker = self.constants.makers.get(scale)
        while maker is not None and maker.op_type in ("Unsqueeze", "Gather"):
            if maker.op_type == "Gather" and maker.input[1] != ids:
                return ""
            scale = maker.input[0]
            maker = self.constants.makers.get(scale)
        return scale if self.constants.kind(scale) is not None else ""

    def _unquantized(self, value: str) -> str:
        """What a value was quantized from, the value itself where it was not."""
        maker = self.constants.makers.get(value)
        while maker is not None and maker.op_type in (
            "DequantizeLinear",
            "QuantizeLinear",
            "DynamicQuantizeLinear",
        ):
            value = maker.input[0]
            maker = self.constants.makers.get(value)
        return value

    def _multiplied(self, node: NodeProto) -> _Multiplied:
        """Follow an integer product through Cast and the Mul by its scales."""
        value, scales, nodes, by_text = node.output[0], list[str](), set[int](), False
        while not (scales and by_text):
            readers = self.constants.readers.get(value, [])
            if len(readers) != 1 or readers[0].op_type not in ("Cast", "Mul"):
                break
            for other in readers[0].input:
                if other != value:
                    fixed, moving = self._factors(other)
                    scales += fixed
                    by_text = by_text or bool(moving)
                    nodes |= {id(self.constants.makers[name]) for name in moving}
                    if other in self.constants.makers:
                        nodes.add(id(self.constants.makers[other]))
            nodes.add(id(readers[0]))
            value = readers[0].output[0]
        return _Multiplied(value, scales, nodes)

    def _factors(self, value: str) -> tuple[list[str], list[str]]:
        """Factors of a scale: those that are constants, and those that depend on the text."""
        if self.constants.kind(value) is not None:
            return [value], []
        maker = self.constants.makers.get(value)
        if maker is None or maker.op_type != "Mul":
            return [], [value] if maker is not None else []
        pairs = [self._factors(name) for name in maker.input]
        return [n for pair in pairs for n in pair[0]], [n for pair in pairs for n in pair[1]]

    def _name(self, node: NodeProto, root: str, output: str, kind: str) -> str:
        own = module_of(root)
        if kind in ("bias", "norm"):
            return own.full if own else tidy(root)
        shared = len(self.constants.readers.get(root, ())) > 1 or self._read_twice(root)
        if own and not (shared and kind == "product"):
            return own.module
        for reader in self.constants.readers.get(output, []):  # a bias keeps its name
            for place, what in _LEARNED.get(reader.op_type, ()):
                added = reader.input[place] if what == "bias" and place < len(reader.input) else ""
                if added and self.constants.kind(added):
                    behind = module_of(self.constants.roots(added)[0])
                    if behind:
                        return behind.module
        for text in (node.name, output):  # exporters write the module's path: /encoder/query/MatMul
            if text.startswith("/") and text.count("/") > 1:
                return text.strip("/").rpartition("/")[0].replace("/", ".")
        return own.module if own else tidy(root)

    def _read_twice(self, root: str) -> bool:
        """Whether several operators read a stored matrix, seen through Cast and Transpose."""
        pending, found = [root], 0
        while pending:
            for reader in self.constants.readers.get(pending.pop(), []):
                if reader.output and self.constants.kind(reader.output[0]) is not None:
                    pending.append(reader.output[0])
                else:
                    found += 1
        return found > 1


@dataclass(frozen=True)
class _Multiplied:
    """What becomes of an integer product."""

    output: str  # the float value
    scales: list[str]  # constant factors
    nodes: set[int]  # id of each operator on the way
