"""What a new user types first: help, versions, slips, and text through a pipe."""

import re
import subprocess
import sys

import pytest
from recorded.program import environment

from fillmask_ui.cli.main import commands

NAMES = [name for name in commands() if name != "runs"]


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("name", NAMES)
def test_help_is_narrow_and_names_no_types(fillmask, name):
    for flag in ("--help", "--help-all"):
        text = fillmask(*name.split(), flag).stdout
        assert text.startswith(f"Usage: fillmask-ui {name} ")
        assert max(map(len, text.splitlines())) <= 80
        assert not {"range>", "<int", "<str", "<=", "..."}.intersection(text.split())
        assert "range>" not in text and "<=" not in text


def test_the_help_of_eval_fits_two_screens(fillmask):
    brief, full = (fillmask("eval", flag).stdout for flag in ("--help", "--help-all"))
    assert brief.count("\n") <= 54
    assert "--suffix-tokens" in brief
    assert "Metric suffix:\n  --suffix-tokens N  Number of hidden tokens" in full
    assert "Model:\n" in brief and "Texts:\n" in brief and "Metric suffix:" not in brief


def test_the_commands_stand_in_panels_a_line_each(fillmask):
    text = fillmask("--help").stdout
    for panel in ("Look at sentences", "Measure", "Model"):
        assert f"\n{panel}:\n" in text
    lines = [line.split()[0] for line in text.split("Options:")[0].splitlines() if line[:2] == "  "]
    assert {name for name in commands() if " " not in name} <= set(lines)
    assert re.search(r"  compare +\w", fillmask("runs", "--help").stdout)


def test_the_options_of_a_training_stand_in_panels(fillmask):
    text = fillmask("train", "--help").stdout
    panels = [line.removesuffix(":") for line in text.splitlines() if re.fullmatch(r"\S.*:", line)]
    assert panels == ["Start", "Machine", "Length", "Objective", "Optimizer", "Options"]
    assert text.split("Options:")[1].split()[0] == "-h,"  # none is left over
    assert max(map(len, text.splitlines())) <= 80


def test_every_choice_is_named_in_its_help():
    from fillmask_ui.cli.main import _click_command

    for parameter in _click_command("eval").params:
        if complete := getattr(parameter, "_custom_shell_complete", None):
            choices = [choice.value for choice in complete(None, parameter, "")]
            assert choices, parameter.name
            assert not [choice for choice in choices if choice not in parameter.help]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("eval --limit 3", "no option --limit; did you mean --samples?"),
        ("eval --batch_size 3", "did you mean --batch-tokens?"),
        ("eval --candidate x", "did you mean --model?"),
        ("predict --basline x", "did you mean --baseline?"),
        ("serve", "no command 'serve'; without a command, it starts the page"),
        ("evil", "no command 'evil'; did you mean eval?"),
        ("runs lst", "no command 'lst'; did you mean list?"),
        ("learn --port 99999", "--port must be less than or equal to 65535"),
        ("learn --port x", "--port must be a valid integer"),
        ("runs show", "missing argument 'RUN'"),
        ("predict a --joint x", "--joint must be a valid integer"),
    ],
)
def test_a_slip_is_told_in_one_line(fillmask, command, words):
    result = fillmask(*command.split())
    assert result.returncode == 2
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert words in result.stderr and "--help)" in result.stderr


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--samples", "0"), "--samples must be at least 1; it was 0"),
        (("--max-tokens", "1"), "--max-tokens must be at least 3; it was 1"),
        (("--threads", "0"), "--threads must be at least 1; it was 0"),
    ],
)
def test_a_bound_is_told_by_the_flag(fillmask, option, message):
    result = fillmask("eval", *option)
    assert (result.returncode, result.stderr) == (2, f"error: {message}\n")


def test_the_version_has_three_names(fillmask):
    assert len({fillmask(word).stdout for word in ("-V", "--version", "version")}) == 1


@pytest.mark.parametrize("words", [(), ("-",), ("--file", "-")])
def test_text_comes_through_a_pipe(words):
    command = [sys.executable, "-m", "fillmask_ui", "predict", *words, "--json", "-k", "1"]
    text, variables = "The cat [MASK].\n\nA [MASK].\n", environment()
    done = subprocess.run(command, input=text, capture_output=True, text=True, env=variables)
    assert done.stdout.count('"text"') == 2, done.stderr


def test_no_text_at_all_is_told(fillmask):
    for command in ("predict", "surprise", "layers"):
        result = fillmask(command)
        assert (result.returncode, result.stdout) == (2, "")
        assert "no text was given" in result.stderr


def test_a_candidate_may_hold_a_comma(fillmask):
    words = ("--candidates", "sat, ran", "--candidate", "1,000", "--candidate", "ran")
    filling = fillmask("predict", "The cat [MASK].", *words, "--json").json
    assert [word["word"] for word in filling["masks"][0]["scored"]] == ["sat", "ran", "1,000"]


def test_an_evaluation_begins_with_its_conclusion(fillmask):
    options = ("--samples", "40", "--max-tokens", "32")
    pair = fillmask("eval", *options, "--baseline", "embedded").stdout.splitlines()
    assert pair[0].startswith(("PASS: ", "INCONCLUSIVE: "))
    alone = fillmask("eval", *options)
    assert alone.stdout.startswith("Cross entropy ")
    assert "runs show" in alone.stderr and "Dataset: embedded" in alone.stderr
    for lines in (pair, alone.stdout.splitlines()):
        assert sum(line[0] in "┏┃┡│└" for line in lines) <= 12
    everything = fillmask("runs", "show", "latest", "--all").stdout
    assert "calibration error" in everything and "metric:cross-entropy" in everything
    listed = fillmask("runs", "list").stdout
    for heading in ("Source", "Reference", "Candidate", "Change", "95% interval", "Texts"):
        assert heading in listed
