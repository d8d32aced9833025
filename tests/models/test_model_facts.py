"""The facts of a model's files, against onnx alone; a card of a stranger is text."""

import math
from collections import Counter
from html.parser import HTMLParser

import onnx
import pytest
from explore_page import session_of
from onnx import TensorProto, helper
from onnxruntime.quantization import quantize_dynamic
from table_model import TableModel

from fillmask_ui.models import load_model
from fillmask_ui.models.load import find_files
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.models.model_facts import read_facts
from fillmask_ui.show.model_facts import card_html, facts_table, graph_tables
from fillmask_ui.ui.explore.explore_state import Question
from fillmask_ui.ui.explore.model_view import about

HOSTILE = """---
license: mit
---
# Card <script>alert(1)</script>

<img src=x onerror=alert(2)> [a](javascript:alert(3)) [b](https://example.com) ![c](http://x/y.png)
"""


def facts_of(path):
    return read_facts(find_files(ModelChoice(str(path))))


@pytest.mark.parametrize("form", ["plain", "int8"])
def test_a_graph_is_what_onnx_reads(copy, form):
    path = copy() / "onnx" / "model.onnx"
    if form == "int8":
        quantize_dynamic(path, path)
    model, facts = onnx.load(path), facts_of(path)
    graph = facts.graph
    assert graph.operators == dict(
        Counter(f"{node.domain}.{node.op_type}".lstrip(".") for node in model.graph.node)
    )
    assert [*graph.operators.values()] == sorted(graph.operators.values(), reverse=True)
    assert graph.opsets == {
        entry.domain or "ai.onnx": entry.version for entry in model.opset_import
    }
    assert [value.name for value in graph.inputs] == [value.name for value in model.graph.input]
    (logits,) = graph.outputs
    sizes = model.graph.output[0].type.tensor_type.shape.dim
    assert logits.shape == tuple(size.dim_param or size.dim_value for size in sizes)
    assert logits.type == "float32" and graph.inputs[0].type == "int64"
    stored = Counter()
    for tensor in model.graph.initializer:
        if math.prod(tensor.dims) > 1:
            stored[tensor.data_type] += math.prod(tensor.dims)
    eight = stored[TensorProto.INT8] + stored[TensorProto.UINT8]
    assert graph.quantized_numbers == eight
    assert graph.stored_numbers == eight + stored[TensorProto.FLOAT]
    assert (graph.quantized_share > 0.5) == (form == "int8")
    assert facts.size_bytes == path.stat().st_size
    assert facts.to_dict()["graph"]["quantized_share"] == graph.quantized_share
    inputs, outputs, operators = graph_tables(facts)
    assert len(inputs.rows) == len(model.graph.input) and outputs.rows[0][0] == "logits"
    assert sum(count for _, count in operators.rows) == len(model.graph.node)
    assert dict(facts_table(facts).rows)["runtime"] == "onnx"


def test_numbers_packed_into_bytes_are_counted_each(copy):
    """A MatMulNBits of 4 bits holds two numbers a byte."""
    path = copy() / "onnx" / "model.onnx"
    before, model = facts_of(path).graph, onnx.load(path)
    packed = helper.make_tensor("packed", TensorProto.UINT8, [8, 1, 16], bytes(128), raw=True)
    scales = helper.make_tensor("scales", TensorProto.FLOAT, [8], [1.0] * 8)
    model.graph.initializer.extend([packed, scales])
    given = helper.make_tensor("given", TensorProto.FLOAT, [1, 32], [0.0] * 32)
    model.graph.initializer.append(given)
    model.graph.node.append(
        helper.make_node(
            "MatMulNBits",
            ["given", "packed", "scales"],
            ["product"],
            domain="com.microsoft",
            K=32,
            N=8,
            bits=4,
            block_size=32,
        )
    )
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    onnx.save(model, path)
    graph = facts_of(path).graph
    assert graph.quantized_numbers == 256
    assert graph.stored_numbers == before.stored_numbers + 256 + 8 + 32
    assert graph.operators["com.microsoft.MatMulNBits"] == graph.opsets["com.microsoft"] == 1


class Elements(HTMLParser):
    """Elements of a page with their attributes."""

    def __init__(self):
        super().__init__()
        self.elements = []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))


def test_a_hostile_card_is_text(copy):
    folder = copy()
    (folder / "README.md").write_text(HOSTILE)
    facts = facts_of(folder)
    assert facts.card.startswith("# Card") and not facts.card_url
    session = session_of(hostile=load_model(folder))
    pages = card_html(facts.card), about(session, Question(model="hostile"))["html"]
    for html in pages:
        parser = Elements()
        parser.feed(html)
        assert not {"script", "img", "iframe"}.intersection(tag for tag, _ in parser.elements)
        links = [attributes for tag, attributes in parser.elements if tag == "a"]
        assert [link["href"] for link in links] == ["https://example.com", "http://x/y.png"]
        assert all(link["rel"] == "noopener noreferrer nofollow" for link in links)
        assert not any(name.startswith("on") for _, found in parser.elements for name in found)
    (folder / "README.md").unlink()
    (folder / "README.md").symlink_to("/etc/hostname")
    assert facts_of(folder).card == ""


def test_a_model_in_memory_has_no_files():
    html = about(session_of(table=TableModel(1)), Question(model="table"))["html"]
    assert "it has no files to look at" in html


def test_names_in_a_graph_are_text(copy):
    path = copy() / "onnx" / "model.onnx"
    model = onnx.load(path)
    for node in model.graph.node:
        for index, name in enumerate(node.output):
            if name == "logits":
                node.output[index] = "<script>logits"
    model.graph.output[0].name = "<script>logits"
    onnx.save(model, path)
    html = about(session_of(odd=load_model(path)), Question(model="odd"))["html"]
    assert "&lt;script&gt;logits" in html and "<script" not in html
