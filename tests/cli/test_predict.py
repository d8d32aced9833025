"""The command line as its user calls it: real arguments, real exit codes."""

import json
import math
import subprocess
import sys

import pytest

PARIS = "The capital of France is [MASK]."


def in_a_shell(command, stdin):
    return subprocess.run(
        ["bash", "-c", command.format(fillmask=f"{sys.executable} -m fillmask_ui")],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=120,
    )


def test_json_has_the_documented_shape(fillmask):
    result = fillmask("predict", PARIS, "--json", "--top-k", "3", "--candidates", "paris,souvenirs")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert set(found) == {"text", "model", "signature", "masks", "joint"}
    (mask,) = found["masks"]
    assert set(mask) == {"position", "entropy_nats", "candidates", "scored"}
    assert [c["rank"] for c in mask["candidates"]] == [1, 2, 3]
    for candidate in mask["candidates"]:
        assert set(candidate) == {
            "rank",
            "token_id",
            "token",
            "word",
            "probability",
            "nll_nats",
        }
        assert math.exp(-candidate["nll_nats"]) == pytest.approx(candidate["probability"])
    paris, souvenirs = mask["scored"]
    assert paris["word"] == "paris"
    assert paris["rank"] >= 1
    assert souvenirs["nll_nats"] == pytest.approx(sum(p["nll_nats"] for p in souvenirs["parts"]))


def test_several_texts_give_one_object_a_line_and_a_bad_one_costs_only_itself(fillmask):
    result = fillmask("predict", PARIS, "no mask here", "A [MASK] sang.", "--json")
    assert result.returncode == 2
    assert [json.loads(line)["text"] for line in result.stdout.splitlines()] == [
        PARIS,
        "A [MASK] sang.",
    ]
    assert "text 2: the text has no mask" in result.stderr


def test_file_and_standard_input_agree(fillmask, tmp_path):
    lines = f"{PARIS}\n\nThe ___ sang.\n"
    path = tmp_path / "texts.txt"
    path.write_text(lines, encoding="utf-8-sig")
    from_file = fillmask("predict", "--file", str(path), "--json")
    from_pipe = fillmask("predict", "--file", "-", "--json", stdin=lines)
    assert from_file.returncode == from_pipe.returncode == 0
    assert from_file.stdout == from_pipe.stdout
    assert len(from_file.stdout.splitlines()) == 2


def test_text_is_never_markup(fillmask):
    text = "[bold]A[/bold] [MASK] [red]sang"
    result = fillmask("predict", text)
    assert result.returncode == 0, result.stderr
    assert text in result.stdout


def test_bits_are_nats_over_ln_2(fillmask):
    nats = fillmask("predict", PARIS, "--top-k", "1").stdout
    bits = fillmask("predict", PARIS, "--top-k", "1", "--bits").stdout
    last = [float(out.split("NLL")[1].split("│")[-2]) for out in (nats, bits)]
    assert last[1] == pytest.approx(last[0] / math.log(2), abs=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        ([], "no text was given", 2),
        ([""], "the text is empty", 2),
        (["   "], "the text is empty", 2),
        (["no mask"], "the text has no mask", 2),
        (["[MASK] " * 600], "takes at most 512", 2),
        (["word " * 20_000 + "[MASK]"], "nothing was cut", 2),
        ([PARIS, "-k", "0"], "give a number from 1 to 100, or 'all'", 2),
        ([PARIS, "-k", "-1"], "give a number from 1 to 100, or 'all'", 2),
        ([PARIS, "-k", "1000000000"], "1000000000", 2),
        ([PARIS, "-k", "many"], "'many'", 2),
        ([PARIS, "--candidates", " , "], "has no word", 2),
        ([PARIS, "--candidates", "\u200b"], "has no tokens", 2),
        ([PARIS, "--candidates", "[MASK]"], "is itself a mask", 2),
        ([PARIS, "--model", "no/such/folder"], "no/such/folder", None),
        ([PARIS, "--model", "missing.onnx"], "missing.onnx", None),
        ([PARIS, "--provider", "AbacusExecutionProvider"], "CPUExecutionProvider", 2),
        ([PARIS, "--runtime", "abacus"], "unknown runtime 'abacus'", 2),
        (["--file", "no-such-file.txt"], "no file 'no-such-file.txt'", 2),
        (["--file", PARIS * 20], "no file 'The capital", 2),
        ([PARIS, "--nonsense"], "--nonsense", 2),
    ],
)
def test_wrong_input_gets_a_message_and_a_code(fillmask, arguments, message, code):
    result = fillmask("predict", *arguments)
    assert result.returncode == code if code else result.returncode in (1, 2)
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_bytes_that_are_no_text(fillmask):
    result = fillmask("predict", "--file", "-", "--json", stdin=b"fine [MASK]\n\xff\xfe [MASK]\n")
    assert result.returncode == 1
    assert "line 2 of standard input is not UTF-8" in result.stderr
    assert json.loads(result.stdout)["text"] == "fine [MASK]"


def test_a_file_that_cannot_be_read(fillmask):
    # Of a file that is there and opens, but whose first page is not mapped.
    result = fillmask("predict", "--file", "/proc/self/mem")
    assert result.returncode == 1
    assert "'/proc/self/mem' cannot be read as texts: Input/output error" in result.stderr


def test_an_empty_file(fillmask):
    result = fillmask("predict", "--file", "-", stdin="\n \n")
    assert result.returncode == 1
    assert "standard input has no text" in result.stderr


@pytest.mark.parametrize("text", ["😀 [MASK] 😀", "שלום [MASK] עולם"])
def test_unusual_text_is_answered(fillmask, text):
    result = fillmask("predict", "--file", "-", "--json", stdin=text)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["text"] == text


def test_models_lists_the_embedded_ones(fillmask):
    result = fillmask("models", "--json")
    assert result.returncode == 0, result.stderr
    references = [json.loads(line)["reference"] for line in result.stdout.splitlines()]
    assert {"embedded", "embedded:int8"} <= set(references)
    assert "embedded:int8" in fillmask("models").stdout


def test_a_lone_surrogate_from_the_shell():
    result = in_a_shell("{fillmask} predict $'broken \\xff [MASK]'", b"")
    assert result.returncode == 2
    assert b"Traceback" not in result.stderr
    assert b"surrogate" in result.stderr


def test_a_reader_that_leaves_early_is_no_error():
    # One text with all words is more than a pipe holds.
    result = in_a_shell(
        "set -o pipefail; {fillmask} predict --file - --json --top-k all | head -c 100",
        (PARIS + "\n").encode() * 2,
    )
    assert result.returncode == 0
    assert result.stdout.startswith(b'{"text"')
    assert result.stderr == b""
