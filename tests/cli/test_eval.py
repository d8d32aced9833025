"""`fillmask-ui eval` as its user calls it, over the embedded model and texts."""

from evaluated import FAST


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
