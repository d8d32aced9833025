"""`fillmask-ui unmask` as its user calls it."""

import json
import math

import pytest

from fillmask_ui import UnmaskingConfig, load_model
from fillmask_ui.unmasking import finish, read_history

TEXT = "[MASK] [MASK] [MASK] on the [MASK]."


def test_json_is_what_python_says(fillmask):
    options = ("--order", "entropy", "--temperature", "0.8", "--top-k", "9", "--seed", "5")
    result = fillmask("unmask", TEXT, *options, "--json")
    assert result.returncode == 0, result.stderr
    config = UnmaskingConfig(order="entropy", temperature=0.8, top_k=9, seed=5)
    assert result.json == json.loads(json.dumps(finish(load_model(), TEXT, config).to_dict()))
    found = result.json
    assert [*found] == [
        *("text", "ids", "steps", "steps_taken", "log_probability_nats"),
        *("pseudo_perplexity", "start", "signature"),
    ]
    parts = [math.log(token["probability"]) for step in found["steps"] for token in step["filled"]]
    assert found["log_probability_nats"] == pytest.approx(sum(parts), abs=1e-9)
    own = [step["log_probability_nats"] for step in found["steps"]]
    assert found["log_probability_nats"] == pytest.approx(sum(own), abs=1e-9)
    assert found["start"] == 1


def test_a_prompt_keeps_its_beginning_and_its_end(fillmask):
    prompt = ("--prefix", "The old man", "--suffix", "home.", "--new-tokens", "3")
    text = fillmask("unmask", *prompt, "--json").json["text"]
    assert text.startswith("The old man ")
    assert text.endswith(" home.")
    assert len(fillmask("unmask", "--length", "4", "--json").json["ids"]) == 6


def test_steps_and_history_are_kept(fillmask, tmp_path):
    path = tmp_path / "h.jsonl"
    result = fillmask("unmask", TEXT, "--steps", "--history", path)
    kept = read_history(path.read_text(encoding="utf-8").splitlines())
    assert kept.text in result.stdout
    figures = f"{kept.steps_taken} steps; log-probability {kept.log_probability_nats:.3f} nats"
    assert figures in result.stdout


def test_one_bad_line_of_a_file_costs_the_others_nothing(fillmask, tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("The [MASK] sat.\nno mask\nA [MASK] [MASK].\n", encoding="utf-8")
    result = fillmask("unmask", "--file", file, "--json")
    assert result.returncode == 2
    assert len(result.stdout.splitlines()) == 2
    assert "text 2: the text has no mask" in result.stderr
