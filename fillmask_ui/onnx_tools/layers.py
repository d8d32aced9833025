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
from fillmask_ui.onnx_tools.constant_folding import Constants, copy_model, nodes_for, values_read

_ATTENTION = ("Softmax", "Attention")  # ends of the names, fused ones included
_NORMS = ("Normalization", "ReduceMean")  # also of a norm in single operators
SAME_IDS = {"Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten"}
_SHAPES = {"Shape", "Size"}  # let no number through


@dataclass(frozen=True)
class _Boundary:
    """A value that all ways lead through."""

    value: str
    nodes: tuple[NodeProto, ...]  # since the boundary before; the last yields the value

    def has(self, endings: Sequence[str]) -> bool:
        return any(node.op_type.endswith(tuple(endings)) for node in self.nodes)


def layer_values(model: ModelProto, ids: str, logits: str) -> tuple[str, ...]:
    """Names of h_0 (the embeddings), h_1, ... in a graph; none if it does not show them.

    `ids` is the input with the token ids, `logits` the output.
    """
    boundaries = list(_boundaries(model.graph, ids, logits))
    values, last = [boundary.value for boundary in boundaries], last_state(model, logits)
    attention = [i for i, boundary in enumerate(boundaries) if i and boundary.has(_ATTENTION)]
    if last is None or last not in values or not attention:
        return ()
    # The last feed-forward part, and what stands between it and attention.
    last_attention = attention[-1]
    behind = range(last_attention + 1, values.index(last) + 1)
    feed_forward = [i for i in behind if boundaries[i].has([*PRODUCTS])]
    if not feed_forward:
        return ()
    closing = _Boundary("", boundaries[last_attention].nodes[-1:])
    between = (closing, *boundaries[last_attention + 1 : feed_forward[0]])
    if not any(boundary.has(_NORMS) for boundary in between):  # the norm belongs to the head
        last = values[feed_forward[-1]]
    # What a layer reads may be quantized; the head quantizes for itself.
    unquantized = Constants(model.graph).unquantized
    return (*(unquantized(values[index - 1]) for index in attention), last)


def _boundaries(graph: GraphProto, ids: str, logits: str) -> Iterator[_Boundary]:
    """In the order of computation, from where all looked-up words have come together."""
    nodes: list[NodeProto] = []  # whose outputs depend on the looked-up rows
    id_values, row_values, begin = {ids}, set[str](), 0
    for node in nodes_for(graph.node, [logits]):
        read = set(values_read(node))
        if node.op_type in SAME_IDS and node.input[0] in id_values:
            id_values.update(node.output)
        looks_up = node.op_type.startswith(("Gather", "Embed")) and not read.isdisjoint(id_values)
        if looks_up or (node.op_type not in _SHAPES and not read.isdisjoint(row_values)):
            row_values.update(filter(None, node.output))
            nodes.append(node)
            begin = len(nodes) if looks_up else begin
    last_reader = {name: index for index, node in enumerate(nodes) for name in values_read(node)}
    last_reader[logits] = len(nodes)
    alive: set[str] = set()
    since: list[NodeProto] = []  # the last boundary
    for index, node in enumerate(nodes):
        since.append(node)
        alive = {name for name in (*alive, *node.output) if last_reader.get(name, -1) > index}
        if index + 1 >= begin and len(alive) == 1:
            yield _Boundary(next(iter(alive)), tuple(since))
            since = []


def head_at_asked(model: ModelProto, value: str, kind: int, logits: str) -> ModelProto | None:
    """A copy of a graph that begins at a value, now an input, and ends as with `gather_asked`.

    `kind` is the element type of the value. None if the logits need anything else.
    """
    behind_value = copy_model(model)
    for node in behind_value.graph.node:
        node.output[:] = [f"{name}_before" if name == value else name for name in node.output]
    behind_value.graph.input.append(helper.make_tensor_value_info(value, kind, None))
    result = gather_asked(behind_value, logits)
    if result is None:
        return None
    read = {name for node in result.graph.node for name in values_read(node)}
    inputs = [entry for entry in result.graph.input if entry.name in read]
    del result.graph.input[:]
    result.graph.input.extend(inputs)
    return result if {entry.name for entry in inputs} == {value, ASKED} else None
