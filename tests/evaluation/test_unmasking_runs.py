"""Runs by the metric `unmasking`: stored, stopped, resumed, compared and exported."""

import csv
import io
import json
from itertools import islice

from evaluated import measured
from stored_runs import TEXTS, record
from table_model import TableModel

from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.runs import compare, prepare_info, resume, start
from fillmask_ui.runs.tokens import export, write_text
from fillmask_ui.unmasking import UnmaskingOptions

MODEL, NOISY = TableModel(1), TableModel(1, noise=0.4, noise_seed=2)
CONFIG = EvaluationConfig(
    "unmasking",
    hidden_share=0.4,
    batch_tokens=40,
    decoding=UnmaskingOptions(order="none", temperature=1.0, remask=1, max_steps=4),
)


def test_a_run_that_was_stopped_ends_as_one_that_was_not(store):
    whole = record(store, MODEL, config=CONFIG, baseline=NOISY)
    with start(store, prepare_info(CONFIG, MODEL, baseline=NOISY)) as recorder:
        rows = recorder.measure(MODEL, TEXTS, baseline=NOISY)
        list(islice(rows, 17))
        rows.close()
    with resume(store, recorder.name) as recorder:
        list(recorder.measure(MODEL, TEXTS, baseline=NOISY))
    run = store.open(recorder.name)
    lines = [(own.folder / "rows.jsonl").read_bytes() for own in (run, whole)]
    assert lines[0] == lines[1]
    assert run.summary().to_dict() == run.info.result == whole.summary().to_dict()


def test_two_stored_runs_compare_as_one_with_a_baseline(store):
    first, second = (record(store, model, config=CONFIG) for model in (MODEL, NOISY))
    paired = summarize(evaluate(MODEL, TEXTS, CONFIG, baseline=NOISY), config=CONFIG)
    found = compare(first, second)
    assert found.comparison.relative_change == paired.comparison.relative_change
    assert found.model.written == paired.model.written
    assert found.baseline.written == paired.baseline.written


def test_exports_have_what_was_written(store, tmp_path):
    run = record(store, MODEL, config=CONFIG, baseline=NOISY)
    file = io.StringIO()
    write_text(run, file, "csv")
    records = list(csv.DictReader(io.StringIO(file.getvalue())))
    rows = measured(run.rows())
    assert len(records) == sum(len(row.cols) for row in rows.values())
    places = ((row, entry) for row in rows.values() for entry in range(len(row.cols)))
    for token, (own, entry) in zip(records, places, strict=True):
        for prefix, scores in (("", own.scores), ("baseline_", own.baseline)):
            assert int(token[f"{prefix}step"]) == scores.steps[entry]
            assert int(token[f"{prefix}written_id"]) == scores.written_ids[entry]
            assert token[f"{prefix}written_token"] == scores.written_tokens[entry]
            probability = float(token[f"{prefix}written_probability"])
            assert probability == scores.written_probabilities[entry]
    target = tmp_path / "run.parquet"
    assert export(run, target) == len(records)
    import pyarrow.parquet as pq

    table = pq.read_table(target).to_pydict()
    assert table["baseline_written_id"] == [int(r["baseline_written_id"]) for r in records]
    assert table["written_token"] == [r["written_token"] for r in records]
    plain = io.StringIO()
    write_text(record(store, MODEL), plain, "csv")
    assert "written" not in plain.getvalue().splitlines()[0]
    lines = io.StringIO()
    write_text(run, lines, "jsonl")
    stored = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [r["pseudo_perplexity"] for r in stored if "ids" in r] == [
        row.scores.pseudo_perplexity for row in rows.values()
    ]
