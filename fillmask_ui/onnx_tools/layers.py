"""The layers of an encoder in its graph: where each ends, and the head behind the last.

A boundary is a value that all ways from the words to the logits lead through, as the next part of
the model reads a finished sum of residual connections. Between two boundaries lie operators that
mix positions (attention), or none of these. A layer begins at the last boundary before attention,
also where it first normalises what it reads:

    words -> h_0 -> [attention] -> a_1 -> [feed-forward] -> h_1 -> [attention] -> a_2 -> ...

Behind the last layer stands the head, in architectures that normalise first with a final norm in
front. Computed from any h_i it gives what the model would say if its layers ended there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onnx import GraphProto, ModelProto, NodeProto, helper

from fillmask_ui.onnx_tools.asked_positions import ASKED, PRODUCTS, gather_asked, last_state
from fillmask_ui.onnx_tools.constant_folding import Constants, copied, in_order, read_by

_ATTENTION = ("Softmax", "Attention")  # ends of the names, fused ones included
_NORMS = ("Normalization", "ReduceMean")  # also of a norm in single operators
SAME_IDS = {"Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten"}
_SHAPES = {"Shape", "Size"}  # let no number through


@dataclass(frozen=True)
class _Boundary:
    """A value that all ways lead through."""

    value: str
    behind: tuple[NodeProto, ...]  # the operators since the boundary before, its own the last

    def has(self, endings: Sequence[str]) -> bool:
        return any(node.op_type.endswith(tuple(endings)) for node in self.behind)


def layer_values(model: ModelProto, ids: str, logits: str) -> tuple[str, ...]:
    """Names of h_0 (the embeddings), h_1, ... in a graph; none if it does not show them.

    `ids` is the input with the token ids, `logits` the output.
    """
    found = list(_boundaries(model.graph, ids, logits))
    values, end = [own.value for own in found], last_state(model, logits)
    mixing = [place for place, own in enumerate(found) if place and own.has(_ATTENTION)]
    if end not in values or not mixing:
        return ()
    # The last feed-forward part, and what stands between it and attention.
    behind = range(mixing[-1] + 1, values.index(end) + 1)
    forward = [place for place in behind if found[place].has([*PRODUCTS])]
    if not forward:
        return ()
    closing = _Boundary("", found[mixing[-1]].behind[-1:])
    between = (closing, *found[mixing[-1] + 1 : forward[0]])
    normed_after = any(own.has(_NORMS) for own in between)
    last = end if normed_after else values[forward[-1]]
    # What a layer reads may be quantized; the head quantizes for itself.
    unquantized = Constants(model.graph).unquantized
    return (*(unquantized(values[place - 1]) for place in mixing), last)


def _boundaries(graph: GraphProto, ids: str, logits: str) -> Iterator[_Boundary]:
    """In the order of computation, from where all looked-up words have come together."""
    nodes: list[NodeProto] = []
    words, said, begin = {ids}, set[str](), 0  # values that are ids, that depend on their rows
    for node in in_order(graph.node, [logits]):
        read = set(read_by(node))
        if node.op_type in SAME_IDS and node.input[0] in words:
            words.update(node.output)
        looked_up = node.op_type.startswith(("Gather", "Embed")) and not read.isdisjoint(words)
        if looked_up or (node.op_type not in _SHAPES and not read.isdisjoint(said)):
            said.update(filter(None, node.output))
            nodes.append(node)
            begin = len(nodes) if looked_up else begin
    last = {name: place for place, node in enumerate(nodes) for name in read_by(node)}
    last[logits] = len(nodes)
    alive: set[str] = set()
    behind: list[NodeProto] = []
    for place, node in enumerate(nodes):
        behind.append(node)
        alive = {name for name in (*alive, *node.output) if last.get(name, -1) > place}
        if place + 1 >= begin and len(alive) == 1:
            yield _Boundary(next(iter(alive)), tuple(behind))
            behind = []


def head_at_asked(model: ModelProto, value: str, kind: int, logits: str) -> ModelProto | None:
    """A copy of a graph that begins at a value, now an input, and ends as with `gather_asked`.

    `kind` is the element type of the value. None if the logits need anything else.
    """
    begun = copied(model)
    for node in begun.graph.node:
        node.output[:] = [f"{name}_before" if name == value else name for name in node.output]
    begun.graph.input.append(helper.make_tensor_value_info(value, kind, None))
    result = gather_asked(begun, logits)
    if result is None:
        return None
    read = {name for node in result.graph.node for name in read_by(node)}
    inputs = [own for own in result.graph.input if own.name in read]
    del result.graph.input[:]
    result.graph.input.extend(inputs)
    return result if {own.name for own in inputs} == {value, ASKED} else None
