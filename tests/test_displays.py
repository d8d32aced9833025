"""Records in notebooks: what they show, their data frames and charts; the example notebook."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from table_model import TableModel, sample_texts

import fillmask_ui as fm
from fillmask_ui.evaluation import Rows
from fillmask_ui.runs.rows_file import dump_row

NOTEBOOK = Path(__file__).parent.parent / "docs" / "example.ipynb"
A, B = TableModel(seed=3), TableModel(seed=4)
TEXT = "the [MASK] sat on the [MASK] ."


def shown(record):
    """Its data frame, once what it shows is seen to be still and whole."""
    html = record._repr_html_()
    assert html.count("<style>") == 1 and "<button" not in html and "data-key" not in html
    assert isinstance(record.figure(), go.Figure) and record.figure().data
    return record.to_pandas()


def test_each_record_is_a_page_a_table_and_a_chart():
    """Sums and means by pandas are those of the records."""
    filling = fm.fill(A, TEXT, candidates=["walking"])
    frame = shown(filling)
    listed = frame[~frame.asked].groupby("mask")
    np.testing.assert_allclose(listed.probability.sum(), listed.cumulative_probability.max())
    assert str(frame["rank"].dtype) == "Int64" and [*frame[frame.asked].word] == ["walking"] * 2
    surprisal = fm.surprisal(A, "the cat sat .")
    np.testing.assert_allclose(shown(surprisal).nll_nats.sum(), surprisal.summary.total_nll_nats)
    lens = fm.layers(fm.load_model(), "The cat [MASK].", word="sat")
    (mask,), layers = lens.positions, shown(lens).groupby("layer")
    assert layers.size().tolist() == [5] * len(mask.layers)
    chances = [guess.true.probability for guess in mask.layers]
    assert layers.true_probability.max().tolist() == chances
    comparison = fm.compare(A, B, TEXT)
    words = [candidate.word for mask in comparison.masks for candidate in mask.candidates]
    assert shown(comparison).word.tolist() == words
    two = fm.pair_masks(A, TEXT, "the cat sat on the [MASK] .")
    assert shown(two).word.tolist() == [candidate.word for candidate in two.candidates]
    sentence = shown(fm.compare_sentence(A, B, "the cat sat ."))
    change = sentence.candidate_nll_nats - sentence.reference_nll_nats
    np.testing.assert_allclose(sentence.difference_nats, change)


def test_rows_and_summary_agree():
    rows = Rows(fm.evaluate(B, [*sample_texts(20, seed=5), ""], candidate=A))
    summary, tokens = fm.summarize(rows), shown(rows)
    figures = shown(summary).set_index(["of", "figure"]).value
    np.testing.assert_allclose(tokens.nll_nats.mean(), figures["candidate", "mean_nll_nats"])
    accuracy = (tokens.reference_rank == 1).mean()
    np.testing.assert_allclose(accuracy, figures["reference", "top1_accuracy"])
    difference = (tokens.nll_nats - tokens.reference_nll_nats).mean()
    np.testing.assert_allclose(difference, figures["comparison", "difference_nats"])


def test_rows_as_json_are_those_of_a_stored_run():
    """The lines of rows.jsonl, which `json` reads, without their checksums."""
    rows = Rows(fm.evaluate(B, [*sample_texts(3, seed=5), ""], candidate=A))
    stored = [json.loads(dump_row(row, checksum=0)) for row in rows]
    for values in stored:
        del values["checksum"]
    assert json.loads(rows.to_json()) == {"rows": stored}
    assert {"id": 3, "skipped": "empty or blank"} in stored


def test_the_example_notebook_runs():
    """From top to bottom, in one namespace; the last line of each cell is something to see."""
    names: dict = {}
    cells = [cell for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if "outputs" in cell]
    for cell in cells:
        *body, last = ast.parse("".join(cell["source"])).body
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        seen = isinstance(value, pd.DataFrame | go.Figure | list) or "fm-shown" in str(
            getattr(value, "_repr_html_", str)()
        )
        assert seen


def test_the_example_notebook_shows_its_outputs():
    """Where it is read without being run; `python docs/notebook.py` writes them."""
    content = NOTEBOOK.read_text("utf-8")
    cells = [cell for cell in json.loads(content)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    assert all(cell["outputs"] for cell in cells)
    assert len(content) < 300_000
    assert not re.search(r"/(home|root|tmp|Users|work)/", content)
