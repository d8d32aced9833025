"""Variants in their folder: layout, card, what is refused, and that nothing half-written stays."""

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import onnxruntime as ort
import pytest
import yaml

from fillmask_ui.errors import DataError, ModelError, OptionError
from fillmask_ui.features.quantize import graphs
from fillmask_ui.features.quantize.make_variants import Variant, quantize
from fillmask_ui.features.quantize.timing import PairedTimes
from fillmask_ui.intervals import Interval
from fillmask_ui.models import ModelChoice, load_model
from fillmask_ui.publishing import hub_folder
from fillmask_ui.texts import TextSource

INT8, QDQ = "onnx/model_int8.onnx", "onnx/model_qdq.onnx"


def variants(steps):
    return [step for step in steps if isinstance(step, Variant)]


def files(path):
    return sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())


@pytest.fixture(scope="module")
def bert(tiny_models):
    return ModelChoice(str(tiny_models.folder("bert")))


@pytest.fixture(scope="module")
def home(bert, tiny_models, once):
    """A folder with two variants."""

    def make(folder):
        written = variants(quantize(bert, folder, ["int8", "qdq"]))
        assert [variant.scheme for variant in written] == ["int8", "qdq"]
        assert "near chance" in written[0].alarms[0]  # the tiny models have random weights

    return once.folder("variants", make)


@pytest.fixture
def copy(home, tmp_path):
    """A copy to be changed."""
    return Path(shutil.copytree(home, tmp_path / "copy"))


def test_the_layout_is_the_hubs_and_all_names_load(home):
    beside = ["README.md", "config.json", "fillmask-ui.json"]
    assert files(home) == [*beside, INT8, QDQ, "tokenizer.json", "tokenizer_config.json"]
    # The folder's name is that of the variant nearest to full precision.
    loaded = [load_model(path) for path in (home, home / INT8)]
    assert len({model.signature.sha256 for model in loaded}) == 1
    assert load_model(home / QDQ).signature.precision == "int8"


def test_the_card_says_how_it_was_made(home, bert):
    card = (home / "README.md").read_text("utf-8")
    assert yaml.safe_load(card.split("---")[1])["pipeline_tag"] == "fill-mask"
    signature = load_model(bert.reference).signature
    record = json.loads((home / "fillmask-ui.json").read_text("utf-8"))["files"]
    for expected in (
        signature.sha256,
        f"## {INT8}",
        "quantize_static",
        "texts:embedded|samples:all|shuffle:42|behind:200",
        f"onnxruntime {ort.__version__}",
        "graph optimization all",
        f"`fillmask-ui quantize bert -o {home.name} --scheme qdq`",
        f"**{record[INT8]['alarms'][0]}**",
    ):
        assert expected in card
    assert record[QDQ]["stamp"]["cpu_features"] == list(signature.cpu_features)
    assert record[INT8]["sha256"] == load_model(home / INT8).signature.sha256


def test_a_folder_gets_further_variants_and_figures_of_the_same_model(copy, bert, tiny_models):
    (variant,) = variants(quantize(bert, copy, ["fp16"], exclude=["layer:0"]))
    record = hub_folder.read_record(copy)
    assert {"onnx/model_fp16.onnx", INT8} < {*record["files"]}
    assert "--exclude layer:0" in record["files"]["onnx/model_fp16.onnx"]["command"]
    with pytest.raises(OptionError, match=r"model_fp16.onnx exists: use --force"):
        list(quantize(bert, copy, ["fp16"]))
    again = variants(quantize(bert, copy, ["fp16"], force=True))
    assert again[0].size_bytes < variant.size_bytes  # nothing is excluded now
    another_model = ModelChoice(str(tiny_models.folder("electra")))
    with pytest.raises(OptionError, match="holds variants of another model"):
        list(quantize(another_model, copy, ["int4"], force=True))
    values = {"mean_nll_nats": 2.5, "relative_change": 0.25, "verdict": "REGRESSION"}
    values |= {"relative_change_interval_95": [0.2, 0.3], "top1_agreement": 0.5, "kl_nats": 0.1}
    times = asdict(PairedTimes(1.25, Interval(1.1, 1.4, "sign-test"), 0.001, 0.1))
    values |= {"token_times": times, "sentence_times": None}
    hub_folder.note_figures(copy / INT8, values | {"texts": 3, "measured": "so"})
    card = (copy / "README.md").read_text("utf-8")
    assert "| cross-entropy, nats | 2.5000 | 2.0000 |" in card
    assert "+25.00% (+20.00% to +30.00%), REGRESSION" in card
    assert "| speed of an evaluation | 1.25 times (1.10 to 1.40) | 1,000 tokens/s |" in card


