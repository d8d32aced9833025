"""Runs that an earlier version stored: they open, go on, compare and export as they did.

`runs/` holds one run of each way in which runs come to be:

- 20260102, table beside noisy: by `fillmask-ui eval`, done;
- 20260103, table beside letters (another tokenizer): by `fillmask-ui eval`, stopped by Ctrl-C;
- 20260104, noisy beside table: by the page, stopped; its choices are references alone;
- 20260105, noisy: from Python, done; it has no choices.
"""

import json
import shutil
from pathlib import Path

import pytest
from recorded.program import HERE, call
from recorded.recording import (
    check_csv,
    check_json,
    check_text,
    differing,
    page_lines,
    parsed,
    visible_lines,
)

from fillmask_ui.models import load_model

RUNS = HERE / "runs"
SHELL, STOPPED, PAGE, PYTHON = NAMES = sorted(path.name for path in RUNS.iterdir())
RESUMABLE = (STOPPED, PAGE)


@pytest.fixture
def stored(tmp_path):
    """The folder of the runs, which the commands find."""
    folder = tmp_path / "runs"
    shutil.copytree(RUNS, folder)
    return folder


# Of a signature: what depends on the machine, and on the libraries that wrote the files.
_OF_HERE = ("versions", "cpu_features", "config_sha256", "tokenizer_sha256", "settings")


def as_if_written_here(folder: Path, machine: dict) -> None:
    """Only on the machine and with the versions and files that it began with may a run go on."""
    path = folder / "run.json"
    values = json.loads(path.read_text())
    for part in (values["model"], values["baseline"]):
        part |= machine[part["name"]]
    path.write_text(json.dumps(values))


@pytest.fixture(scope="module")
def machine(workshop):
    """What stands in signatures here and now, of each model."""
    models = {name: load_model(workshop / name) for name in ("table", "noisy", "letters")}
    known = {name: model.signature.to_dict() for name, model in models.items()}
    return {name: {key: values[key] for key in _OF_HERE} for name, values in known.items()}


def test_the_list(stored):
    check_json("runs-list", parsed(call("runs", "list", "--json").stdout))
    check_text("runs-list", visible_lines(call("runs", "list").stdout))


@pytest.mark.parametrize("name", NAMES)
def test_a_run_opens_with_its_figures(stored, name):
    shown = call("runs", "show", name, "--json")
    assert shown.returncode == 0, shown.stderr
    check_json(f"runs-show-{name}", parsed(shown.stdout))
    check_text(f"runs-show-{name}", visible_lines(call("runs", "show", name[:8]).stdout))


@pytest.mark.parametrize("name", [SHELL, PYTHON])
def test_the_figures_of_a_run_that_is_done_are_those_it_stored(stored, name):
    result = json.loads((stored / name / "run.json").read_text())["result"]
    shown = json.loads(call("runs", "show", name, "--json").stdout)
    differences = differing(result, {key: shown[key] for key in result}, more=True)
    # Intervals and the verdict are computed anew, by the method of today.
    anew = "interval_95", "verdict"
    assert [found for found in differences if not any(name in found for name in anew)] == []


def test_the_latest_run(stored):
    assert call("runs", "show", "latest").stdout == call("runs", "show", PYTHON).stdout


@pytest.mark.parametrize("name", RESUMABLE)
def test_a_stopped_run_goes_on_to_the_same_figures(stored, machine, name):
    as_if_written_here(stored / name, machine)
    resumed = call("eval", "--resume", name, "--json")
    assert resumed.returncode == 0, resumed.stderr
    check_json(f"resumed-{name}", parsed(resumed.stdout))
    again = call("eval", "--resume", name, "--json")
    assert "is done already" in again.stderr
    assert again.stdout == resumed.stdout


def test_it_ends_like_one_that_never_stopped(stored, machine):
    as_if_written_here(stored / STOPPED, machine)
    with (stored / STOPPED / "rows.jsonl").open("ab") as file:
        file.write(b'{"id": 7, "half')  # as if the machine had lost its power
    resumed = call("eval", "--resume", STOPPED, "--json")
    assert "dropped a half-written last line of 15 bytes" in resumed.stderr
    whole = call(
        *("eval", "-m", "table", "--dataset", "texts.txt", "--metric", "pseudo-perplexity"),
        *("--batch-tokens", "100", "--baseline", "letters", "--json"),
    )
    found, wanted = parsed(resumed.stdout)[0], parsed(whole.stdout)[0]
    assert "|batch:100|v:1|" in found["signature"]
    found["signature"] = found["signature"].replace("|batch:100|v:1|", "|v:2|")
    assert differing({**wanted, "run": ""}, {**found, "run": ""}) == []


