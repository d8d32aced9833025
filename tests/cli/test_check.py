"""`fillmask-ui check`: figures against numpy and ONNX Runtime's own, alarms, WebAssembly, slips."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper
from onnxruntime.quantization.qdq_loss_debug import compute_signal_to_quantization_noice_ratio
from tiny_models import SENTENCES

from fillmask_ui.evaluation import EvaluatedText, evaluate, summarize
from fillmask_ui.models import load_model
from fillmask_ui.onnx_tools.dynamic_int8 import dynamic_int8
from fillmask_ui.onnx_tools.risky_constants import risky_constants

TEXTS = SENTENCES[:8]
WEB = Path(__file__).parents[1] / "web"
NODE_PATH = os.environ.get("NODE_PATH") or str(WEB / "node_modules")
HAS_WEB = shutil.which("node") and any(
    Path(folder, "onnxruntime-web").is_dir() for folder in NODE_PATH.split(os.pathsep)
)
LEVELS = ("none", "basic", "extended", "all")


@dataclass(frozen=True)
class Home:
    """A tiny BERT that is not trained, and files that are made of it."""

    full: Path  # the graph
    options: tuple[object, ...]  # few texts, and sums of bytes as plain sessions have them

    def write(self, name, change=lambda graph: None, **external):
        model = onnx.load(self.full)
        path = self.full.with_name(f"model_{name}.onnx")
        onnx.save(change(model) or model, path, **external)
        return path


@pytest.fixture(scope="module")
def home(tiny_models, tmp_path_factory):
    folder = tmp_path_factory.mktemp("checked")
    shutil.copytree(tiny_models.folder("bert"), folder / "m")
    (folder / "texts.txt").write_text("\n".join(TEXTS))
    options = ("--dataset", folder / "texts.txt", "--no-shuffle", "--x64-quant-precision", "off")
    return Home(folder / "m" / "onnx" / "model.onnx", options)


def with_nan(model):
    for tensor in model.graph.initializer:
        if "layer.1.output.LayerNorm.bias" in tensor.name:
            values = np.full(tensor.dims, np.nan, np.float32)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def with_mask(model):
    """The usual constant of masks, without effect in float32."""
    graph = model.graph
    for name, value in (("lowest", -3.4e38), ("zero", 0)):
        graph.initializer.append(numpy_helper.from_array(np.float32([value]), name))
    last = next(node for node in graph.node if "logits" in node.output)
    last.output[:] = ["before"]
    graph.node.append(helper.make_node("Mul", ["lowest", "zero"], ["none"], name="mask/Mul"))
    graph.node.append(helper.make_node("Add", ["before", "none"], ["logits"]))


def by_hand(path, rows, level):
    """Logits at the hidden positions of each row of an evaluation, by a plain session."""
    settings = ort.SessionOptions()
    name = "DISABLE_ALL" if level == "none" else f"ENABLE_{level.upper()}"
    settings.graph_optimization_level = getattr(ort.GraphOptimizationLevel, f"ORT_{name}")
    session = ort.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
    found = []
    for row in rows:
        ids = row.ids.copy()
        ids[row.cols] = row.shown_ids
        given = {"attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        feeds = {one.name: given.get(one.name, ids)[None] for one in session.get_inputs()}
        found.append(session.run(["logits"], feeds)[0][0, row.cols])
    return np.concatenate(found)


def test_figures_are_those_of_numpy_and_of_onnx_runtime(fillmask, home):
    small = home.write("small", dynamic_int8)
    known = fillmask(
        "check", small, "--baseline", home.full, "--provider", "CPU", "--json", *home.options
    ).json
    measured = list(evaluate(load_model(small, x64_quant_precision="off"), TEXTS))
    rows = [row for row in measured if isinstance(row, EvaluatedText)]
    base = by_hand(home.full, rows, "all")
    assert known["texts"] == len(rows) and known["words"] == len(base)
    assert known["rows"][0]["sqnr_db"] is None and known["rows"][0]["flips"] == 0
    assert [row["level"] for row in known["rows"]] == ["", *LEVELS]
    for row in known["rows"][1:]:
        own = by_hand(small, rows, row["level"])
        centred, other = (each - each.mean(axis=1, keepdims=True) for each in (base, own))
        wanted = compute_signal_to_quantization_noice_ratio(centred, other)
        assert row["sqnr_db"] == pytest.approx(float(wanted), abs=1e-3)
        pairs = zip(centred, other, strict=True)
        cosines = [np.corrcoef(first, second)[0, 1] for first, second in pairs]
        assert row["cosine"] == pytest.approx(np.mean(cosines), abs=1e-5)
        assert row["max_abs_logit_difference"] == pytest.approx(np.abs(base - own).max(), abs=1e-4)
        flips = int((base.argmax(axis=1) != own.argmax(axis=1)).sum())
        assert row["flips"] == flips and row["flip_share"] == flips / len(base)
        low, high = row["flip_share_interval_95"]
        assert low <= row["flip_share"] <= high
        assert 5 < row["sqnr_db"] < 60 and row["verdict"] == "REGRESSION"  # it is not trained
    mean = summarize(measured).model.mean_nll_nats
    assert known["rows"][-1]["mean_nll_nats"] == pytest.approx(mean, abs=1e-6)


def test_a_trained_file_passes_and_a_damaged_one_is_near_chance(fillmask, damaged):
    arguments = ("--provider", "CPU", "--samples", 8, "--fail-on", "inconclusive")
    well = fillmask("check", "embedded", *arguments, "--json")
    assert well.returncode == 0 and well.json["verdict"] == "PASS", well.stderr
    assert well.json["conclusion"].startswith("PASS: ")
    assert min(row["sqnr_db"] or 200 for row in well.json["rows"]) > 100
    assert not any(row["alarms"] for row in well.json["rows"])
    broken = fillmask("check", damaged, "--baseline", "embedded", *arguments)
    assert broken.returncode == 3 and broken.stdout.startswith("REGRESSION: ")
    assert "CPU, all: the file is near chance: its mean NLL is" in broken.stdout


def test_nan_and_constants_are_named(fillmask, home):
    sick = home.write("nan", with_nan)
    result = fillmask("check", sick, "--provider", "CPU", "--fail-on", "regression", *home.options)
    assert result.returncode == 3
    assert result.stdout.startswith("REGRESSION: ") and "NaN or infinite logits" in result.stdout
    masked = home.write("masked", with_mask)
    result = fillmask("check", masked, "--provider", "CPU", *home.options)
    assert "Risky constant: lowest = -3.4e+38, read by Mul mask/Mul: infinite in" in result.stdout
    assert not any("lowest" in own for own in risky_constants(onnx.load(home.full)))


@pytest.mark.skipif(not HAS_WEB, reason="no onnxruntime-web: npm ci --prefix tests/web")
def test_web_assembly_reads_weights_beside_the_graph(fillmask, home, monkeypatch):
    monkeypatch.setenv("NODE_PATH", NODE_PATH)
    beside = home.write("beside", save_as_external_data=True, location="w", size_threshold=0)
    known = fillmask("check", beside, "--provider", "WebAssembly", "--json", *home.options).json
    web = [row for row in known["rows"] if row["provider"] == "WebAssembly"]
    assert [row["level"] for row in web] == list(LEVELS) and "|onnxruntime-web:" in known[
        "signature"
    ]
    assert all(row["sqnr_db"] > 80 and row["flips"] == 0 for row in web), web


def test_what_is_not_here_is_told_with_its_remedy(fillmask, home, tmp_path, monkeypatch):
    call = ("check", home.full, "--provider", "WebAssembly", *home.options)
    for remedy in ("npm install onnxruntime-web", "install Node.js"):
        result = fillmask(*call, "--onnxruntime-web", tmp_path)
        assert result.returncode == 0 and result.stdout.count("not measured: no") == 1
        assert remedy in result.stdout
        monkeypatch.setenv("PATH", str(tmp_path))


def test_slips_are_one_line(fillmask, home, tiny_models, tmp_path):
    broken = home.full.with_name("broken.onnx")
    broken.write_bytes(b"no graph")
    (tmp_path / "blank.txt").write_text("\n \n")
    tiny, other = tiny_models.without_onnx("bert"), tiny_models.folder("roberta")
    slips = {
        (broken,): "cannot be read as ONNX",
        (tmp_path / "none.onnx",): "no such model",
        (tiny,): "fillmask-ui export",
        (home.full, "--baseline", other): "have different tokenizers",
        (home.full, "--dataset", tmp_path / "blank.txt"): "text",
        (home.full, "--provider", "Abacus"): "unknown provider 'Abacus'",
        (home.full, "--fail-on", "doubt"): "unknown verdict to fail on 'doubt'",
    }
    for arguments, words in slips.items():
        result = fillmask("check", *arguments)
        told = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
        assert result.returncode in (1, 2) and len(told) == 1 and words in told[0], result.stderr
