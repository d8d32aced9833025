"""`fillmask-ui eval` as its user calls it, over the embedded model and texts."""

import json
import math
import os

import pytest
from evaluated import FAST, SUMMARY_KEYS

from fillmask_ui import load_model
from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.texts import TextChoice, open_texts
from fillmask_ui.unmasking import UnmaskingOptions


def test_json_has_the_promised_shape_and_the_figures_of_the_python_interface(fillmask):
    result = fillmask("eval", *FAST, "--json")
    assert result.returncode == 0, result.stderr
    found = result.json
    assert {*SUMMARY_KEYS, "signature", "run"} <= set(found)
    with open_texts(TextChoice("embedded", samples=8).source()) as texts:
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


def test_a_folder_of_files_gives_the_figures_of_one_file(fillmask, tmp_path):
    parts = ["The cat sat on the mat.\n\n", "", "Rain fell on the old town.\nShe slept.\n"]
    folder, together = tmp_path / "shards", tmp_path / "all.txt"
    folder.mkdir()
    for number, part in enumerate(parts):
        (folder / f"{number}.txt").write_text(part)
    together.write_text("".join(parts))
    of_folder, of_file = (
        fillmask("eval", "--dataset", texts, "--mask-probability", "0.5", "--json")
        for texts in (folder, together)
    )
    assert of_folder.returncode == 0, of_folder.stderr
    assert f"|texts:{folder}|samples:all" in of_folder.json["signature"]
    own = ("signature", "run")
    left, right = ({k: v for k, v in r.json.items() if k not in own} for r in (of_folder, of_file))
    assert left == right
    exported = [fillmask("runs", "export", r.json["run"]).stdout for r in (of_folder, of_file)]
    assert exported[0] == exported[1]


def test_a_baseline_gets_a_verdict_and_an_exit_code(fillmask, damaged):
    arguments = ("eval", *FAST, "--baseline", "embedded", "--json", "--metric", "uniform")
    same = fillmask(*arguments, "--fail-on", "at-risk")
    assert same.returncode == 0, same.stderr
    assert same.json["relative_change"] == 0
    assert same.json["relative_change_interval_95"] == [0, 0]
    assert same.json["verdict"] == "PASS"
    assert same.json["comparison"]["max_abs_logit_difference"] == 0
    arguments = ("eval", "--samples", "30", "--baseline", "embedded", "--json", "--model", damaged)
    worse = fillmask(*arguments, "--fail-on", "regression")
    assert worse.json["verdict"] == "REGRESSION"
    assert worse.returncode == 3
    assert "the verdict is REGRESSION" in worse.stderr
    result = fillmask("eval", *FAST, "--model", "embedded:int8", "--baseline", "embedded")
    for expected in ("Verdict: ", "same best guess", "KL(candidate || reference)", "Reference"):
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


def test_texts_that_cannot_be_measured_are_counted(fillmask, tmp_path):
    result = fillmask(
        *("eval", "--dataset", "-", "--metric", "uniform", "--no-shuffle", "--json"),
        stdin="The cat sat on the mat.\n\nThe dog ran home.\n",
    )
    assert result.json["texts"] == 2
    assert result.json["skipped"] == {"empty or blank": 1}
    (tmp_path / "special.txt").write_text("[SEP] [SEP]\n[CLS]\n")
    result = fillmask("eval", "--dataset", tmp_path / "special.txt")
    assert result.returncode == 1
    assert "2 only special or unknown tokens" in result.stderr


def test_a_pipe_gets_quiet_lines_and_no_bar(fillmask):
    result = fillmask("eval", *FAST)
    assert result.stderr.splitlines() == [line for line in result.stderr.splitlines() if line]
    assert len(result.stderr.splitlines()) <= 3
    assert "\r" not in result.stderr


def test_a_text_file_whose_name_is_not_utf8(fillmask, tmp_path):
    texts = tmp_path / os.fsdecode(b"caf\xe9.txt")
    texts.write_text("The cat sat on the mat.\n")
    result = fillmask(
        *("eval", "--dataset", texts, "--metric", "uniform", "-o", tmp_path / "out.json")
    )
    assert result.returncode == 0, result.stderr
    # As run.json has it, which is UTF-8.
    assert "caf?.txt" in json.loads((tmp_path / "out.json").read_text())["signature"]


def test_unmasking_gives_the_figures_of_the_python_interface(fillmask):
    given = ("--hidden-share", "0.3", "--order", "entropy", "--max-steps", "3", "--seed", "7")
    options = ("--samples", "3", "--max-tokens", "24", "--temperature", "0.5", "--top-k", "9")
    result = fillmask("eval", "--metric", "unmasking", *given, *options, "--json")
    assert result.returncode == 0, result.stderr
    config = EvaluationConfig(
        "unmasking",
        seed=7,
        max_tokens=24,
        hidden_share=0.3,
        decoding=UnmaskingOptions(order="entropy", max_steps=3, temperature=0.5, top_k=9),
    )
    with open_texts(TextChoice("embedded", samples=3).source()) as texts:
        summary = summarize(evaluate(load_model(), texts, config), config=config)
    figures, found = summary.model.written, result.json
    assert found["unmasking_loss"] == pytest.approx(summary.model.mean_nll_nats, rel=1e-6)
    for name in ("exact_match", "infill_token_accuracy", "distinct_1", "distinct_2"):
        assert found[name] == getattr(figures, name)
    assert found["mean_pseudo_perplexity"] == pytest.approx(figures.mean_pseudo_perplexity)
    assert "metric:unmasking|share:0.3|" in found["signature"]
    assert fillmask("runs", "list", "--json").json["value"] == found["unmasking_loss"]
    shown = fillmask("runs", "show", "latest").stdout
    for label in ("unmasking_loss", "exact match", "infill token accuracy", "distinct-2"):
        assert label in shown
