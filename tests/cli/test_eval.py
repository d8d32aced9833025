"""eval, runs and report as their user calls them, over the embedded model and texts."""

import contextlib
import io
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, replace

import pytest
from evaluated import SUMMARY_KEYS
from table_model import TableModel

from fillmask_ui import load_model
from fillmask_ui.cli.main import run
from fillmask_ui.cli.serve import _pass_proxies_by
from fillmask_ui.corpora import open_texts, text_source
from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.runs import RunStore, prepare_info, start

FAST = ("--samples", "8", "--max-tokens", "32")


@dataclass(frozen=True)
class Result:
    returncode: int
    stdout: str
    stderr: str

    @property
    def json(self):
        return json.loads(self.stdout)


@pytest.fixture
def fillmask(monkeypatch, capsys, tmp_path):
    """Calls the program's entry point; runs are kept in a folder of the test."""
    monkeypatch.setenv("FILLMASK_UI_RUNS", str(tmp_path / "runs"))

    def call(*arguments, stdin=None):
        monkeypatch.setattr(sys, "argv", ["fillmask-ui", *map(str, arguments)])
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as exit_:
            run()
        captured = capsys.readouterr()
        return Result(exit_.value.code or 0, captured.out, captured.err)

    return call


def test_json_has_the_promised_shape_and_the_figures_of_the_python_interface(fillmask):
    result = fillmask("eval", *FAST, "--json")
    assert result.returncode == 0, result.stderr
    found = result.json
    assert {*SUMMARY_KEYS, "signature", "run"} <= set(found)
    with open_texts(text_source("embedded", samples=8)) as texts:
        summary = summarize(evaluate(load_model(), texts, EvaluationConfig(max_tokens=32)))
    assert found["cross_entropy"] == summary.model.mean_nll_nats
    assert found["tokens"] == summary.model.tokens
    assert found["by_kind"]["mask"]["tokens"] == summary.model.by_kind[0].tokens
    assert "metric:cross-entropy|p:0.15" in found["signature"]
    assert "texts:embedded|samples:8|shuffle:42" in found["signature"]
    assert found["run"] in result.stderr


def test_panel_lines_and_table_of_the_published_command(fillmask, tmp_path):
    """The options of the published evaluator, in its order."""
    texts = tmp_path / "texts.csv"
    texts.write_text("n,text\n1,The cat sat on the mat and slept.\n2,Rain fell on the old town.\n")
    result = fillmask(
        *("eval", "-m", "embedded", "--task", "fill-mask", "--device", "cpu"),
        *("--dataset", texts, "--samples", "1000", "--column", "input_column=text"),
        *("--mask-probability", "0.5", "--no-shuffle", "-o", tmp_path / "out.json"),
    )
    assert result.returncode == 0, result.stderr
    written = json.loads((tmp_path / "out.json").read_text())
    for expected in (
        "embedded (bert, onnx",
        "Task: fill-mask",
        "Device: CPUExecutionProvider",
        f"Dataset: {texts}",
        "Samples: ",
        "Metric",
        "Value",
        "95 % interval",
        "cross_entropy",
        f"{written['cross_entropy']:.4f}",
        "1,000 texts were asked for; the data has 2",
        "easier than hidden ones",
    ):
        assert expected in result.stdout
    assert written["notes"] == ["1,000 texts were asked for; the data has 2"]


def test_a_baseline_gets_a_verdict_and_an_exit_code(fillmask):
    arguments = ("eval", *FAST, "--baseline", "embedded", "--json", "--metric", "uniform")
    same = fillmask(*arguments, "--fail-on", "at-risk")
    assert same.returncode == 0, same.stderr
    assert same.json["relative_change"] == 0
    assert same.json["relative_change_interval_95"] == [0, 0]
    assert same.json["verdict"] == "PASS"
    assert same.json["comparison"]["max_abs_logit_difference"] == 0
    # With both borders below zero, no change is a regression.
    borders = ("--pass-below", "-0.2", "--risk-below", "-0.1")
    worse = fillmask(*arguments, "--fail-on", "regression", *borders)
    assert worse.json["verdict"] == "REGRESSION"
    assert worse.returncode == 3
    assert "the verdict is REGRESSION" in worse.stderr
    assert fillmask(*arguments, *borders).returncode == 0


def test_int8_beside_full_precision_prints_its_differences(fillmask):
    result = fillmask("eval", *FAST, "--model", "embedded:int8", "--baseline", "embedded")
    assert result.returncode == 0, result.stderr
    for expected in ("Verdict: ", "Same best guess for", "KL divergence", "Baseline value"):
        assert expected in result.stdout


