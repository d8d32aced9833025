"""Devices of ONNX Runtime by name, against onnxruntime alone.

A device that is not here is stood in for by a provider that is and computes nothing (Azure's, part
of every onnxruntime), by one that is not, and by a plugin that cannot be loaded.
"""

import re
from types import SimpleNamespace

import numpy as np
import onnxruntime as ort
import pytest
from tiny_models import batch_of, texts_for

from fillmask_ui.errors import OptionError
from fillmask_ui.models import load_model, onnx_devices
from fillmask_ui.models.onnx_devices import CPU, Device, Plugin, devices_here, find_device


@pytest.fixture
def built_in(monkeypatch):
    """`built_in(providers, plugins)`: an onnxruntime that claims to have these."""

    def claim(*providers, plugins=()):
        monkeypatch.setattr(onnx_devices, "_BUILT_IN", set(providers))
        monkeypatch.setattr(onnx_devices, "_plugins", lambda: plugins)

    return claim


def session_alone(path, device):
    """onnxruntime without this project, as its documents open a session on a device."""
    settings = ort.SessionOptions()
    if device.hardware:
        settings.add_provider_for_devices([device.hardware], dict(device.options))
        return ort.InferenceSession(path, settings)
    return ort.InferenceSession(path, providers=[(device.provider, dict(device.options))])


@pytest.mark.parametrize("name", devices_here())
def test_each_device_that_is_here_gives_the_logits_of_onnxruntime_alone(tiny_models, name):
    folder, device = tiny_models.folder("bert"), find_device(name)
    model = load_model(folder, device=name)
    assert model.signature.device.startswith(str(device))
    assert name != "cpu" or model.signature.device == CPU
    batch = batch_of(model.vocabulary, texts_for("bert", "[MASK]"))
    feeds = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
    feeds["token_type_ids"] = np.zeros_like(batch.input_ids)
    session = session_alone(folder / "onnx" / "model.onnx", device)
    assert session.get_providers()[0] == device.provider
    (logits,) = session.run(["logits"], feeds)
    np.testing.assert_allclose(
        model.logits_at(*batch), logits[batch.rows, batch.cols], atol=1e-4, rtol=1e-4
    )


def test_a_provider_that_computes_nothing_is_refused(tiny_models, built_in):
    """onnxruntime opens the session without an error and computes all of it on the CPU."""
    folder, azure = tiny_models.folder("bert"), "AzureExecutionProvider"
    session = session_alone(folder / "onnx" / "model.onnx", Device(azure))
    assert session.get_providers() == [azure, CPU]
    built_in(azure)
    with pytest.raises(OptionError, match=r"takes none of the \d+ operators of .*model\.onnx"):
        load_model(folder, device="azure")


@pytest.mark.filterwarnings("ignore:Specified provider")
def test_a_provider_that_does_not_start_is_refused(tiny_models, built_in):
    built_in("OpenVINOExecutionProvider")
    message = r"OpenVINO\w+ does not start with device_type=NPU: .*; devices here: cpu, openvino"
    with pytest.raises(OptionError, match=message):
        load_model(tiny_models.folder("bert"), device="npu")


def test_names_stand_for_providers_with_their_options(built_in):
    """References: the options that onnxruntime.ai documents for each execution provider."""
    cuda, coreml, openvino = (f"{name}ExecutionProvider" for name in ("CUDA", "CoreML", "OpenVINO"))
    built_in(cuda)
    for name in ("gpu", "cuda", "CUDA", cuda):
        assert find_device(name) == Device(cuda)
    assert find_device("cuda:1") == Device(cuda, {"device_id": "1"})
    assert find_device("gpu", ["use_tf32=0"]).settings() == {"provider-options": "use_tf32=0"}
    built_in(coreml)
    assert find_device("coreml") == Device(coreml)
    assert find_device("npu").options == {"MLComputeUnits": "CPUAndNeuralEngine"}
    built_in(openvino)
    assert find_device("npu") == Device(openvino, {"device_type": "NPU"})
    options = find_device("gpu", ["device_type=GPU.1", "precision=FP16"]).options
    assert options == {"device_type": "GPU.1", "precision": "FP16"}
    built_in("TVMExecutionProvider")
    assert find_device("tvm") == Device("TVMExecutionProvider")


def hardware(provider, kind):
    return SimpleNamespace(
        ep_name=provider, device=SimpleNamespace(type=SimpleNamespace(name=kind))
    )


def test_a_plugin_computes_on_the_hardware_that_it_finds(built_in):
    qnn, openvino = "QNNExecutionProvider", "OpenVINOExecutionProvider"
    gpu, npu, *two = (
        *(hardware(qnn, kind) for kind in ("GPU", "NPU")),
        *(hardware(openvino, "GPU") for _ in range(2)),
    )
    plugins = (Plugin("onnxruntime_qnn", qnn, (gpu, npu)), Plugin("ep", openvino, tuple(two)))
    built_in(plugins=plugins)
    assert devices_here() == ["cpu", "gpu", "npu", "openvino", "qnn"]
    assert find_device("npu").hardware is npu and str(find_device("npu")) == f"{qnn}:NPU"
    assert find_device("gpu").hardware is find_device("qnn").hardware is gpu
    assert find_device("openvino:1").hardware is two[1]
    built_in(plugins=plugins[1:])
    with pytest.raises(
        OptionError, match=r"no NPU for onnxruntime \S+; ep is installed, but finds none; dev"
    ):
        find_device("npu")
    with pytest.raises(OptionError, match=r"no OpenVINO\w+ for \w+ \S+; ep is installed"):
        find_device("openvino:2")


def test_a_plugin_that_cannot_be_loaded_is_named_with_the_reason(monkeypatch, tmp_path):
    (package := tmp_path / "onnxruntime_ep_webgpu").mkdir()
    (package / "__init__.py").write_text(
        "def get_ep_name(): return 'WebGpuExecutionProvider'\n"
        "def get_library_path(): return __file__\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    onnx_devices._plugins.cache_clear()
    message = r"no WebGpu.*; onnxruntime_ep_webgpu is installed, but cannot be loaded: \w.*; dev"
    with pytest.raises(OptionError, match=message) as caught:
        find_device("webgpu")
    onnx_devices._plugins.cache_clear()
    assert not re.search(r"ONNXRuntimeError|\.cc", str(caught.value))


def test_provider_options_stand_in_the_signature_of_a_model(tiny_models, monkeypatch):
    device = Device(CPU, {"b": "2", "a": "1"})
    monkeypatch.setattr("fillmask_ui.models.onnx_model.find_device", lambda *_: device)
    signature = str(load_model(tiny_models.folder("bert"), device="any").signature)
    assert "|provider-options:a=1,b=2|" in signature


def test_operators_that_stay_on_the_cpu_are_counted():
    """As of the simulator of QNN's NPU on x86, with onnxruntime-qnn 2.7.0: 34 of 349 operators."""
    parts = [
        SimpleNamespace(ep_name="QNNExecutionProvider", get_nodes=lambda: range(34)),
        *(SimpleNamespace(ep_name=CPU, get_nodes=lambda: range(1)) for _ in range(315)),
    ]
    session = SimpleNamespace(get_provider_graph_assignment_info=lambda: parts)
    npu = Device("QNNExecutionProvider", hardware=hardware("QNNExecutionProvider", "NPU"))
    assert npu.signed(session) == "QNNExecutionProvider:NPU (34 of 349 operators)"
    parts[1:] = []
    assert npu.signed(session) == "QNNExecutionProvider:NPU"
