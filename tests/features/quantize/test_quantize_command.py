"""`fillmask-ui quantize` and `fillmask-ui export`."""

from contextlib import closing
from dataclasses import replace

import pytest

from fillmask_ui.errors import how_to_install
from fillmask_ui.features.quantize import quantize_command as command
from fillmask_ui.features.quantize.make_variants import Variant
from fillmask_ui.models import load_model
from fillmask_ui.onnx_tools.schemes import SCHEMES

CAT = "The cat sat on the [MASK]."


@pytest.fixture
def bert(tiny_models):
    return tiny_models.folder("bert")


def test_an_interruption_keeps_what_is_done(fillmask, bert, tmp_path, monkeypatch):
    out = tmp_path / "out"

    def interrupted(steps, *_):
        with closing(steps):
            for step in steps:
                yield step
                if isinstance(step, Variant):
                    raise KeyboardInterrupt

    monkeypatch.setattr(command, "_measure_each", interrupted)
    done = fillmask("quantize", bert, "-o", out, "--scheme", "all", "--no-measure")
    assert done.returncode == 130
    assert f"stopped; model_int8.onnx is complete in {out}" in done.stderr
    assert [path.name for path in (out / "onnx").iterdir()] == ["model_int8.onnx"]
    assert not list(out.glob(".*"))


def test_an_export_is_compared_with_pytorch_and_quantized(fillmask, tiny_models, bert, tmp_path):
    source, out = tiny_models.without_onnx("electra"), tmp_path / "out"
    done = fillmask("export", source, "-o", out)
    assert done.returncode == 0, done.stderr
    assert "of PyTorch's" in done.stdout
    (torch, onnx) = (
        fillmask("predict", "-m", model, "--json", CAT).json for model in (source, out)
    )
    best = [printed["masks"][0]["candidates"][0] for printed in (torch, onnx)]
    assert best[0]["token"] == best[1]["token"]
    assert best[0]["nll_nats"] == pytest.approx(best[1]["nll_nats"], abs=1e-4)
    # PyTorch's own file again: exported on the way, beside the export.
    quantized = fillmask(
        "quantize", source, "-o", out, "--scheme", "int8", "--no-measure", "--json"
    )
    assert 0 < quantized.json["parity"] < 1e-3
    assert quantized.json["size_bytes"] < (out / "onnx" / "model.onnx").stat().st_size
    assert load_model(out).signature.precision == "float32"
    again = fillmask("export", source, "-o", out)
    assert (again.returncode, "model.onnx exists: use --force" in again.stderr) == (2, True)
    itself = fillmask("quantize", out, "-o", out, "--scheme", "qdq", "--force", "--no-measure")
    assert "in the folder of the model itself" in itself.stderr
    done = fillmask("export", bert / "onnx" / "model.onnx", "-o", tmp_path / "two")
    assert (done.returncode, "runs on onnx, not on torch" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("export", "embedded:torch", "-o", "FULL"), "exists and holds notes.txt: name another"),
        (("quantize", "embedded", "-o", "FULL"), "exists and holds notes.txt: name another"),
        (("quantize", "embedded", "-o", "OUT", "--scheme", "no"), "unknown scheme 'no'"),
        (("quantize", "./no/such", "-o", "OUT"), "no such model: './no/such'"),
        (("quantize", "embedded", "-o", "OUT", "--calibration", "none"), "no file 'none'"),
        (("export", "./no/such", "-o", "OUT"), "no such model: './no/such'"),
        (("diagnose", "./no/such", "--baseline", "embedded"), "no such model: './no/such'"),
        (("diagnose", "embedded:int8", "--baseline", "./no/such"), "no such model: './no/such'"),
        (("eval", "--engine", "ray", "-m", "./no/such"), "no such model: './no/such'"),
        (("eval", "--engine", "ray", "--baseline", "./no/such"), "no such model: './no/such'"),
        (("learn", "1", "--no-open", "-m", "./no/such"), "no such model: './no/such'"),
        (("class", "--no-open", "-m", "./no/such"), "no such model: './no/such'"),
        (("package", "embedded", "-o", "FULL/notes.txt"), "is a file: name a folder to write"),
        (
            ("train", "--init", "embedded", "--text", "x", "--steps", "1", "-o", "FULL/notes.txt"),
            "is a file: name a folder to write",
        ),
    ],
)
def test_errors_of_the_command_line_come_before_anything_is_read(
    fillmask, tmp_path, monkeypatch, command, message
):
    def refuse(*_, **__):
        raise AssertionError("something was read")

    monkeypatch.setattr("fillmask_ui.models.load.load_vocabulary", refuse)
    monkeypatch.setattr("fillmask_ui.features.quantize.quantize_command.open_texts", refuse)
    monkeypatch.setattr("fillmask_ui.models.load.load_embedded_vocabulary", refuse)
    monkeypatch.setattr("fillmask_ui.cli.eval.open_engine", refuse)
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    homes = {"FULL": str(full), "OUT": str(tmp_path / "out")}
    words = [word.replace("FULL", homes["FULL"]).replace("OUT", homes["OUT"]) for word in command]
    done = fillmask(*words)
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ") and message in line
    assert (done.returncode in (1, 2), done.stdout) == (True, "")
    assert [path.name for path in full.iterdir()] == ["notes.txt"]


def test_the_other_schemes_are_made_where_one_fails(fillmask, bert, tmp_path, monkeypatch):
    lacking = replace(SCHEMES["int4"], package="no_such_package")
    monkeypatch.setitem(SCHEMES, "int4", lacking)
    broken = replace(SCHEMES["int8-channel"], write=lambda *_: None)
    monkeypatch.setitem(SCHEMES, "int8-channel", broken)
    out = tmp_path / "out"
    done = fillmask("quantize", bert, "-o", out, "--scheme", "all", "--samples", "6")
    assert done.returncode == 1
    written = {path.name.removeprefix("model_") for path in (out / "onnx").iterdir()}
    assert written == {"int8.onnx", "int8_tensor.onnx", "qdq.onnx", "fp16.onnx"}
    for printed in ("prediction", "model_fp16.onnx: 0.", "Note: the model is near chance"):
        assert printed in done.stdout  # the table comes before the error
    message = done.stderr.strip().splitlines()[-1]
    assert "int8-channel was not made: " in message
    assert "int4 was not made" in message and how_to_install("quantize") in message
    alone = fillmask("quantize", bert, "-o", tmp_path / "two", "--scheme", "int4", "--no-measure")
    assert (alone.returncode, (tmp_path / "two").exists()) == (1, False)
    assert "no-such-package, which is not installed" in alone.stderr
    assert "Reading" not in alone.stderr  # told before anything is done
