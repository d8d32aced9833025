"""`fillmask-ui sweep` as its user calls it, over the embedded models."""

from contextlib import closing

import pytest

from fillmask_ui.features.sweep import command
from fillmask_ui.features.sweep.sweep_perform import perform_sweep

SWEEP = """
baseline = "embedded"
[[models]]
model = "embedded"
[[models]]
model = "embedded:int8"
label = "int8"
[[data]]
dataset = "embedded"
samples = 12
[[metrics]]
metric = "pseudo-perplexity"
max-tokens = 16
batch-tokens = 128
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SWEEP)
    return path


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(fillmask, file, monkeypatch):
    def interrupted(*arguments):
        steps = perform_sweep(*arguments)
        with closing(steps):
            for step in steps:
                yield step
                if step.state == "measuring" and step.progress.rows:
                    raise KeyboardInterrupt

    monkeypatch.setattr(command, "perform_sweep", interrupted)
    stopped = fillmask("sweep", file)
    assert stopped.returncode == 130
    said = f"stopped; what was measured is kept, go on with: fillmask-ui sweep {file}"
    assert said in stopped.stderr
    shown = fillmask("sweep", file, "--table-only", "--json")
    assert shown.returncode == 0
    assert {"stopped", "missing"} <= {cell["state"] for cell in shown.json["cells"]}
    assert not fillmask("sweep", file, "--table-only").stderr


def test_the_verdict_decides_the_exit_code(fillmask, file, damaged):
    for name, code in (("regression", 0), ("inconclusive", 3)):
        result = fillmask("sweep", file, "--fail-on", name, "--json")
        verdicts = {cell["verdict"] for cell in result.json["cells"]}
        assert "REGRESSION" not in verdicts
        expected = code if verdicts & {"INCONCLUSIVE", "AT_RISK"} else 0
        assert result.returncode == expected
    file.write_text(file.read_text().replace("embedded:int8", str(damaged)))
    result = fillmask("sweep", file, "--fail-on", "regression", "--json")
    assert "NEAR_CHANCE" in {cell["verdict"] for cell in result.json["cells"]}
    assert result.returncode == 3
    assert ": NEAR_CHANCE (--fail-on regression)" in result.stderr