def test_what_cannot_be_worked_on_is_said_and_leaves_nothing(bert, home, tmp_path):
    out = tmp_path / "new" / "out"
    with pytest.raises(OptionError, match=r"near names: .*query"):
        list(quantize(bert, out, ["int8"], exclude=["queri"]))
    with pytest.raises(ModelError, match=r"quantized already \(int8\): give the model that it was"):
        list(quantize(ModelChoice(str(home / INT8)), out, ["int8"]))
    texts = tmp_path / "texts.txt"
    texts.write_text(" \n \n")
    source = TextSource("file", str(texts))
    with pytest.raises(DataError, match=r"all 2 texts .* are blank"):
        list(quantize(bert, out, ["qdq"], calibration=source))
    assert not out.parent.exists()
    with pytest.raises(ModelError, match=r"4\.0 GB of weights .* holds 2\.1 GB at most: take a"):
        graphs.check_memory("large", 10**9)


def test_other_things_are_left_alone(bert, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OptionError, match=r"exists and holds notes.txt: .*--force"):
        list(quantize(bert, tmp_path, ["int8"]))
    assert variants(quantize(bert, tmp_path, ["int8"], force=True))
    for out in (tmp_path / "notes.txt", tmp_path / "notes.txt" / "out"):
        with pytest.raises(DataError, match=r"cannot be written: .*; name a folder where"):
            list(quantize(bert, out, ["int8"], force=True))
    assert (tmp_path / "notes.txt").read_text() == "mine"
    for target in (bert.reference, f"{bert.reference}/onnx"):
        with pytest.raises(OptionError, match="in the folder of the model itself"):
            list(quantize(bert, tmp_path / target, ["int8"], force=True))


def test_a_result_that_does_not_run_gets_no_name(bert, tmp_path, monkeypatch):
    def broken(_name, _model, path, **_):
        path.write_bytes(b"no graph")

    monkeypatch.setattr("fillmask_ui.features.quantize.make_variants.write_variant", broken)
    with pytest.raises(ModelError, match=r"not run and was not kept: .*cannot be read as ONNX"):
        list(quantize(bert, tmp_path / "new" / "out", ["int8"]))
    assert not (tmp_path / "new").exists()


def test_a_full_disk_leaves_what_was_there(bert, copy, monkeypatch):
    before = files(copy)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(hub_folder.ModelDraft, "publish", full)
    with pytest.raises(DataError, match=r"No space left on device; name a folder where there is"):
        list(quantize(bert, copy, ["fp16"]))
    assert files(copy) == before


_STALLED = """
import sys, time
from dataclasses import asdict
from pathlib import Path
from fillmask_ui.models import ModelChoice
from fillmask_ui.features.quantize import make_variants

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


def test_links_that_lead_out_of_a_folder_are_not_followed(tiny_models, tmp_path):
    folder = shutil.copytree(tiny_models.folder("bert"), tmp_path / "model")
    (folder / "config.json").rename(tmp_path / "private")
    (folder / "config.json").symlink_to(tmp_path / "private")
    with pytest.raises(ModelError, match="such links are not followed"):
        list(quantize(ModelChoice(str(folder)), tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_beside_a_single_file(tiny_models, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(tiny_models.folder("bert"), folder)
    shutil.move(folder / "onnx" / "model.onnx", folder / "model.onnx")
    choice = ModelChoice(str(folder / "model.onnx"))
    assert variants(quantize(choice, folder / "q", ["int8"]))
    with pytest.raises(OptionError, match="in the folder of the model itself"):
        list(quantize(choice, folder, ["int8"], force=True))
