"""`fillmask-ui check` against numpy and ONNX Runtime itself; `diagnose` as its user calls it."""

import shutil
from functools import partial

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from features.quantize.planted import part_at, plant
from onnx import helper, numpy_helper
from onnxruntime.quantization.qdq_loss_debug import compute_signal_to_quantization_noice_ratio
from quantized_forms import whole
from rich.console import Console
from tiny_models import SENTENCES

from fillmask_ui.evaluation import EvaluatedText, evaluate, summarize
from fillmask_ui.features.quantize.diagnosis_tables import setups
from fillmask_ui.features.quantize.file_check import LEVELS, Check, CheckedSetup
from fillmask_ui.features.quantize.leave_one_out import LeaveOneOut
from fillmask_ui.features.quantize.onnx_file import PLAIN, OnnxFile
from fillmask_ui.features.site.scripts import HERE
from fillmask_ui.models import load_model
from fillmask_ui.models.load import load_choice
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.models.onnx_devices import Device
from fillmask_ui.models.onnx_model import open_session
from fillmask_ui.onnx_tools.dynamic_int8 import dynamic_int8
from fillmask_ui.onnx_tools.graph_parts import find_parts

TEXTS = SENTENCES[:8]
NODE_PATH = str(HERE / "node_modules")  # npm ci --ignore-scripts --prefix fillmask_ui/features/site


@pytest.fixture(scope="module")
def bert(tiny_models, tmp_path_factory):
    """The ONNX file of a tiny BERT that is not trained."""
    folder = tmp_path_factory.mktemp("checked") / "m"
    shutil.copytree(tiny_models.folder("bert"), folder)
    (folder / "texts.txt").write_text("\n".join(TEXTS))
    return folder / "onnx" / "model.onnx"


@pytest.fixture
def checked(fillmask, bert):
    """`checked(path, option, ...)` on few texts, with sums of bytes as plain sessions have them."""
    texts = ("--dataset", bert.parents[1] / "texts.txt", "--no-shuffle")
    return partial(fillmask, "check", *texts, "--x64-quant-precision", "off")


def write(bert, name, change=lambda graph: None, **external):
    model, path = onnx.load(bert), bert.with_name(f"model_{name}.onnx")
    onnx.save(change(model) or model, path, **external)
    return path


def with_nan(model):
    bias = next(
        tensor for tensor in model.graph.initializer if "1.output.LayerNorm.bias" in tensor.name
    )
    bias.CopyFrom(numpy_helper.from_array(np.full(bias.dims, np.nan, np.float32), bias.name))


def with_mask(model):
    model.graph.initializer.append(numpy_helper.from_array(np.float32([-3.4e38]), "lowest"))
    model.graph.node.append(helper.make_node("Mul", ["lowest", "lowest"], ["mask"], name="Mul_1"))


def by_hand(path, rows, level):
    """Logits at the hidden positions of each row of an evaluation, by a plain session."""
    settings, logits_by_row = ort.SessionOptions(), []
    number = (0, 1, 2, 99)[LEVELS.index(level)]  # as the C API has it
    settings.graph_optimization_level = ort.GraphOptimizationLevel(number)
    session = ort.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
    for row in rows:
        ids = row.ids.copy()
        ids[row.cols] = row.shown_ids
        feeds = {"input_ids": ids, "attention_mask": ids**0, "token_type_ids": ids * 0}
        logits = session.run(["logits"], {name: values[None] for name, values in feeds.items()})[0]
        logits_by_row.append(logits[0, row.cols])
    return np.concatenate(logits_by_row)


def test_figures_are_those_of_numpy_and_of_onnx_runtime(checked, bert):
    small = write(bert, "small", dynamic_int8)
    printed = checked(small, "--baseline", bert, "--device", "cpu", "--json").json
    measured = list(evaluate(load_model(small, x64_quant_precision="off"), TEXTS))
    rows = [row for row in measured if isinstance(row, EvaluatedText)]
    base = by_hand(bert, rows, "all")
    assert printed["texts"] == len(rows) and printed["words"] == len(base)
    assert [row["level"] for row in printed["rows"]] == ["", *LEVELS, PLAIN]
    for row in printed["rows"][1:]:
        logits = by_hand(small, rows, "all" if row["level"] == PLAIN else row["level"])
        r, c = (each - each.mean(axis=1, keepdims=True) for each in (base, logits))
        expected = float(compute_signal_to_quantization_noice_ratio(r, c))
        assert row["sqnr_db"] == pytest.approx(expected, abs=1e-3) and 5 < expected < 60
        cosines = [np.corrcoef(*pair)[0, 1] for pair in zip(r, c, strict=True)]
        assert row["cosine"] == pytest.approx(np.mean(cosines), abs=1e-5)
        assert row["max_abs_logit_difference"] == pytest.approx(
            np.abs(base - logits).max(), abs=1e-4
        )
        flips = int((base.argmax(axis=1) != logits.argmax(axis=1)).sum())
        assert row["flips"] == flips and row["flip_share"] == flips / len(base)
        low, high = row["flip_share_interval_95"]
        assert low <= row["flip_share"] <= high and row["verdict"] == "NEAR_CHANCE"  # not trained
    mean = summarize(measured).model.mean_nll_nats
    assert printed["rows"][-1]["mean_nll_nats"] == pytest.approx(mean, abs=1e-6)


