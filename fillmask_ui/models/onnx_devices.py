"""Devices of ONNX Runtime by name: the execution provider that computes there, and its options.

A provider is part of the installed onnxruntime, or a plugin in a package beside it. ONNX Runtime
falls back to the CPU without an error, also by its selection policies (`PREFER_NPU`): here each
device is named, and a session that would compute nothing on it is refused.
"""

import importlib
import io
import pkgutil
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import onnxruntime as ort

from fillmask_ui.errors import OptionError, first_line, unknown

CPU = "CPUExecutionProvider"
_SUFFIX = "executionprovider"
_KINDS = ("gpu", "npu")  # of hardware
# All but the CPU's and Azure's, which computes elsewhere; what is registered later is a plugin.
_BUILT_IN = {*ort.get_available_providers()} - {CPU, "AzureExecutionProvider"}
# Packages with a provider that is to be registered. Source:
# https://onnxruntime.ai/docs/execution-providers/plugin-ep-libraries/packaging.html
_PLUGIN = re.compile(r"onnxruntime_(ep_\w+|qnn)")


@dataclass(frozen=True)
class Accelerator:
    """An execution provider that may have to be installed."""

    provider: str
    brought_by: str  # the package, and whose hardware it is for
    # Kind of hardware -> options that make a provider of onnxruntime itself compute there.
    options: Mapping[str, Mapping[str, str]]
    systems: tuple[str, ...] = ("linux", "win32")  # as in `sys.platform`


# The first that is here stands for `gpu` or `npu`.
ACCELERATORS = (
    Accelerator("CUDAExecutionProvider", "onnxruntime-gpu (NVIDIA)", {"gpu": {}}),
    Accelerator("MIGraphXExecutionProvider", "onnxruntime-migraphx (AMD)", {"gpu": {}}, ("linux",)),
    Accelerator("DmlExecutionProvider", "onnxruntime-directml (Windows)", {"gpu": {}}, ("win32",)),
    Accelerator(
        "CoreMLExecutionProvider",
        "onnxruntime on macOS (Apple)",
        {"gpu": {"MLComputeUnits": "CPUAndGPU"}, "npu": {"MLComputeUnits": "CPUAndNeuralEngine"}},
        ("darwin",),
    ),
    Accelerator(
        "QNNExecutionProvider",
        "onnxruntime-qnn (Qualcomm)",
        {"gpu": {"backend_type": "gpu"}, "npu": {"backend_type": "htp"}},
    ),
    Accelerator(
        "OpenVINOExecutionProvider",
        "onnxruntime-ep-openvino (Intel)",
        {"gpu": {"device_type": "GPU"}, "npu": {"device_type": "NPU"}},
    ),
    Accelerator("VitisAIExecutionProvider", "Ryzen AI Software (AMD)", {"npu": {}}),
    Accelerator(
        "WebGpuExecutionProvider",
        "onnxruntime-ep-webgpu (any)",
        {"gpu": {}},
        ("linux", "win32", "darwin"),
    ),
)


@dataclass(frozen=True)
class Device:
    """Where graphs are computed."""

    provider: str = CPU
    options: Mapping[str, str] = field(default_factory=dict)  # of the provider
    hardware: Any = None  # `OrtEpDevice`, for a plugin
    packages: tuple[str, ...] = ("onnxruntime",)  # that compute

    def __str__(self) -> str:
        return f"{self.provider}:{_kind(self.hardware)}" if self.hardware else self.provider

    def settings(self) -> dict[str, str]:
        """The options, for a signature."""
        options = ",".join(f"{name}={value}" for name, value in sorted(self.options.items()))
        return {"provider-options": options} if options else {}

    def open(self, path: Path, graph: bytes, settings: ort.SessionOptions) -> ort.InferenceSession:
        """A session for the graph of a file; an `OptionError` if nothing of it would run here."""
        if self.provider == CPU:
            return ort.InferenceSession(graph, settings, providers=[CPU], enable_fallback=0)
        settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        providers = None if self.hardware else [(self.provider, dict(self.options))]
        try:
            if self.hardware:
                settings.add_provider_for_devices([self.hardware], dict(self.options))
            session = ort.InferenceSession(graph, settings, providers=providers, enable_fallback=0)
        except Exception as error:  # the library's own share no base class
            raise OptionError(
                f"{self} cannot open {path}: {_reason(error)} "
                "(set options by --provider-option KEY=VALUE)"
            ) from error
        if session.get_providers()[0] != self.provider:
            options = ", ".join(self.settings().values()) or "no options"
            raise OptionError(
                f"{self} does not start with {options}: its hardware, driver or libraries are not "
                f"on this machine; devices here: {', '.join(devices_here())}"
            )
        operators = operators_by_provider(session)
        if operators and not operators[self.provider]:
            raise OptionError(
                f"{self} takes none of the {operators.total()} operators of {path}, so all would "
                "run on the CPU: many devices need a graph of fixed sizes, or one of 8 bits"
            )
        return session

    def signed(self, session: ort.InferenceSession) -> str:
        """Its name for a signature, with the share of a session that it does compute."""
        operators = operators_by_provider(session) if self.provider != CPU else Counter()
        count, total = operators[self.provider], operators.total()
        return str(self) if count == total else f"{self} ({count} of {total} operators)"


def operators_by_provider(session: ort.InferenceSession) -> Counter[str]:
    """Operators that each provider computes; none if this was not recorded (before 1.24)."""
    operators: Counter[str] = Counter()
    if hasattr(session, "get_provider_graph_assignment_info"):
        for part in session.get_provider_graph_assignment_info():
            operators[part.ep_name] += len(part.get_nodes())
    return operators


