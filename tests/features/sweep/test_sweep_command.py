"""`fillmask-ui sweep` as its user calls it, over the embedded models."""

import csv

import pytest

from fillmask_ui.features.sweep import sweep as sweeps

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


def test_ctrl_c_keeps_what_is_done(fillmask, file, monkeypatch, tmp_path):
    measure = sweeps.measure_cell

    def interrupted(*arguments):
        for progress in measure(*arguments):
            yield progress
            if progress.rows:
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sweeps, "measure_cell", interrupted)
        assert fillmask("sweep", file).returncode == 130
    listed = fillmask("sweep", file, "--table-only", "--json")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert [cell["state"] for cell in listed.json["cells"]] == ["stopped", "missing"]
    done = fillmask("sweep", file, "--csv", tmp_path / "cells.csv", "--html", tmp_path / "p.html")
    assert done.returncode == 0
    assert done.stderr.count(": run ") == 2
    cells = fillmask("sweep", file, "--json").json["cells"]
    with (tmp_path / "cells.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert [float(row["value"]) for row in rows] == [cell["value"] for cell in cells]
    for cell in cells:
        assert f"{cell['value']:.4f}" in done.stdout
        assert f"{cell['value']:.4f}" in (tmp_path / "p.html").read_text()


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


def test_a_table_replaces_none_of_the_texts(fillmask, tmp_path):
    texts = tmp_path / "texts.csv"
    texts.write_text("text\nThe cat sat on the mat.\n")
    path = tmp_path / "mine.toml"
    data = f'[[data]]\ndataset = "{texts}"\n'
    path.write_text(f'[[models]]\nmodel = "embedded"\n{data}[[metrics]]\nmetric = "uniform"\n')
    refused = fillmask("sweep", path, "--csv", texts)
    assert (refused.returncode, "was named twice" in refused.stderr) == (2, True)
    assert texts.read_text() == "text\nThe cat sat on the mat.\n"
