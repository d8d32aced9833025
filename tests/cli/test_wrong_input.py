"""Slips of the user: exit code 2, a message, and nothing on standard output."""

import shlex

import pytest

UNMASKING = "eval --metric unmasking --samples 3"
WRONG = [
    ("predict", "no text was given"),
    ("predict ''", "the text is empty"),
    ("predict '   '", "the text is empty"),
    ("predict 'no mask'", "the text has no mask"),
    ("predict '{long_masks}'", "takes at most 512"),
    ("predict '{long} [MASK]'", "nothing was cut"),
    ("predict 'A [MASK].' -k 0", "give a number from 1 to 100, or 'all'"),
    ("predict 'A [MASK].' -k 1000000000", "1000000000"),
    ("predict 'A [MASK].' -k many", "'many'"),
    ("predict 'A [MASK].' --candidates ' , '", "has no word"),
    ("predict 'A [MASK].' --candidates \u200b", "has no tokens"),
    ("predict 'A [MASK].' --candidates [MASK]", "is itself a mask"),
    ("predict 'A [MASK].' --provider AbacusExecutionProvider", "CPUExecutionProvider"),
    ("predict 'A [MASK].' --runtime abacus", "unknown runtime 'abacus'"),
    ("predict --file no-such-file.txt", "no file 'no-such-file.txt'"),
    ("predict --file '{long_masks}'", "no file '[MASK]"),
    ("predict 'A [MASK].' --nonsense", "--nonsense"),
    ("predict 'no mask' --compare embedded:int8", "embedded: the text has no mask"),
    ("surprise", "Missing argument"),
    ("surprise ''", "the text is empty"),
    ("surprise 'a [MASK]'", "the text has a mask"),
    ("surprise '{long}'", "20,002 tokens and this model takes at most 512"),
    ("differ", "Missing option '--compare'"),
    ("differ --compare embedded --words 0", "--words"),
    ("unmask", "no text was given"),
    ("unmask a", "no mask"),
    ("unmask --length 0", "1 to 10,000 tokens"),
    ("unmask --length 9999", "at most 512"),
    ("unmask --length 99999", "1 to 10,000 tokens"),
    ("unmask --prefix a", "--new-tokens goes with --prefix"),
    ("unmask --new-tokens 3", "goes with --prefix"),
    ("unmask --length 3 --prefix a --new-tokens 2", "leave it or --new-tokens out"),
    ("unmask 'a [MASK]' --length 3", "give one of them"),
    ("unmask 'a [MASK]' 'a [MASK]' --history h", "--history keeps one text"),
    ("unmask 'a [MASK]' --history no/h", "no folder 'no'"),
    ("unmask 'a [MASK]' --max-steps 0", "max-steps"),
    ("unmask 'a [MASK]' --top-k 3 --top-p 0.5", "both given"),
    ("unmask 'a [MASK]' --order none --threshold 1", "has none"),
    ("unmask 'a [MASK]' --temperature nan", "temperature"),
    ("unmask 'a [MASK]' --order best", "unknown order 'best'"),
    ("unmask --file nowhere.txt", "no file"),
    (f"{UNMASKING} --top-k 3 --top-p 0.5", "both given"),
    (f"{UNMASKING} --hidden-share 0", "above 0 and at most 1"),
    ("eval --remask 1", "belong to unmasking"),
    ("eval --hidden-share 0.2", "belongs to unmasking"),
    ("eval --fail-on crash", "unknown verdict to fail on 'crash'"),
    ("eval --fail-on regression", "--fail-on needs a --baseline"),
    ("eval --resume latest --metric uniform --seed 3", "leave out --metric, --seed"),
    ("eval --workers 2", "--workers is about Ray: add --engine ray, or leave it out"),
    ("eval --engine spark", "unknown engine 'spark'; known: local, ray"),
    ("eval --engine ray --workers 0", "Invalid value for '--workers'"),
    ("--port 0", "--port"),
]
LONG = {"long": "word " * 20_000, "long_masks": "[MASK] " * 600}


@pytest.mark.parametrize(("command", "message"), WRONG)
def test_a_slip_is_told(fillmask, monkeypatch, tmp_path, command, message):
    monkeypatch.chdir(tmp_path)
    result = fillmask(*(own.format(**LONG) for own in shlex.split(command)))
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("predict 'A [MASK].' --model no/such/folder", "no/such/folder"),
        ("predict 'A [MASK].' --model missing.onnx", "missing.onnx"),
        ("predict 'A [MASK].' --compare no/such", "no/such"),
        ("predict 'A [MASK].' --compare ''", "the model reference is empty"),
        ("predict --file /proc/self/mem", "'/proc/self/mem' cannot be read as texts: Input/output"),
        ("surprise Fine. --compare no/such.onnx", "no/such.onnx"),
        ("differ --compare no/such --sentences 1", "no/such"),
        ("differ --compare embedded --dataset gone.txt", "gone.txt cannot be read as texts"),
        ("predict --file -", "standard input has no text"),
        ("runs show nothing", "unknown run 'nothing'; known: none"),
        ("runs export nothing", "unknown run 'nothing'; known: none"),
    ],
)
def test_what_cannot_be_had_is_told(fillmask, monkeypatch, command, message):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    result = fillmask(*shlex.split(command), stdin="\n \n")
    assert result.returncode == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