def test_the_baseline_is_exact_and_one_row_is_a_plain_session(checked, bert):
    """References: a session of ONNX Runtime at the level extended, and one without any option."""
    small = write(bert, "plain", dynamic_int8)
    printed = checked(small, "--device", "cpu", "--json").json
    assert printed["baseline"].endswith("on CPU at the level extended")
    assert [row["level"] for row in printed["rows"]] == ["extended", "none", "basic", "all", PLAIN]
    measured = list(evaluate(load_model(small, x64_quant_precision="off"), TEXTS))
    rows = [row for row in measured if isinstance(row, EvaluatedText)]
    base = by_hand(small, rows, "extended")
    for row in printed["rows"]:
        logits = by_hand(small, rows, "all" if row["level"] == PLAIN else row["level"])
        assert row["max_abs_logit_difference"] == pytest.approx(
            np.abs(base - logits).max(), abs=1e-4
        )
    assert "CPU, as plain ONNX Runtime" in checked(small, "--device", "cpu").stdout

    file = load_choice(ModelChoice(str(small), x64_quant_precision="on"), open_as=OnnxFile)
    plain, exact = (
        open_session(file._file, Device(), choice).get_session_options()
        for choice in (None, ModelChoice(str(small), x64_quant_precision="on"))
    )
    default = ort.SessionOptions()
    for name in ("graph_optimization_level", "intra_op_num_threads", "enable_mem_pattern"):
        assert getattr(plain, name) == getattr(default, name)
    entry = "session.x64quantprecision"
    assert exact.get_session_config_entry(entry) == "1"
    with pytest.raises(RuntimeError, match=entry):
        plain.get_session_config_entry(entry)


def test_a_trained_file_passes_and_a_damaged_one_is_near_chance(fillmask, damaged):
    arguments = ("--device", "CPU", "--fail-on", "inconclusive")
    well = fillmask("check", "embedded", "--samples", 60, *arguments, "--json")
    assert well.returncode == 0 and well.json["verdict"] == "PASS", well.stderr
    assert min(row["sqnr_db"] or 200 for row in well.json["rows"]) > 100
    assert not any(row["alarms"] for row in well.json["rows"])
    broken = fillmask("check", damaged, "--baseline", "embedded", "--samples", 12, *arguments)
    assert broken.returncode == 3 and broken.stdout.startswith("NEAR_CHANCE: ")
    assert "CPU, as plain ONNX Runtime: it is near chance: its mean NLL is" in broken.stdout


def test_eval_and_check_give_a_file_near_chance_one_verdict(fillmask, damaged):
    few = ("--samples", 8, "--fail-on", "regression")
    for command in (
        ("eval", "--model", damaged, "--baseline", damaged, *few, "--json"),
        ("check", damaged, "--baseline", damaged, "--device", "CPU", *few, "--json"),
    ):
        ran = fillmask(*command)
        assert ran.returncode == 3, ran.stderr
        assert ran.json["verdict"] == "NEAR_CHANCE"


def test_equal_logits_pass_and_few_texts_settle_nothing_else(fillmask):
    few = ("--samples", 8, "--device", "CPU", "--fail-on", "regression", "--json")
    ran = fillmask("check", "embedded", *few)
    assert ran.returncode == 0 and ran.json["verdict"] == "INCONCLUSIVE"
    equal, *different = ran.json["rows"]
    assert equal["sqnr_db"] is None and equal["verdict"] == "PASS"
    assert {row["verdict"] for row in different if row["sqnr_db"]} == {"INCONCLUSIVE"}


def test_a_share_of_few_words_has_an_interval_between_0_and_1(fillmask):
    command = ("check", "embedded:int8", "--samples", 10, "--device", "cpu")
    ran = fillmask(*command)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("INCONCLUSIVE") and "; more texts (--samples)" in ran.stdout
    for row in fillmask(*command, "--json").json["rows"]:
        low, high = row["flip_share_interval_95"]
        assert 0 <= low <= row["flip_share"] <= high <= 1


def test_nan_and_constants_are_named(checked, bert):
    result = checked(write(bert, "nan", with_nan), "--device", "CPU", "--fail-on", "regression")
    assert result.returncode == 3 and ": NaN or infinite logits" in result.stdout
    result = checked(write(bert, "masked", with_mask), "--device", "CPU")
    assert "Risky constant: lowest = -3.4e+38, read by Mul Mul_1: past half" in result.stdout


def test_web_assembly_reads_weights_beside_the_graph(checked, bert, monkeypatch):
    monkeypatch.setenv("NODE_PATH", NODE_PATH)
    beside = write(bert, "beside", save_as_external_data=True, location="w", size_threshold=0)
    printed = checked(beside, "--device", "WebAssembly", "--json").json
    assert [row["level"] for row in printed["rows"]] == ["extended", *LEVELS]
    assert all(row["sqnr_db"] > 80 and row["flips"] == 0 for row in printed["rows"][1:])
    assert "|onnxruntime-web:" in printed["signature"]


