"""What runs models: a table. A new runtime is a class in a file of its own, and a row here.

The class is a `RuntimeModel`; it is imported when a model needs it.
"""

import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

from fillmask_ui.errors import ModelError, OptionError, how_to_install, unknown

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"  # of weights in several files
_PICKLE = re.compile(r"[^/]+\.(bin|pt|pth|ckpt|pkl|h5|msgpack)")


@dataclass(frozen=True)
class Runtime:
    """One library that runs models. Names of files are relative to the folder of a model."""

    title: str
    package: str  # the module that has to be installed
    model: str  # `module:class` of its `RuntimeModel`
    reads: str  # a regular expression for the names of its files
    names: tuple[str, ...]  # of several files the first of these is meant, in full precision
    beside: str = ""  # `module:function`: the names of what a file needs beside it, given its path
    # `module:function`: finds a device by its name and options, or refuses it before files are read
    devices: str = ""
    install: str = ""  # the command that installs it
    reduced: tuple[str, ...] = ()  # names of less than full precision, the nearest to it first

    @property
    def is_installed(self) -> bool:
        spec = find_spec(self.package)
        return spec is not None and spec.origin is not None  # not a folder that is left of it

    def need(self, name: str) -> None:
        """A ModelError for the model `name` if the runtime is not installed."""
        if not self.is_installed:
            raise ModelError(
                f"{name} runs on {self.title}, which is not installed: "
                f"{self.install}, or choose a model with an ONNX file"
            )

    def among(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if re.fullmatch(self.reads, name)]

    def needed_beside(self, file: Any) -> set[str]:
        """Names of the files that one needs beside it, relative to its own folder."""
        return set(import_target(self.beside)(file)) if self.beside else set()


# Endings of the names that transformers.js, Optimum and `fillmask-ui quantize` give to graphs of
# less than full precision, the nearest to it first.
_REDUCED = (
    *("fp16", "quantized", "int8", "uint8", "qdq", "int8_channel", "int8_tensor"),
    *("q4", "q4f16", "bnb4"),
)

# In the order in which `auto` looks for their files.
RUNTIMES: dict[str, Runtime] = {
    "onnx": Runtime(
        title="ONNX Runtime",
        package="onnxruntime",
        model="fillmask_ui.models.onnx_model:OnnxMaskedLM",
        reads=r"(onnx/)?[^/]+\.onnx",
        names=("model.onnx", "onnx/model.onnx"),
        beside="fillmask_ui.models.onnx_graph:external_locations",
        devices="fillmask_ui.models.onnx_devices:find_device",
        install="pip install onnxruntime",
        reduced=tuple(
            f"{folder}model_{name}.onnx" for name in _REDUCED for folder in ("", "onnx/")
        ),
    ),
    "torch": Runtime(
        title="PyTorch",
        package="torch",
        model="fillmask_ui.models.torch_model:TorchMaskedLM",
        reads=rf"{re.escape(WEIGHTS)}|{re.escape(INDEX)}",
        names=(WEIGHTS, INDEX),
        beside="fillmask_ui.models.model_files:index_parts",
        install=how_to_install("torch"),
    ),
}


# Classes of transformers that hold a `model`, and their attribute with its tokenizer: by name,
# without importing the library.
OWNERS = {"Trainer": "processing_class", "Pipeline": "tokenizer"}
# What PyTorch wraps a model in, and the attribute with the model.
WRAPPERS = {
    "OptimizedModule": "_orig_mod",  # of torch.compile
    "DataParallel": "module",
    "DistributedDataParallel": "module",
}
LIVE_MODEL = "fillmask_ui.models.torch_live:LiveMaskedLM"


def class_names(instance: Any) -> list[str]:
    """Names of the class of an object and of all that it inherits from."""
    return [cls.__name__ for cls in type(instance).__mro__]


class WeightsFile(NamedTuple):
    """Which file of a model is loaded, by which runtime."""

    runtime: str
    file: str


def pick_weights(
    name: str, names: Sequence[str], runtime: str, onnx_file: str | None
) -> WeightsFile:
    """Which of the files `names` of a model to load.

    `auto` takes the file nearest to full precision that a library installed here runs, and of
    equals that of the first runtime.

    Raises:
        ModelError: if there are no weights for the runtime, or only pickles.
        OptionError: if `onnx_file` does not exist, or one has to be named.

    >>> pick_weights("m", ["model.safetensors", "onnx/model.onnx"], "auto", None)
    WeightsFile(runtime='onnx', file='onnx/model.onnx')
    >>> pick_weights("m", ["onnx/model_int8.onnx", "onnx/model_q4.onnx"], "auto", None).file
    'onnx/model_int8.onnx'
    """
    if onnx_file is not None:
        stem, graphs = onnx_file.removesuffix(".onnx"), RUNTIMES["onnx"].among(names)
        for file in (f"{stem}.onnx", f"onnx/{stem}.onnx"):
            if file in graphs:
                return WeightsFile("onnx", file)
        raise OptionError(unknown(f"ONNX file of {name}", onnx_file, graphs))
    files_by_runtime = {key: files for key, row in RUNTIMES.items() if (files := row.among(names))}
    nearest = [
        _nearest(name, key, files)
        for key, files in files_by_runtime.items()
        if runtime in ("auto", key)
    ]
    usable = [weights for weights in nearest if RUNTIMES[weights.runtime].is_installed]
    full = [weights for weights in usable if weights.file not in RUNTIMES[weights.runtime].reduced]
    if nearest:
        return (*full, *usable, *nearest)[0]
    if files_by_runtime:
        raise ModelError(
            f"{name} has no weights for the runtime {runtime}: use the runtime "
            f"{' or '.join(files_by_runtime)}"
        )
    if pickles := sorted(file for file in names if _PICKLE.fullmatch(file)):
        raise ModelError(
            f"{name} has its weights only in {', '.join(pickles[:3])}: loading such a file can run "
            "any code, so only .safetensors and .onnx are read; look for a converted revision"
        )
    raise ModelError(
        f"{name} holds no weights: put model.safetensors, model.onnx or onnx/model.onnx beside "
        "config.json and the tokenizer"
    )


def _nearest(name: str, runtime: str, files: Sequence[str]) -> WeightsFile:
    """Of the files for one runtime the one nearest to full precision; errors as `pick_weights`."""
    row = RUNTIMES[runtime]
    ranked = [file for file in (*row.names, *row.reduced) if file in files]
    if not ranked and len(files) > 1:
        raise OptionError(
            f"{name} has several files for {row.title} and none is called {row.names[0]}; "
            f"choose one with --onnx-file (onnx_file=): {', '.join(files)}"
        )
    return WeightsFile(runtime, (*ranked, *files)[0])


def import_target(target: str) -> Any:
    """What `module:name` means."""
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)
