"""Runs the example notebook and keeps what its cells show: `python docs/notebook.py`.

Charts are kept as pictures, which are seen wherever the notebook is read; Chromium draws them.
"""

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from chromium import chromium  # noqa: E402 - the browser of the tests

NOTEBOOK = ROOT / "docs" / "example.ipynb"


def picture(figure: Any) -> str:
    """A chart as a PNG in base64."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 900, "height": 600})
        page.set_content(figure.to_html(include_plotlyjs=True))
        page.wait_for_selector(".main-svg")
        return base64.b64encode(page.locator(".plotly-graph-div").screenshot()).decode()


def shown(value: Any) -> dict[str, Any]:
    """A value by type of content, as Jupyter would keep it."""
    if hasattr(value, "to_image"):
        return {"image/png": picture(value), "text/plain": ["Figure"]}
    content = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_html_"):
        content["text/html"] = value._repr_html_().splitlines(keepends=True)
    return content


def run(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """The outputs of a cell: what it prints, then the value of its last line."""
    *body, last = ast.parse(source).body
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)  # noqa: S102
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307
        else:
            exec(compile(ast.Module([last], []), "cell", "exec"), names)  # noqa: S102
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        lines = text.splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": lines})
    if value is not None:
        result = {"data": shown(value), "metadata": {}, "execution_count": count}
        outputs.append({"output_type": "execute_result", **result})
    return outputs


def main() -> None:
    """Run the code cells from top to bottom, in one namespace."""
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    names: dict[str, Any] = {}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, cell in enumerate(cells, start=1):
        cell["execution_count"] = count
        cell["outputs"] = run("".join(cell["source"]), names, count)
    NOTEBOOK.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
