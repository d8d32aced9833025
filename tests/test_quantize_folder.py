"""Variants in their folder: layout, card, what is refused, and that nothing half-written stays."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
import yaml
from quantized_forms import exact_settings
from tiny_models import batch_of

from fillmask_ui.errors import DataError, ModelError, OptionError
from fillmask_ui.models import ModelChoice, load_model
from fillmask_ui.quantizing import float32_source, hub_folder, make_variants
from fillmask_ui.quantizing.make_variants import Variant, export, quantize
from fillmask_ui.texts import TextSource


def variants(steps):
    return [step for step in steps if isinstance(step, Variant)]


def files(path):
    return sorted(one.relative_to(path).as_posix() for one in path.rglob("*") if one.is_file())


@pytest.fixture(scope="module")
def bert(tiny_models):
    return ModelChoice(str(tiny_models.folder("bert")))


@pytest.fixture(scope="module")
def home(bert, tmp_path_factory):
    """A folder with two variants."""
    path = tmp_path_factory.mktemp("made") / "new" / "variants"
    assert [v.scheme for v in variants(quantize(bert, path, ["int8", "qdq"]))] == ["int8", "qdq"]
    return path


def test_the_layout_is_the_hubs(home):
    beside = ["README.md", "config.json", "fillmask-ui.json"]
    onnx = ["onnx/model_int8.onnx", "onnx/model_qdq.onnx"]
    tokenizer = ["tokenizer.json", "tokenizer_config.json"]
    assert files(home) == [*beside, *onnx, *tokenizer]


def test_all_names_load_and_the_folder_is_the_variant_nearest_to_full_precision(home):
    loaded = [load_model(own) for own in (home, home / "onnx" / "model_int8.onnx")]
    assert len({model.signature.sha256 for model in loaded}) == 1
    assert load_model(home / "onnx" / "model_qdq.onnx").signature.precision == "int8"


def test_a_result_is_what_a_plain_session_computes(home):
    model = load_model(home / "onnx" / "model_qdq.onnx")
    batch = batch_of(model.vocabulary, ["The cat sat on the [MASK]."])
    session = ort.InferenceSession(home / "onnx" / "model_qdq.onnx", exact_settings())
    given = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
    given["token_type_ids"] = np.zeros_like(batch.input_ids)
    wanted = session.run(["logits"], given)[0][batch.rows, batch.cols]
    assert np.allclose(model.logits_at(*batch), wanted, atol=1e-3 * np.abs(wanted).max())


def test_the_card_says_how_it_was_made(home, bert):
    card = (home / "README.md").read_text("utf-8")
    header = yaml.safe_load(card.split("---")[1])
    assert header["pipeline_tag"] == "fill-mask"
    model = load_model(bert.reference)
    for wanted in (
        model.signature.sha256,
        "## onnx/model_int8.onnx",
        "quantize_static",
        "texts:embedded|samples:all|shuffle:42|behind:200",
        f"onnxruntime {ort.__version__}",
        "graph optimization all",
        f"`fillmask-ui quantize bert -o {home.name} --scheme qdq`",
    ):
        assert wanted in card
    made = json.loads((home / "fillmask-ui.json").read_text("utf-8"))["files"]
    assert made["onnx/model_qdq.onnx"]["stamp"]["cpu_features"] == list(
        model.signature.cpu_features
    )
    assert (
        made["onnx/model_int8.onnx"]["sha256"]
        == load_model(home / "onnx" / "model_int8.onnx").signature.sha256
    )


def test_a_model_that_knows_nothing_is_said_to_be_near_chance(bert, tmp_path):
    """The tiny models have random weights: all of them are."""
    (variant,) = variants(quantize(bert, tmp_path / "out", ["int8"]))
    assert "near chance" in variant.alarms[0]
    assert f"**{variant.alarms[0]}**" in (tmp_path / "out" / "README.md").read_text("utf-8")


@pytest.fixture
def own(home, tmp_path):
    """A copy to be changed."""
    return Path(shutil.copytree(home, tmp_path / "own"))


def test_a_folder_gets_further_variants_of_the_same_model(own, bert, tiny_models):
    (variant,) = variants(quantize(bert, own, ["fp16"], exclude=["layer:0"]))
    record = hub_folder.read_record(own)
    assert {"onnx/model_fp16.onnx", "onnx/model_int8.onnx"} < {*record["files"]}
    assert "--exclude layer:0" in record["files"]["onnx/model_fp16.onnx"]["command"]
    with pytest.raises(OptionError, match=r"model_fp16.onnx exists: use --force"):
        list(quantize(bert, own, ["fp16"]))
    again = variants(quantize(bert, own, ["fp16"], force=True))
    assert again[0].size_bytes < variant.size_bytes  # nothing is excluded now
    other = ModelChoice(str(tiny_models.folder("electra")))
    with pytest.raises(OptionError, match="holds variants of another model"):
        list(quantize(other, own, ["int4"], force=True))


def test_figures_go_into_record_and_card(own):
    values = {
        "mean_nll_nats": 2.5,
        "relative_change": 0.25,
        "relative_change_interval_95": [0.2, 0.3],
    }
    values |= {"verdict": "REGRESSION", "top1_agreement": 0.5, "kl_nats": 0.1, "sentence_ms": None}
    values |= {"tokens_per_second": 20.0, "baseline_tokens_per_second": 10.0}
    values |= {"texts": 3, "measured": "so"}
    hub_folder.note_figures(own / "onnx" / "model_int8.onnx", values)
    card = (own / "README.md").read_text("utf-8")
    assert "| cross-entropy, nats | 2.5000 | 2.0000 |" in card
    assert "+25.00% (+20.00% to +30.00%), REGRESSION" in card


def test_an_export_takes_part(tiny_models, tmp_path):
    """Exported from PyTorch, then quantized from there and from its ONNX file."""
    source = tiny_models.without_onnx("bert")
    (full,) = variants(export(ModelChoice(str(source)), tmp_path / "out"))
    assert 0 < full.parity < 1e-4
    assert full.path == tmp_path / "out" / "onnx" / "model.onnx"
    assert load_model(tmp_path / "out").signature.precision == "float32"
    (small,) = variants(quantize(ModelChoice(str(source)), tmp_path / "out", ["int8"]))
    assert small.parity is not None
    assert small.size_bytes < full.size_bytes
    with pytest.raises(OptionError, match="the folder of the model itself"):
        list(quantize(ModelChoice(str(tmp_path / "out")), tmp_path / "out", ["qdq"], force=True))


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"schemes": ["int9"]}, OptionError, "unknown scheme 'int9'; known: all, fp16"),
        ({"exclude": ["layr:1"]}, OptionError, "no part of the model is called 'layr:1'.*layer:1"),
        ({"exclude": ["queri"]}, OptionError, "near names: .*query"),
    ],
)
def test_what_is_asked_for_wrongly_is_said(bert, tmp_path, changes, kind, message):
    given = {"schemes": ["int8"], **changes}
    with pytest.raises(kind, match=message):
        list(quantize(bert, tmp_path / "new" / "out", **given))
    assert not (tmp_path / "new").exists()


def test_what_is_quantized_already_is_refused(home, tmp_path):
    source = ModelChoice(str(home / "onnx" / "model_int8.onnx"))
    with pytest.raises(ModelError, match=r"quantized already \(int8\): give the model that it was"):
        list(quantize(source, tmp_path / "out", ["int8"]))


@pytest.mark.parametrize(
    ("text", "message"), [("", "is empty"), (" \n \n", "all 2 texts .* are blank")]
)
def test_calibration_texts_that_hold_nothing(bert, tmp_path, text, message):
    path = tmp_path / "texts.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        list(quantize(bert, tmp_path / "out", ["qdq"], calibration=TextSource("file", str(path))))
    assert not (tmp_path / "out").exists()


def test_other_texts_give_other_scales(bert, home, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("the cat\nthe dog\n")
    source = TextSource("file", str(path))
    list(quantize(bert, tmp_path / "out", ["qdq"], calibration=source))
    made = hub_folder.read_record(tmp_path / "out")["files"]["onnx/model_qdq.onnx"]
    assert made["calibration"]["used"] <= 2
    assert "--calibration texts.txt" in made["command"]
    assert made["sha256"] != hub_folder.read_record(home)["files"]["onnx/model_qdq.onnx"]["sha256"]


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_of_other_things_is_refused_unless_forced(bert, tmp_path, force):
    (tmp_path / "notes.txt").write_text("mine")
    steps = quantize(bert, tmp_path, ["int8"], force=force)
    if force:
        assert variants(steps)
    else:
        with pytest.raises(OptionError, match=r"exists and holds notes.txt: .*--force"):
            list(steps)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_file_and_the_models_own_folder_are_refused(bert, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OptionError, match="is a file, or a link"):
        list(quantize(bert, tmp_path / "file", ["int8"], force=True))
    with pytest.raises(DataError, match=r"cannot be written: .*; name a folder where"):
        list(quantize(bert, tmp_path / "file" / "out", ["int8"]))
    for own in (bert.reference, f"{bert.reference}/onnx"):
        with pytest.raises(OptionError, match="the folder of the model itself"):
            list(quantize(bert, tmp_path / own, ["int8"], force=True))


def test_a_model_over_what_a_graph_holds_is_refused():
    with pytest.raises(ModelError, match=r"4\.0 GB of weights .* holds 2\.1 GB at most: take a"):
        float32_source.check_memory("large", 10**9)


def test_a_result_that_does_not_run_gets_no_name(bert, tmp_path, monkeypatch):
    def broken(_name, _model, path, **_):
        path.write_bytes(b"no graph")

    monkeypatch.setattr("fillmask_ui.onnx_tools.schemes.write_variant", broken)
    with pytest.raises(ModelError, match=r"not run and was not kept: .*cannot be read as ONNX"):
        list(quantize(bert, tmp_path / "new" / "out", ["int8"]))
    assert not (tmp_path / "new").exists()


def test_a_full_disk_leaves_what_was_there(bert, tmp_path, monkeypatch):
    out = tmp_path / "out"
    list(quantize(bert, out, ["fp16"]))
    before = files(out)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(make_variants.Draft, "publish", full)
    with pytest.raises(DataError, match=r"No space left on device; name a folder where there is"):
        list(quantize(bert, out, ["int8"]))
    assert files(out) == before


def test_closing_between_two_keeps_the_first(bert, tmp_path):
    steps = quantize(bert, tmp_path / "out", ["int8", "int4"])
    first = next(step for step in steps if isinstance(step, Variant))
    assert "int4" in next(steps).message
    steps.close()
    assert first.path.is_file()
    assert [name for name in files(tmp_path / "out") if "onnx/" in name] == ["onnx/model_int8.onnx"]
    assert not list((tmp_path / "out").glob(".*"))
    assert load_model(tmp_path / "out").signature.precision == "int8"


_STALLED = """
import sys, time
from pathlib import Path
from fillmask_ui.models import ModelChoice
from fillmask_ui.quantizing import make_variants

def stall(path, *_):
    print(path, flush=True)
    time.sleep(60)

make_variants._check = stall
list(make_variants.quantize(ModelChoice(sys.argv[1]), Path(sys.argv[2]), ["int8"]))
"""


def test_a_killed_process_leaves_no_model_and_the_next_run_sweeps(bert, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-c", _STALLED, bert.reference, str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        written = process.stdout.readline().strip()
        process.send_signal(signal.SIGKILL)
    assert written.startswith(f"{out}/.draft-")
    assert [name for name in files(out) if not name.startswith(".draft-")] == []
    with pytest.raises(ModelError, match="holds no weights"):
        load_model(out)
    list(quantize(bert, out, ["int8"]))
    assert not list(out.glob(".*"))
