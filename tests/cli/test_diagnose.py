"""`fillmask-ui diagnose` as its user calls it."""

import shutil

import onnx
import pytest
from planted import part_at, plant
from quantized_forms import whole
from tiny_models import SENTENCES

from fillmask_ui.onnx_tools.dynamic_int8 import dynamic_int8
from fillmask_ui.onnx_tools.graph_parts import find_parts
from fillmask_ui.quantizing.leave_one_out import LeaveOneOut


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
        "Along depth",
        "One part in full precision",
        "onnxruntime",
        "graph optimization all",
    ):
        assert expected in result.stdout
    assert f"1 of 1: {name} in full precision" in result.stderr
    printed = fillmask(*arguments, "--budget", "0%", "--json", "--apply", target)
    known = printed.json
    assert known["parts"][0]["name"] == name and known["complete"]
    assert known["parts"][0]["sticks_out"] and known["parts"][0]["restored"]["recovered_nats"]
    assert known["stamp"]["cpu_features"]
    if [step["name"] for step in known["greedy"]["steps"]] == [name]:
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
