"""`bench` from the shell, on a tiny model in two ways."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fillmask_ui.bench import contender_process, contenders, rounds

KEYS = {"work", "subject", "median", "unit", "spread", "loss", "ratios"}
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def short(tmp_path, monkeypatch):
    """Options of a benchmark of seconds; early.onnx fails in loading, late.onnx in measuring."""

    class Process(contender_process.ContenderProcess):
        def ask(self, task, **arguments):
            ends = self.name.endswith("early.onnx")
            ends |= self.name.endswith("late.onnx") and task != "load"
            return super().ask("nonsense" if ends else task, **arguments)

    quick = replace(contenders.QUICK, rounds=2, calls=4, seconds=0.2)
    monkeypatch.setattr(contenders, "QUICK", quick)
    monkeypatch.setattr(rounds, "ContenderProcess", Process)
    monkeypatch.setattr(rounds, "SHAPES", ((64, 64, 64), (64, 64, 128)))
    texts = tmp_path / "texts.txt"
    texts.write_text("The cat sat on the mat.\n\nThe river runs under the old house.\n" * 8)
    return ["--quick", "--file", texts, "--json"]


def test_json_of_two_models_and_of_two_that_fail(fillmask, tiny_models, tmp_path, short):
    folder, plot = tmp_path / "bert", tmp_path / "bench.html"
    shutil.copytree(tiny_models.folder("bert"), folder)
    home = folder / "onnx"
    for broken in ("early.onnx", "late.onnx"):
        shutil.copy(home / "model.onnx", home / broken)
    models = [folder, *(home / name for name in ("model.onnx", "early.onnx", "late.onnx"))]
    names = [str(model) for model in models[:2]]
    done = fillmask("bench", *short, *(f"--model={model}" for model in models), "--plot", plot)
    assert done.returncode == 0, done.stderr
    assert set(done.json) == {"machine", "rows"}
    machine = done.json["machine"]
    assert set(machine) == {"cpu", "cores", "features", "system", "python", "versions", "gflops"}
    rows = {(row["work"], row["subject"]): row for row in done.json["rows"]}
    for (work, subject), row in rows.items():
        if "error" in row:
            continue
        assert set(row) == KEYS | ({"p95", "p99"} if row["unit"] == "ms" else set())
        assert row["median"] > 0
        for other, ratio in row["ratios"].items():
            assert ratio * rows[work, other]["ratios"][subject] == pytest.approx(1)
    measured = {work for work, subject in rows if subject == names[0]}
    # The tiny model takes 64 tokens.
    assert measured == {
        *("cross-entropy", "share of the matrix-product rate, cross-entropy", "pseudo-perplexity"),
        *("one sentence of 8 tokens", "one sentence of 32 tokens", "load time", "peak memory"),
    }
    for work in ("cross-entropy", "pseudo-perplexity", "one sentence of 8 tokens"):
        losses = [rows[work, name]["loss"] for name in names]
        assert losses[0] == pytest.approx(losses[1], abs=1e-9)
        for broken in map(str, models[2:]):
            failed = rows[work, broken]
            assert failed["median"] is None
            assert "no attribute 'nonsense'" in failed["error"]
            assert ("peak memory", broken) not in rows
    loads = [rows["load time", str(model)]["median"] is None for model in models]
    assert loads == [False, False, True, False]
    products = [row["median"] for row in rows.values() if row["unit"] == "GFLOP/s"]
    assert machine["gflops"] == max(products)
    assert "cross-entropy" in plot.read_text()
    text = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    own = text[text.index("\n## `fillmask-ui bench`") :].split("\n## ")[1]
    assert not [key for key in {*machine, *KEYS, "p95", "p99"} if f'"{key}"' not in own]


def test_if_all_fail_the_command_does(fillmask, tiny_models, tmp_path, short):
    folder = shutil.copytree(tiny_models.folder("bert"), tmp_path / "bert")
    (folder / "onnx" / "model.onnx").rename(folder / "onnx" / "early.onnx")
    done = fillmask("bench", *short, "--model", folder / "onnx" / "early.onnx")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no attribute 'nonsense'" in done.stderr