@pytest.mark.parametrize(
    ("options", "key"),
    [
        (("--metric", "pseudo-perplexity", "--within-word"), "pseudo_perplexity"),
        (("--metric", "suffix", "--suffix-tokens", "3"), "cross_entropy"),
        (("--whole-word",), "cross_entropy"),
        (("--mask-stream", "collator"), "cross_entropy"),
        (
            ("--mask-share", "0.5", "--random-share", "0.25", "--unchanged-share", "0.25"),
            "cross_entropy",
        ),
    ],
)
def test_every_metric(fillmask, options, key):
    result = fillmask("eval", "--samples", "3", "--max-tokens", "16", "--json", *options)
    assert result.returncode == 0, result.stderr
    found = result.json
    expected = found["mean_nll_nats"]
    if key == "pseudo_perplexity":
        expected = math.exp(expected)
    assert found[key] == pytest.approx(expected)
    low, high = found["interval_95"]
    assert low < found[key] < high


def test_standard_input_by_line(fillmask):
    result = fillmask(
        *("eval", "--dataset", "-", "--metric", "uniform", "--no-shuffle", "--json"),
        stdin="The cat sat on the mat.\n\nThe dog ran home.\n",
    )
    assert result.json["texts"] == 2
    assert result.json["skipped"] == {"empty or blank": 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--mask-probability", "0"), "mask probability must be above 0"),
        (("--mask-probability", "2"), "it was 2"),
        (("--mask-share", "0.9"), "must add up to 1"),
        (("--metric", "bleu"), "unknown metric 'bleu'"),
        (("--task", "text-generation"), "unknown task"),
        (("--fail-on", "regression"), "needs a --baseline"),
        (("--baseline", "embedded", "--fail-on", "never"), "unknown verdict"),
        (("--max-tokens", "100000"), "the model takes at most 512"),
        (("--column", "label=text"), "input_column=NAME"),
        (("--samples", "0"), "must be 1 or more"),
        (("-o", "/nowhere/out.json"), "no folder"),
        (("--metric", "uniform", "--whole-word"), "belong to cross-entropy"),
        (("--seed", "-1"), "seed must be 0 or larger"),
        (("--pass-below", "0.2"), "border of PASS"),
    ],
)
def test_wrong_options_end_with_a_message_and_no_run(fillmask, tmp_path, arguments, message):
    result = fillmask("eval", *arguments)
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.txt", b"", "is empty"),
        ("blank.txt", b"\n\n  \n", "blank"),
        ("latin.txt", "caf\u00e9 au lait\n".encode("latin-1"), "utf-8"),
        ("binary.txt", bytes(range(256)) * 8, "binary.txt"),
        ("table.csv", b"id,body\n1,hello\n2,you\n", "body"),
    ],
)
def test_bad_files_end_with_a_message(fillmask, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    column = ("--column", "text") if name.endswith("csv") else ()
    result = fillmask("eval", "--dataset", tmp_path / name, *column)
    assert result.returncode in (1, 2)
    assert message in result.stderr.lower()
    assert "Traceback" not in result.stderr


def test_texts_of_special_tokens_are_counted_and_nothing_is_measured(fillmask, tmp_path):
    (tmp_path / "special.txt").write_text("[SEP] [SEP]\n[CLS]\n")
    result = fillmask("eval", "--dataset", tmp_path / "special.txt")
    assert result.returncode == 1
    assert "2 only special or unknown tokens" in result.stderr


# Runs


def test_list_show_compare_export_report_delete(fillmask, tmp_path):
    first = fillmask("eval", *FAST, "--json").json
    second = fillmask("eval", *FAST, "--json", "--model", "embedded:int8").json
    listed = fillmask("runs", "list", "--json").stdout.splitlines()
    assert [json.loads(line)["run"] for line in listed] == [first["run"], second["run"]]
    assert json.loads(listed[0])["value"] == first["cross_entropy"]
    shown = fillmask("runs", "list").stdout
    assert "cross-entropy" in shown
    assert "done" in shown

    assert (
        fillmask("runs", "show", "latest", "--json").json["cross_entropy"]
        == (second["cross_entropy"])
    )
    assert "top-1 accuracy" in fillmask("runs", "show", first["run"]).stdout

    compared = fillmask("runs", "compare", second["run"], first["run"], "--json").json
    assert compared["relative_change"] == pytest.approx(
        second["cross_entropy"] / first["cross_entropy"] - 1
    )
    assert "Verdict: " in fillmask("runs", "compare", second["run"], first["run"]).stdout

    exported = fillmask("runs", "export", first["run"]).stdout.splitlines()
    assert len(exported) == first["tokens"] + 1
    target = tmp_path / "rows.parquet"
    said = fillmask("runs", "export", first["run"], "-o", target).stdout
    assert f"{first['tokens']} records" in said
    assert target.stat().st_size > 0
    lines = fillmask("runs", "export", first["run"], "--format", "jsonl").stdout.splitlines()
    assert len(lines) == 8

    page = tmp_path / "report.html"
    assert fillmask("report", first["run"], "-o", page).returncode == 0
    assert first["run"] in page.read_text()

    refused = fillmask("runs", "delete", first["run"], stdin="")
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert fillmask("runs", "delete", first["run"], "--yes").returncode == 0
    assert len(fillmask("runs", "list", "--json").stdout.splitlines()) == 1


def test_a_run_of_another_version_does_not_hide_the_others(fillmask, tmp_path):
    kept = fillmask("eval", *FAST, "--json").json["run"]
    other = tmp_path / "runs" / "19990101-older"
    shutil.copytree(tmp_path / "runs" / kept, other)
    values = json.loads((other / "run.json").read_text())
    (other / "run.json").write_text(json.dumps({**values, "format": 0}))
    result = fillmask("runs", "list", "--json")
    assert [json.loads(line)["run"] for line in result.stdout.splitlines()] == [kept]
    assert "has format 0" in result.stderr
    assert fillmask("runs", "show", "1999").returncode == 1


@pytest.mark.parametrize("command", ["show", "export"])
def test_an_unknown_run(fillmask, command):
    result = fillmask("runs", command, "nothing")
    assert result.returncode == 1
    assert "unknown run 'nothing'; known: none" in result.stderr


def test_no_runs_yet(fillmask):
    assert "make one with fillmask-ui eval" in fillmask("runs", "list").stdout


def test_a_killed_run_resumes_to_the_same_figures(fillmask, tmp_path, monkeypatch):
    """kill -9 in the middle of the real program over the real model, then --resume."""
    # Enough to outlast a stalled machine between the first row and the signal.
    options = ("--samples", "120", "--max-tokens", "48", "--batch-tokens", "64")
    whole = fillmask("eval", *options, "--json").json
    store = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-m", "fillmask_ui", "eval", *options],
        env={**os.environ, "FILLMASK_UI_RUNS": str(store)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size for path in store.glob("*/rows.jsonl")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (rows,) = store.glob("*/rows.jsonl")
    done = rows.read_bytes().count(b"\n")
    with rows.open("ab") as file:
        file.write(b'{"id": 7, "half')  # as if the kill had come in the middle of a line
    monkeypatch.setenv("FILLMASK_UI_RUNS", str(store))
    resumed = fillmask("eval", "--resume", rows.parent.name, "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert "dropped a half-written last line" in resumed.stderr
    assert done < 120
    found = resumed.json
    assert {**found, "run": ""} == {**whole, "run": ""}
    again = fillmask("eval", "--resume", rows.parent.name, "--json")
    assert "is done already" in again.stderr
    assert again.json == found


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path):
    # Minutes of work, so that it cannot be over before the signal arrives.
    options = ("--metric", "pseudo-perplexity", "--batch-tokens", "512")
    process = subprocess.Popen(
        [sys.executable, "-m", "fillmask_ui", "eval", *options],
        env={**os.environ, "FILLMASK_UI_RUNS": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # A job in the background of a shell inherits that Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size for path in tmp_path.glob("*/rows.jsonl")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert time.monotonic() - asked < 10
    assert process.returncode == 130
    (run_folder,) = tmp_path.iterdir()
    assert f"fillmask-ui eval --resume {run_folder.name}" in said
    assert "Traceback" not in said
    assert json.loads((run_folder / "run.json").read_text())["state"] == "stopped"


def test_a_terminal_gets_a_bar_with_the_time_left(tmp_path):
    arguments = [sys.executable, "-m", "fillmask_ui", "eval", *FAST, "--batch-tokens", "64"]
    main, other = os.openpty()
    process = subprocess.Popen(
        arguments,
        env={
            **os.environ,
            "FILLMASK_UI_RUNS": str(tmp_path),
            "TERM": "xterm-256color",
            "COLUMNS": "120",
        },
        stdout=subprocess.DEVNULL,
        stderr=other,
        stdin=subprocess.DEVNULL,
    )
    os.close(other)
    shown = b""
    # Linux ends a terminal whose last writer is gone with an error.
    with os.fdopen(main, "rb", buffering=0) as terminal, contextlib.suppress(OSError):
        while part := terminal.read(4096):
            shown += part
    assert process.wait(60) == 0, shown.decode()
    text = shown.decode()
    assert "8/8" in text
    assert re.search(r"\d:\d\d:\d\d", text)
    assert "mean NLL" in text


def test_a_pipe_gets_quiet_lines_and_no_bar(fillmask):
    result = fillmask("eval", *FAST)
    assert result.stderr.splitlines() == [line for line in result.stderr.splitlines() if line]
    assert len(result.stderr.splitlines()) <= 3
    assert "\r" not in result.stderr


def stopped(folder):
    """Make a finished run one that lacks its last row."""
    values = json.loads((folder / "run.json").read_text())
    values |= {"state": "stopped", "result": None}
    (folder / "run.json").write_text(json.dumps(values))
    rows = (folder / "rows.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "rows.jsonl").write_bytes(b"".join(rows[:-1]))
    return values


def test_a_text_file_that_has_grown_is_refused_before_a_model_is_loaded(fillmask, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("The cat sat on the mat.\nRain fell on the old town.\n")
    options = ("--dataset", texts, "--metric", "uniform", "--json")
    whole = fillmask("eval", *options).json
    folder = tmp_path / "runs" / whole["run"]
    values = stopped(folder)
    kept = (folder / "rows.jsonl").read_bytes()
    lines = texts.read_text()
    texts.write_text(lines + "A dog ran home.\n")
    missing = {**values["choices"], "model": {"reference": "missing.onnx"}}
    (folder / "run.json").write_text(json.dumps({**values, "choices": missing}))
    result = fillmask("eval", "--resume", "latest")
    assert result.returncode == 1
    assert f"had 2 rows when run {folder.name} began and have 3 now" in result.stderr
    assert (folder / "rows.jsonl").read_bytes() == kept
    texts.write_text(lines)
    (folder / "run.json").write_text(json.dumps(values))
    assert fillmask("eval", "--resume", "latest", "--json").json == whole


def test_a_run_recorded_from_python_is_resumed_there(fillmask, tmp_path):
    store = RunStore(tmp_path / "runs")
    start(store, prepare_info(EvaluationConfig(), TableModel(1))).close()
    result = fillmask("eval", "--resume", "latest")
    assert result.returncode == 1
    assert "resume it there, with fillmask_ui.runs.resume" in result.stderr


@pytest.mark.parametrize("state", ["stopped", "done"])
def test_a_resumed_run_without_a_baseline_has_no_verdict_to_fail_on(fillmask, tmp_path, state):
    store = RunStore(tmp_path / "runs")
    start(store, replace(prepare_info(EvaluationConfig(), TableModel(1)), state=state)).close()
    result = fillmask("eval", "--resume", "latest", "--fail-on", "regression")
    assert result.returncode == 2
    assert "--fail-on needs a baseline, and run" in result.stderr


def test_options_before_the_command_are_refused(fillmask, tmp_path):
    result = fillmask("-m", "embedded:int8", "--public", "eval", *FAST)
    assert result.returncode == 2
    assert "--model, --public before 'eval' belongs to the page" in result.stderr
    assert "write it after 'eval'" in result.stderr
    assert not (tmp_path / "runs").exists()
    assert fillmask("--version").stdout.startswith("fillmask-ui ")


def test_the_page_needs_a_port_above_zero(fillmask):
    result = fillmask("--port", "0")
    assert result.returncode == 2
    assert "--port" in result.stderr


@pytest.mark.parametrize("named", ["http_proxy", "HTTPS_PROXY", "all_proxy"])
def test_the_page_is_asked_past_a_proxy(monkeypatch, named):
    for name in list(urllib.request.getproxies_environment()):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_proxy".upper(), raising=False)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    _pass_proxies_by("192.0.2.1")
    assert "no_proxy" not in os.environ
    os.environ |= {named: "http://127.0.0.1:9", "NO_PROXY": "intern.example"}
    _pass_proxies_by("192.0.2.1")
    for host in ("localhost", "127.0.0.1", "192.0.2.1", "intern.example"):
        assert urllib.request.proxy_bypass_environment(host)
    assert not urllib.request.proxy_bypass_environment("huggingface.co")


def test_deleting_one_run_under_two_names(fillmask, tmp_path):
    store = RunStore(tmp_path / "runs")
    for _ in range(2):
        start(store, prepare_info(EvaluationConfig(), TableModel(1))).close()
    first, last = store.names()
    result = fillmask("runs", "delete", "latest", last, "latest", "--yes")
    assert result.stdout == f"deleted {last}\n"
    assert store.names() == [first]


def test_a_text_file_whose_name_is_not_utf8(fillmask, tmp_path):
    texts = tmp_path / os.fsdecode(b"caf\xe9.txt")
    texts.write_text("The cat sat on the mat.\n")
    result = fillmask(
        *("eval", "--dataset", texts, "--metric", "uniform", "-o", tmp_path / "out.json")
    )
    assert result.returncode == 0, result.stderr
    assert "caf\udce9.txt" in json.loads((tmp_path / "out.json").read_text())["signature"]


def test_resume_takes_no_other_choices(fillmask):
    result = fillmask("eval", "--resume", "latest", "--metric", "uniform", "--seed", "3")
    assert result.returncode == 2
    assert "leave out --metric, --seed" in result.stderr