def test_what_is_not_here_is_told_with_its_remedy(checked, bert, tmp_path, monkeypatch):
    for remedy in ("npm install onnxruntime-web", "install Node.js"):
        result = checked(bert, "--device", "WebAssembly", "--onnxruntime-web", tmp_path)
        assert result.returncode == 0 and result.stdout.count("not measured: no") == 1
        assert remedy in result.stdout
        monkeypatch.setenv("PATH", str(tmp_path))


def test_slips_are_one_line(fillmask, bert, tiny_models, tmp_path):
    (broken := bert.with_name("broken.onnx")).write_bytes(b"no graph")
    (blank := tmp_path / "blank.txt").write_text("\n \n")
    for arguments, words in {
        (broken,): "cannot be read as ONNX",
        (tmp_path / "none.onnx",): "no such model",
        (tiny_models.without_onnx("bert"),): "fillmask-ui export",
        (bert, "--baseline", tiny_models.folder("roberta")): "have different tokenizers",
        (bert, "--dataset", blank): "text",
        (bert, "--samples", 0): "0",
        (bert, "--device", "Abacus"): "unknown device 'Abacus'; known: coreml, cpu, cuda",
        (bert, "--fail-on", "doubt"): "unknown verdict to fail on 'doubt'",
    }.items():
        result = fillmask("check", *arguments)
        errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
        assert result.returncode in (1, 2) and len(errors) == 1 and words in errors[0], (
            result.stderr
        )


@pytest.fixture(scope="module")
def broken(tiny_models, tmp_path_factory):
    """A tiny BERT with an int8 file that has a wrong scale; the arguments; the part's name."""
    home = tmp_path_factory.mktemp("broken")
    folder, texts = home / "bert", home / "texts.txt"
    ignored = shutil.ignore_patterns("*.safetensors")
    shutil.copytree(tiny_models.folder("bert"), folder, ignore=ignored)
    baseline = whole(folder / "onnx" / "model.onnx", folder)
    small = dynamic_int8(baseline)
    output = plant(small, "scale", 1, seed=4)
    onnx.save(small, folder / "onnx" / "model_int8.onnx")
    texts.write_text("\n".join(SENTENCES[:8]))
    arguments = ("--baseline", folder, "--dataset", texts)
    name = part_at(find_parts(baseline), output, "scale")
    return folder / "onnx" / "model_int8.onnx", arguments, name


def test_tables_and_json_name_the_part_and_apply_mends_it(fillmask, broken, tmp_path):
    small, texts, name = broken
    arguments, target = ["diagnose", small, *texts, "--most", "1"], tmp_path / "out" / "mixed.onnx"
    result = fillmask(*arguments, "--budget", "0%")
    assert result.returncode == 0, result.stderr
    for expected in (
        f"Stands out: {name}.",
        "Parts, worst first",
        "Layer by layer",
        "One part in full precision",
        "onnxruntime",
        "graph optimization all",
    ):
        assert expected in result.stdout
    assert f"1 of 1: {name} in full precision" in result.stderr
    printed = fillmask(*arguments, "--budget", "0%", "--json", "--apply", target)
    diagnosis = printed.json
    assert diagnosis["parts"][0]["name"] == name and diagnosis["complete"]
    assert (
        diagnosis["parts"][0]["sticks_out"] and diagnosis["parts"][0]["restored"]["recovered_nats"]
    )
    assert diagnosis["stamp"]["cpu_features"]
    if [step["name"] for step in diagnosis["greedy"]["steps"]] == [name]:
        assert printed.returncode == 0 and "mixed.onnx (" in printed.stderr
        again = fillmask("diagnose", target, *texts, "--most", 0)
        assert "Stands out" not in again.stdout and again.returncode == 0
    else:
        assert printed.returncode == 1 and not target.exists()


def test_an_interruption_prints_what_is_known(fillmask, broken, monkeypatch):
    small, texts, name = broken

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(LeaveOneOut, "measure", stop)
    result = fillmask("diagnose", small, *texts)
    assert result.returncode == 130
    assert f"Stands out: {name}." in result.stdout
    assert "interrupted" in result.stderr


def test_the_table_breaks_no_word_at_80_columns(capsys):
    figures = {"sqnr_db": 24.1, "flips": 16, "flip_share": 0.0635, "mean_nll_nats": 2.8027}
    interval = {"flip_share_interval_95": (0.034, 0.0958)}
    levels = (*LEVELS, PLAIN)
    rows = [
        CheckedSetup("CPUExecutionProvider", level, "INCONCLUSIVE", **figures, **interval)
        for level in levels
    ]
    check = Check("a.onnx", "embedded", 39, 252, "", (), tuple(rows))
    Console(width=80, force_terminal=False).print(setups(check).to_rich())
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert (text.count("INCONCLUSIVE"), text.count("3.4% to 9.6%")) == (len(levels), len(levels))
    assert text.count("extended") == 1 and "ONNX Runtime" in text