def test_other_versions_do_not_go_on(stored):
    path = stored / STOPPED / "run.json"
    values = json.loads(path.read_text())
    values["model"]["versions"]["onnxruntime"] = "0.1"
    path.write_text(json.dumps(values))
    refused = call("eval", "--resume", STOPPED)
    assert refused.returncode == 1
    assert "the model is not the one that the run has: versions was" in refused.stderr


def quantized(folder: Path) -> None:
    """As if the run had measured an int8 model, whose numbers protocol 2 has changed."""
    path = folder / "run.json"
    values = json.loads(path.read_text())
    values["model"]["precision"] = "int8"
    path.write_text(json.dumps(values))


def test_a_quantized_model_does_not_go_on_by_another_protocol(stored, machine):
    as_if_written_here(stored / STOPPED, machine)
    quantized(stored / STOPPED)
    refused = call("eval", "--resume", STOPPED)
    assert refused.returncode == 1
    assert "measures a quantized model by protocol 1" in refused.stderr
    assert call("runs", "show", STOPPED).returncode == 0
    quantized(stored / SHELL)  # which is done
    assert "is done already" in call("eval", "--resume", SHELL).stderr


def test_a_run_of_today_compares_with_one_of_before(stored):
    """In full precision no number has changed, whatever the batches; quantized ones have."""
    fresh = call(
        *("eval", "-m", "noisy", "--dataset", "texts.txt", "--batch-tokens", "7", "--json")
    )
    assert fresh.returncode == 0, fresh.stderr
    name = json.loads(fresh.stdout)["run"]
    compared = parsed(call("runs", "compare", SHELL, name, "--json").stdout)
    before = parsed(call("runs", "compare", SHELL, PYTHON, "--json").stdout)
    names = {"run": SHELL, "baseline_run": ""}
    assert differing([before[0] | names], [compared[0] | names]) == []
    quantized(stored / SHELL)
    refused = call("runs", "compare", SHELL, name)
    assert refused.returncode == 1
    assert f"the runs measured different things: {SHELL} has " in refused.stderr
    assert call("runs", "compare", SHELL, PYTHON).returncode == 0  # both are of before


def test_changed_texts_do_not_go_on(stored, machine, workshop, tmp_path, monkeypatch):
    as_if_written_here(stored / PAGE, machine)
    place = tmp_path / "elsewhere"
    place.mkdir()
    for model in ("noisy", "table"):
        (place / model).symlink_to(workshop / model)
    (place / "texts.txt").write_text((workshop / "texts.txt").read_text() + "one more\n")
    monkeypatch.chdir(place)
    refused = call("eval", "--resume", PAGE)
    assert refused.returncode == 1
    assert f"the texts had 33 rows when run {PAGE} began and have 34 now" in refused.stderr


def test_a_run_from_python_goes_on_there(stored):
    path = stored / PYTHON / "run.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps({**values, "state": "stopped", "result": None}))
    refused = call("eval", "--resume", PYTHON)
    assert refused.returncode == 1
    assert "does not say how its model and texts were asked for" in refused.stderr


def test_two_runs_compare(stored):
    check_json("runs-compare", parsed(call("runs", "compare", SHELL, PYTHON, "--json").stdout))
    check_text("runs-compare", visible_lines(call("runs", "compare", SHELL, PYTHON).stdout))
    refused = call("runs", "compare", SHELL, PAGE)
    assert refused.returncode == 1
    assert "the runs measured different things" in refused.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_exported(stored, name, tmp_path):
    check_csv(f"runs-export-{name}", call("runs", "export", name).stdout)
    rows = [json.loads(line) for line in (RUNS / name / "rows.jsonl").read_text().splitlines()]
    lines = call("runs", "export", name, "--format", "jsonl").stdout.splitlines()
    assert list(map(json.loads, lines)) == rows
    saved = call("runs", "export", name, "-o", tmp_path / "run.json")
    assert saved.stdout == f"{tmp_path / 'run.json'}: {len(rows)} records of run {name}\n"
    exported = json.loads((tmp_path / "run.json").read_text("utf-8"))
    assert exported.pop("rows") == rows
    check_json(f"runs-export-{name}", exported)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_reported(stored, name, tmp_path):
    page = tmp_path / "report.html"
    assert call("report", name, "-o", page).returncode == 0
    check_text(f"report-{name}", page_lines(page.read_text("utf-8")))


def test_a_run_is_deleted(stored):
    assert call("runs", "delete", PAGE[:8], "--yes").stdout == f"deleted {PAGE}\n"
    assert sorted(path.name for path in stored.iterdir()) == [SHELL, STOPPED, PYTHON]
