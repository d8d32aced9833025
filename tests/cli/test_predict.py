"""`fillmask-ui predict` as its user calls it, alone and with a second model."""

import json
import math

import pytest

PARIS = "The capital of France is [MASK]."
TEXT = "The dog [MASK] at the [MASK]."


def test_several_texts_give_one_object_a_line_and_a_bad_one_costs_only_itself(fillmask):
    result = fillmask("predict", PARIS, "no mask here", "A [MASK] sang.", "--json")
    assert result.returncode == 2
    texts = [json.loads(line)["text"] for line in result.stdout.splitlines()]
    assert texts == [PARIS, "A [MASK] sang."]
    assert "text 2: the text has no mask" in result.stderr


def test_file_and_standard_input_agree(fillmask, tmp_path):
    lines = f"{PARIS}\n\nThe ___ sang 😀.\nשלום [MASK]\n"
    path = tmp_path / "texts.txt"
    path.write_text(lines, encoding="utf-8-sig")
    from_file = fillmask("predict", "--file", str(path), "--json")
    from_pipe = fillmask("predict", "--file", "-", "--json", stdin=lines)
    assert from_file.returncode == from_pipe.returncode == 0
    assert from_file.stdout == from_pipe.stdout
    texts = [json.loads(line)["text"] for line in from_pipe.stdout.splitlines()]
    assert texts == [PARIS, "The [MASK] sang 😀.", "שלום [MASK]"]
    broken = fillmask("predict", "--file", "-", "--json", stdin=b"fine [MASK]\n\xff\xfe [MASK]\n")
    assert broken.returncode == 1
    assert "line 2 of standard input is not UTF-8" in broken.stderr
    assert broken.json["text"] == "fine [MASK]"


def test_tables_show_texts_raw_and_losses_in_either_unit(fillmask):
    text = "[bold]A[/bold] [MASK] [red]sang"  # never read as markup
    nats = fillmask("predict", text, "--top-k", "1").stdout
    bits = fillmask("predict", text, "--top-k", "1", "--bits").stdout
    assert text in nats
    last = [float(out.split("NLL")[1].split("│")[-2]) for out in (nats, bits)]
    assert last[1] == pytest.approx(last[0] / math.log(2), abs=1e-3)


def test_the_earlier_spelling_means_what_it_meant_and_warns(fillmask):
    now = fillmask("predict", TEXT, "-m", "embedded:int8", "--baseline", "embedded", "--json")
    before = fillmask("predict", TEXT, "--compare", "embedded:int8", "--json")
    assert before.json == now.json
    assert "write --model embedded:int8 --baseline embedded" in before.stderr
    assert "warning" not in now.stderr
