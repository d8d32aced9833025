"""`fillmask-ui unmask` as its user calls it."""

from fillmask_ui.unmasking import read_history

TEXT = "[MASK] [MASK] [MASK] on the [MASK]."


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
