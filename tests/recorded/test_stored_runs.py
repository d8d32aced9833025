"""Stored runs on the command line: shown, listed, compared, exported, reported, resumed."""

import json
import re

import pytest
from recorded.program import call
from recorded.recording import anywhere, check_csv, check_json, differing, parsed

NOISY = ("eval", "-m", "noisy", "--dataset", "texts.txt", "--json")
# With a second model, of the same tokenizer and of another, and alone.
EVALUATIONS = {
    "with-baseline": (*NOISY, "--baseline", "table"),
    "other-tokenizer": (*NOISY, "--baseline", "letters", "--metric", "pseudo-perplexity"),
    "alone": NOISY,
}
TABLE = ("eval", "-m", "table", "--dataset", "texts.txt", "--batch-tokens", "7", "--json")


def printed(*arguments):
    result = call(*arguments)
    assert result.returncode == 0, result.stderr
    return result.json


@pytest.mark.parametrize("name", EVALUATIONS)
def test_a_run_is_shown_exported_and_reported(name, tmp_path):
    measured = printed(*EVALUATIONS[name])
    run = measured["run"]
    for begun in (run, run[:8], "latest"):
        printed_run = printed("runs", "show", begun, "--json")
        assert printed_run == measured | {"state": "done", "engines": [{"name": "local"}]}
    check_csv(f"runs-export-{name}", call("runs", "export", run).stdout)
    folder = tmp_path / "runs" / run
    stored = [json.loads(line) for line in (folder / "rows.jsonl").read_text("utf-8").splitlines()]
    lines = call("runs", "export", run, "--format", "jsonl").stdout.splitlines()
    assert list(map(json.loads, lines)) == stored
    saved = call("runs", "export", run, "-o", tmp_path / "run.json")
    assert saved.stdout == f"{tmp_path / 'run.json'}: {len(stored)} records of run {run}\n"
    exported = json.loads((tmp_path / "run.json").read_text("utf-8"))
    assert exported["run"] == json.loads((folder / "run.json").read_text("utf-8"))
    assert exported["rows"] == stored
    assert exported["summary"].items() <= measured.items()
    assert call("report", run, "-o", tmp_path / "report.html").returncode == 0
    page = (tmp_path / "report.html").read_text("utf-8")
    assert re.search(rf">{measured['mean_nll_nats']:.4f}<", page)


def test_the_list_and_two_runs_beside_each_other():
    """The pair is that of an evaluation with a baseline, whatever the batches of each run."""
    whole = printed(*EVALUATIONS["with-baseline"])
    alone, table = printed(*NOISY), printed(*TABLE)
    listed = parsed(call("runs", "list", "--json").stdout)
    check_json("runs-list", anywhere(listed, also=("created", "run")))
    compared = printed("runs", "compare", table["run"], alone["run"], "--json")
    assert (compared["reference_run"], compared["candidate_run"]) == (table["run"], alone["run"])
    names = ("verdict", "mean_nll_nats", "relative_change", "relative_change_interval_95")
    pair = [[values[name] for name in names] for values in (whole, compared)]
    assert differing(*pair) == []
    refused = call("runs", "compare", alone["run"], printed(*TABLE, "--seed", "3")["run"])
    assert refused.returncode == 1
    assert "the runs measured different things" in refused.stderr


def stop(folder, rows, **changes):
    """As if the run had been stopped after some rows, in the middle of a line."""
    values = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(
        json.dumps({**values, "state": "stopped", "result": None, **changes})
    )
    lines = (folder / "rows.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "rows.jsonl").write_bytes(b"".join(lines[:rows]) + b'{"id": 7, "half')


@pytest.mark.parametrize("name", EVALUATIONS)
def test_a_stopped_run_goes_on_to_the_same_figures(name, tmp_path):
    whole = printed(*EVALUATIONS[name])
    run = whole["run"]
    stop(tmp_path / "runs" / run, 14)
    refused = call("eval", "--resume", run, "--seed", "3")
    assert refused.returncode == 2
    assert "a resumed run keeps its own options: leave out --seed" in refused.stderr
    resumed = call("eval", "--resume", run, "--json")
    assert "dropped a half-written last line of 15 bytes" in resumed.stderr
    assert differing(whole, resumed.json) == []
    again = call("eval", "--resume", run, "--json")
    assert "is done already" in again.stderr
    assert again.stdout == resumed.stdout


def test_a_run_does_not_go_on_with_other_texts_or_without_its_choices(tmp_path, workshop):
    run = printed(*NOISY)["run"]
    folder = tmp_path / "runs" / run
    texts = {**json.loads((folder / "run.json").read_text())["texts"], "available": 34}
    for changes, message in (
        ({"texts": texts}, f"the texts had 34 rows when run {run} began and have 33 now"),
        ({"choices": {}}, "does not say how its model and texts were asked for"),
    ):
        stop(folder, 14, **changes)
        refused = call("eval", "--resume", run)
        assert refused.returncode == 1
        assert message in refused.stderr
