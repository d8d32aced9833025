"""Products read their matrices as they are stored.

    MatMul(A, Transpose(W)) becomes FusedMatMul(A, W, transB=1)

for a constant W. Exporters write weights of PyTorch, [out, in], with a Transpose; ONNX Runtime
works it out when it opens the graph: a third of that time, and a copy of what something else reads
too, such as word embeddings that are the vocabulary projection. The product packs its
matrix in either order, so it is as fast afterwards.
"""

from onnx import ModelProto, helper

_DOMAIN = "com.microsoft"  # of FusedMatMul


def read_as_stored(model: ModelProto) -> None:
    """Rewrite a graph in place; an inner graph of a branch or loop stays as it is."""
    graph = model.graph
    fixed = {tensor.name for tensor in graph.initializer}
    turned: dict[str, str] = {}  # output of a Transpose of a constant matrix -> that matrix
    changed = False
    for node in graph.node:  # each stands behind what it reads
        if node.input and all(name in fixed for name in node.input):
            fixed.update(node.output)
            order = [list(own.ints) for own in node.attribute if own.name == "perm"]
            if node.op_type == "Transpose" and order in ([], [[1, 0]]):
                turned[node.output[0]] = node.input[0]
        elif node.op_type == "MatMul" and node.input[1] in turned:
            node.op_type, node.domain = "FusedMatMul", _DOMAIN
            node.input[1] = turned[node.input[1]]
            node.attribute.append(helper.make_attribute("transB", 1))
            changed = True
    # ONNX Runtime would work out a constant that nobody reads any more.
    read = {name for node in graph.node for name in node.input}
    for node in [node for node in graph.node if node.output[0] in turned.keys() - read]:
        graph.node.remove(node)
    if changed and _DOMAIN not in {entry.domain for entry in model.opset_import}:
        model.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
