"""What parts of a graph are called, and the layer that each belongs to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from onnx import ModelProto, NodeProto

from fillmask_ui.onnx_tools.constants import Constants, in_order

# What quantizers and exporters put behind the name of a tensor.
_SUFFIX = re.compile(r"(_quantized|_Q\d+\w*|_scales?|_zero_points?|\.float32|\.shared|_DQ)+$")
_MODULE = re.compile(r"(?P<module>.+)\.(?P<end>weight|bias|gamma|beta)")
_LAYER = re.compile(r"(?:^|[./])(?:layers?|h|blocks?)[./](\d+)(?:[./]|$)")
_ATTENTION = ("Softmax", "Attention", "MultiHeadAttention", "GroupQueryAttention", "QAttention")

# What does not hand an activation on.
_ENDS = ("DynamicQuantizeLinear", "QuantizeLinear", "Shape", "Size")


@dataclass(frozen=True)
class Module:
    """A parameter's name in the model."""

    module: str  # without `.weight` or `.bias`
    full: str  # the same, but with `.bias`


class NamedPart(Protocol):
    """What layers are told from."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def node(self) -> str: ...
    @property
    def output(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


def tidy(name: str) -> str:
    """A tensor's name without what quantizers put behind it.

    >>> tidy("val_57_quantized")
    'val_57'
    """
    return _SUFFIX.sub("", name)


def module_of(name: str) -> Module | None:
    """The module of a tensor that is called as in the model, None for any other name.

    >>> module_of("encoder.layer.0.query.weight_quantized").module
    'encoder.layer.0.query'
    >>> module_of("onnx::MatMul_391") is None
    True
    """
    match = _MODULE.fullmatch(tidy(name))
    if match is None:
        return None
    ending = ".bias" if match["end"] in ("bias", "beta") else ""
    return Module(match["module"], match["module"] + ending)


class Layers:
    """Which layer each part of a graph belongs to, and which product is the projection.

    Where names do not tell the layer, the attention in front of a part is counted: queries, keys
    and values belong to the next one, all else to the last.
    """

    def __init__(self, model: ModelProto, parts: Sequence[NamedPart]) -> None:
        self.constants = Constants(model.graph)
        self.products = {part.node: part for part in parts if part.kind == "product"}
        self.by_output = {part.output: part for part in self.products.values()}
        self._attention: dict[str, int] = {}  # value -> bits of the attention that it depends on
        bit = 1
        for node in in_order(model):
            before = 0
            for name in node.input:
                before |= self._attention.get(name, 0)
            if node.op_type in _ATTENTION:
                before, bit = before | bit, bit << 1
            self._attention.update(dict.fromkeys(node.output, before))
        ends = [self._back(out.name) for out in model.graph.output]
        alone = [own.products[0] for own in ends if len(own.products) == 1]
        widest = max(alone, key=lambda part: part.shape[-1], default=None)
        self.projection = widest.node if widest else ""  # node of the vocabulary projection
        self._head: set[str] = set()  # outputs of nodes from the encoder's end on
        if widest is not None:
            self._head = {widest.node}.union(*(own.seen for own in ends if widest in own.products))
            source = self.constants.makers[widest.node].input[0]
            dense = self._back(source)
            if len(dense.products) == 1:
                self._head |= {dense.products[0].node, *dense.seen}

    def of(self, part: NamedPart, shared: bool) -> int | None:
        """The layer of a part; the name of a constant that several share tells nothing."""
        if part.kind == "embedding" or part.node in self._head:
            return None
        match = None if shared else _LAYER.search(part.name)
        if match:
            return int(match[1])
        before = self._attention.get(part.node, 0).bit_count() if part.node else 0
        layer = before if self._reaches_attention(part.output) else before - 1
        return None if layer < 0 else layer

    def _back(self, value: str) -> _Walked:
        """The products that a value is made of, and what was seen on the way to them."""
        pending, seen, products = [value], set[str](), list[NamedPart]()
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
        return _Walked(products, seen)

    def _reaches_attention(self, value: str) -> bool:
        """Whether attention reads a value before any product with a constant does."""
        pending, seen = [value], set[str]()
        while pending:
            for node in self.constants.readers.get(pending.pop(), []):
                if node.op_type in _ATTENTION or self._is_dynamic_product(node):
                    return True
                if node.output[0] in self.products or node.op_type in _ENDS:
                    continue
                new = [name for name in node.output if name and name not in seen]
                seen.update(new)
                pending += new
        return False

    def _is_dynamic_product(self, node: NodeProto) -> bool:
        """Whether it multiplies two activations."""
        return node.op_type in ("MatMul", "FusedMatMul") and not any(
            self.constants.kind(name) for name in node.input
        )


@dataclass(frozen=True)
class _Walked:
    products: list[NamedPart]
    seen: set[str]
