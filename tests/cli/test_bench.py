"""`bench` from the shell, on a tiny model in two ways."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fillmask_ui.bench import contender_process, contenders, rounds

KEYS = {"work", "subject", "median", "unit", "spread", "loss", "ratios"}
ROOT = Path(__file__).parent.parent.parent


def test_json_of_two_models(fillmask, tiny_models, tmp_path, monkeypatch):
    short = replace(contenders.QUICK, rounds=2, calls=4, seconds=0.2)
    monkeypatch.setattr(contenders, "QUICK", short)
    monkeypatch.setattr(rounds, "SHAPES", ((64, 64, 64), (64, 64, 128)))
    texts = tmp_path / "texts.txt"
    texts.write_text("The cat sat on the mat.\n\nThe river runs under the old house.\n" * 8)
    folder = tiny_models.folder("bert")
    names = [str(folder), str(folder / "onnx" / "model.onnx")]
    plot = tmp_path / "bench.html"
    done = fillmask(
        *("bench", "--quick", "--model", names[0], "-m", names[1], "--file", texts),
        *("--plot", plot, "--json"),
    )
    assert done.returncode == 0, done.stderr
    assert set(done.json) == {"machine", "rows"}
    machine = done.json["machine"]
    assert set(machine) == {"cpu", "cores", "features", "system", "python", "versions", "gflops"}
    rows = {(row["work"], row["subject"]): row for row in done.json["rows"]}
    for (work, subject), row in rows.items():
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
    products = [row["median"] for row in rows.values() if row["unit"] == "GFLOP/s"]
    assert machine["gflops"] == max(products)
    assert "cross-entropy" in plot.read_text()
    text = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    own = text[text.index("\n## `fillmask-ui bench`") :].split("\n## ")[1]
    assert not [key for key in {*machine, *KEYS, "p95", "p99"} if f'"{key}"' not in own]


def broken(subject, at_load, monkeypatch):
    """The process of one subject ends with an error, at once or when it is to measure."""

    class Broken(contender_process.ContenderProcess):
        def ask(self, task, **arguments):
            ends = self.name.endswith(subject) and (at_load or task != "load")
            return super().ask("nonsense" if ends else task, **arguments)

    monkeypatch.setattr(rounds, "ContenderProcess", Broken)


def bench_of_broken(fillmask, tiny_models, tmp_path, monkeypatch, at_load, *more):
    short = replace(contenders.QUICK, rounds=1, calls=2, seconds=0.1)
    monkeypatch.setattr(contenders, "QUICK", short)
    monkeypatch.setattr(rounds, "SHAPES", ((64, 64, 64),))
    broken("model.onnx", at_load, monkeypatch)
    texts = tmp_path / "texts.txt"
    texts.write_text("The cat sat on the mat.\nThe river runs under the old house.\n" * 4)
    model = tiny_models.folder("bert") / "onnx" / "model.onnx"
    return fillmask("bench", "--quick", "-m", model, *more, "--file", texts, "--json")


@pytest.mark.parametrize("at_load", [False, True])
def test_a_contender_that_fails_is_a_row_and_the_others_are_measured(
    fillmask, tiny_models, tmp_path, monkeypatch, at_load
):
    folder = tiny_models.folder("bert")
    done = bench_of_broken(fillmask, tiny_models, tmp_path, monkeypatch, at_load, "-m", folder)
    assert done.returncode == 0, done.stderr
    rows = {}
    for row in done.json["rows"]:
        rows.setdefault(row["subject"], {})[row["work"]] = row
    works = {"cross-entropy", "pseudo-perplexity", "one sentence of 8 tokens"}
    failed = rows[f"{folder}/onnx/model.onnx"]
    assert (failed["load time"]["median"] is None) == at_load
    assert "peak memory" not in failed
    for work in works:
        assert "ended with code 1" in failed[work]["error"]
        assert "no attribute 'nonsense'" in failed[work]["error"]
        assert failed[work]["median"] is None
        own = rows[str(folder)][work]
        assert own["median"] > 0
        assert "error" not in own


@pytest.mark.parametrize("at_load", [False, True])
def test_if_all_fail_the_command_does(fillmask, tiny_models, tmp_path, monkeypatch, at_load):
    done = bench_of_broken(fillmask, tiny_models, tmp_path, monkeypatch, at_load)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no attribute 'nonsense'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--model", "no/such/model/here"], 1, "no such model"),
        (["--model", "embedded:int3"], 2, "unknown variant"),
        (["--file", "missing.txt"], 1, "missing.txt"),
        (["--json", "--markdown"], 2, "choose one"),
        (["--plot", "no-such-folder/x.html"], 2, "no folder 'no-such-folder'"),
        (["--samples", "0"], 2, "samples"),
    ],
)
def test_wrong_input(fillmask, tmp_path, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    done = fillmask("bench", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr


def test_an_empty_file(fillmask, tmp_path):
    (tmp_path / "empty.txt").touch()
    done = fillmask("bench", "--file", tmp_path / "empty.txt")
    assert done.returncode == 1
    assert "has no texts" in done.stderr


def test_peers_without_torch(fillmask, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    done = fillmask("bench", "--peers")
    assert done.returncode == 2
    assert "pip install 'fillmask-ui[torch]'" in done.stderr
