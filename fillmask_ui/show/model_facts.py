"""The facts of a model as tables, and its card as HTML that cannot act."""

from collections.abc import Iterable

from markdown_it import MarkdownIt

from fillmask_ui.models.model_facts import ModelFacts
from fillmask_ui.models.onnx_files import GraphValue
from fillmask_ui.show.numbers import percent
from fillmask_ui.show.table import Table

# HTML in the text is shown as text, addresses such as `javascript:` are no links, and nothing is
# fetched: no images.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
_DEEPER = 3  # levels by which headings of a card stand below those of the page


def card_html(markdown: str) -> str:
    r"""The card of a model, written by a stranger, as HTML.

    >>> card_html("# A *model* <script>alert(1)</script> [x](javascript:alert(1))")
    '<h4>A <em>model</em> &lt;script&gt;alert(1)&lt;/script&gt; [x](javascript:alert(1))</h4>\n'
    """
    tokens = _MARKDOWN.parse(markdown)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + _DEEPER)}"
        for inner in token.children or ():
            if inner.type == "link_open":
                inner.attrs |= {"rel": "noopener noreferrer nofollow", "target": "_blank"}
    return str(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))


def facts_table(facts: ModelFacts) -> Table:
    """The files of a model, and the graph's versions and share of quantized numbers."""
    rows = [
        ("model", facts.reference),
        ("runtime", facts.runtime),
        ("file", facts.file),
        ("size", f"{facts.size_bytes / 1e6:,.1f} MB"),
    ]
    if graph := facts.graph:
        opsets = ", ".join(f"{domain} {version}" for domain, version in graph.opsets.items())
        share = f"{percent(graph.quantized_share)} of {graph.stored_numbers:,} stored numbers"
        rows += [("opset", opsets), ("in 8 bits or fewer", share)]
    if facts.card_url:
        rows.append(("card", facts.card_url))
    return Table.of(("fact", "value"), rows)


def graph_tables(facts: ModelFacts) -> list[Table]:
    """Inputs, outputs and operators of an ONNX graph; none for other files."""
    if facts.graph is None:
        return []
    columns = ("name", "type", "shape")
    graph, total = facts.graph, sum(facts.graph.operators.values())
    return [
        Table.of(columns, _rows(graph.inputs), "Inputs"),
        Table.of(columns, _rows(graph.outputs), "Outputs"),
        Table.of(("operator", "count"), graph.operators.items(), f"{total:,} operators"),
    ]


def _rows(values: Iterable[GraphValue]) -> Iterable[tuple[str, str, str]]:
    for value in values:
        shape = " × ".join("any" if size is None else str(size) for size in value.shape)
        yield value.name, value.type, shape or "one number"