def find_device(name: str, options: Sequence[str] = ()) -> Device:
    """The device of a name such as `cpu`, `npu`, `cuda:1` or `OpenVINOExecutionProvider`.

    `options` of its provider are KEY=VALUE. An `OptionError` for a device that is not here says
    what is, and which package brings it.

    >>> find_device("cpu") == find_device("CPUExecutionProvider") == Device()
    True
    """
    base, _, number = name.strip().partition(":")
    short, given = _short(base), _parsed(options)
    if number and not number.isdecimal():
        raise OptionError(f"the device {name!r} is not a name, or a name, a colon and a number")
    if short == "cpu":
        if given:
            raise OptionError("the CPU takes no provider options: name another --device")
        return Device()
    plugins = {plugin.provider: plugin for plugin in _plugins()}
    rows = [row for row in ACCELERATORS if short in (_short(row.provider), *row.options)]
    unlisted = [name for name in (*plugins, *_BUILT_IN) if _short(name) == short]
    for row in rows or [Accelerator(name, "", {}) for name in unlisted]:
        plugin = plugins.get(row.provider, Plugin("", row.provider))
        hardware = plugin.of_kind(short)
        if len(hardware) > int(number or 0):
            return Device(
                row.provider,
                given,
                hardware[int(number or 0)],
                packages=("onnxruntime", *plugin.package),
            )
        if row.provider in _BUILT_IN:
            with redirect_stdout(io.StringIO()):
                ort.preload_dlls()  # of CUDA, from packages
            numbered = {"device_id": number} if number else {}
            return Device(row.provider, {**row.options.get(short, {}), **numbered, **given})
    here = f"devices here: {', '.join(devices_here())}"
    if not rows:
        names = ["cpu", *_KINDS, *(_short(row.provider) for row in ACCELERATORS)]
        raise OptionError(f"{unknown('device', name, names)}; {here}")
    missing = short.upper() if short in _KINDS else rows[0].provider
    lacking = [
        f"{plugin.module} is installed, but {plugin.problem or 'finds none'}"
        for plugin in plugins.values()
        if any(row.provider == plugin.provider for row in rows)
    ]
    packages = [
        row.brought_by for row in rows if short not in _KINDS or sys.platform in row.systems
    ]
    remedy = f"to have one, install {' or '.join(packages)}"
    reasons = "; ".join([*lacking, here, remedy])
    raise OptionError(f"there is no {missing} for onnxruntime {ort.__version__}; {reasons}")


def devices_here() -> list[str]:
    """Names of devices that this onnxruntime and its plugins offer, for `find_device`."""
    hardware = [device for plugin in _plugins() for device in plugin.hardware]
    kinds = {_kind(device).lower() for device in hardware}.intersection(_KINDS)
    providers = {*_BUILT_IN, *(device.ep_name for device in hardware)}
    return ["cpu", *sorted(kinds), *sorted(map(_short, providers))]


@dataclass(frozen=True)
class Plugin:
    """A package beside onnxruntime that brings an execution provider."""

    module: str
    provider: str
    hardware: tuple[Any, ...] = ()  # each `OrtEpDevice` that it finds on this machine
    problem: str = ""  # why it cannot be registered

    @property
    def package(self) -> list[str]:
        """Its name for pip, if that is the one of the module."""
        name = self.module.replace("_", "-")
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            return []
        return [name]

    def of_kind(self, name: str) -> list[Any]:
        """The hardware that a name means: of its kind, or all for the name of the provider."""
        wanted = name.upper() if name in _KINDS else ""
        return [device for device in self.hardware if wanted in ("", _kind(device))]


@cache
def _plugins() -> tuple[Plugin, ...]:
    """The installed plugins, each registered once."""
    if not hasattr(ort, "register_execution_provider_library"):  # before 1.24
        return ()
    ort.set_default_logger_severity(4)  # errors arrive as exceptions
    plugins = []
    for module in sorted(entry.name for entry in pkgutil.iter_modules()):
        if not _PLUGIN.fullmatch(module):
            continue
        plugin = Plugin(module, "")
        try:
            package = importlib.import_module(module)
            plugin = Plugin(module, package.get_ep_name())
            # Its provider goes by the name under which it is registered.
            ort.register_execution_provider_library(plugin.provider, package.get_library_path())
        except Exception as error:  # noqa: BLE001 - another device may work
            plugins.append(replace(plugin, problem=f"cannot be loaded: {_reason(error)}"))
        else:
            devices = (device for device in ort.get_ep_devices())
            found = tuple(device for device in devices if device.ep_name == plugin.provider)
            plugins.append(replace(plugin, hardware=found))
    return tuple(plugins)


def _kind(device: Any) -> str:
    """`CPU`, `GPU` or `NPU`, of an `OrtEpDevice`."""
    return str(device.device.type.name)


def _short(provider: str) -> str:
    """`CUDAExecutionProvider` -> `cuda`."""
    return provider.lower().removesuffix(_SUFFIX)


def _parsed(options: Sequence[str]) -> dict[str, str]:
    parsed = {}
    for option in options:
        name, mark, value = option.partition("=")
        if not mark or not name.strip():
            raise OptionError(f"the provider option {option!r} is not KEY=VALUE")
        parsed[name.strip()] = value.strip()
    return parsed


def _reason(error: Exception) -> str:
    """What an error of onnxruntime says, without the place in its source.

    >>> _reason(RuntimeError("/a/b.cc:10 auto f(const X&) Invalid option: x"))
    'Invalid option: x'
    """
    return re.sub(r".*(\) | : )", "", first_line(error, 2000))[:300]
