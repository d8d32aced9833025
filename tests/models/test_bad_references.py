"""References and options that name no model are refused with what to write instead."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from fillmask_ui.errors import ModelError, OptionError
from fillmask_ui.models import load_model


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"provider": "Cuda"}, r"unknown provider 'Cuda'; known: .*CPUExecutionProvider"),
        ({"threads": 0}, "threads must be"),
        ({"threads": 2**31}, r"threads must be from 1 to \d+"),
        ({"dtype": "int7", "runtime": "torch"}, "unknown dtype .*; known: bfloat16, float16"),
        ({"device": "meta", "runtime": "torch"}, r"unknown device .*; known: cpu"),
        ({"dtype": "float16"}, "belongs to the runtime torch"),
        ({"provider": "cpu", "runtime": "torch"}, "belongs to the runtime onnx"),
        ({"graph_optimization": "most"}, r"unknown graph optimization .*; known: all, basic"),
        ({"onnx_file": "other"}, r"unknown ONNX file .*; known: onnx/model\.onnx"),
        ({"onnx_file": "model", "runtime": "torch"}, "was chosen with the runtime torch"),
    ],
)
def test_unknown_options(tiny_models, options, message):
    with pytest.raises(OptionError, match=message):
        load_model(tiny_models.folder("bert"), **options)


def test_a_file_or_tokenizer_named_for_a_model_that_says_it_itself(tiny_models, copy):
    bert = tiny_models.folder("bert")
    for reference in ("embedded:int8", bert / "onnx" / "model.onnx"):
        with pytest.raises(OptionError, match=r"already names its ONNX file: leave out --onnx-"):
            load_model(reference, onnx_file="model.onnx")
    for reference in (None, "embedded:int8", bert, bert / "config.json"):
        with pytest.raises(OptionError, match=r"^--model-id names the tokenizer of an .onnx file;"):
            load_model(reference, tokenizer=bert)
    folder = copy()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    assert load_model(folder, tokenizer=bert).vocabulary.size == 300


def test_several_onnx_files_and_none_is_the_obvious_one(copy):
    folder = copy()
    path = folder / "onnx" / "model.onnx"
    shutil.copy(path, folder / "onnx" / "small.onnx")
    path.rename(folder / "onnx" / "large.onnx")
    with pytest.raises(OptionError, match=r"onnx/large\.onnx, onnx/small\.onnx"):
        load_model(folder)
    assert load_model(folder, onnx_file="small").signature.runtime == "onnx"


def test_a_runtime_that_the_folder_lacks(copy, tiny_models):
    folder = copy()
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="no weights for the runtime torch: use the runtime onnx"):
        load_model(folder, runtime="torch")
    with pytest.raises(ModelError, match="no weights for the runtime onnx: use the runtime torch"):
        load_model(tiny_models.without_onnx("bert"), runtime="onnx")


def test_without_pytorch_the_message_says_how_to_install_it(tiny_models):
    """A real interpreter in which torch cannot be found, with nothing else on its output."""
    code = (
        "import importlib.util, sys\n"
        "sys.modules['torch'] = None\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda n, *a: None if n == 'torch' else find(n, *a)\n"
        "from fillmask_ui import load_model, FillmaskError\n"
        "print(load_model(sys.argv[1]).signature.runtime)\n"
        "try:\n    load_model(sys.argv[2])\n"
        "except FillmaskError as error:\n    print(error)\n"
    )
    folders = map(str, (tiny_models.folder("bert"), tiny_models.without_onnx("bert")))
    command = [sys.executable, "-c", code, *folders]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    runtime, message = ran.stdout.splitlines()
    assert runtime == "onnx"
    assert "pip install 'fillmask-ui[torch]'" in message
    assert ran.stderr == ""
