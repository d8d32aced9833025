"""A tiny BERT in every form that a quantizer gives it, as graphs with their weights inside."""

import contextlib
import io
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import ModelProto
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer
from tiny_models import TinyModels

from fillmask_ui.models.onnx_graph import read_graph, self_contained
from fillmask_ui.models.runtime_model import cpu_features
from fillmask_ui.onnx_tools.constant_folding import copy_model
from fillmask_ui.onnx_tools.dynamic_int8 import dynamic_int8
from fillmask_ui.onnx_tools.float32_graph import make_whole, split_ties
from fillmask_ui.onnx_tools.schemes import write_variant

FORMS = ("dynamic-int8", "int8", "int8-tensor", "qdq", "int4", "fp16")


def whole(path: Path, root: Path) -> ModelProto:
    """A graph in float32 with its weights inside."""
    graph = inlined(path, root)
    make_whole(graph, path.name)
    return graph


def inlined(path: Path, root: Path) -> ModelProto:
    """A graph as it stands, its weights inside."""
    return self_contained(read_graph(path, root, path.name))


def feeds(model: ModelProto, rows: int = 1, most: int = 140) -> dict[str, np.ndarray]:
    """Token ids below `most` for a graph, [rows, 12]."""
    ids = np.random.default_rng(3).integers(5, most, (rows, 12))
    constant_inputs = {"attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    return {entry.name: constant_inputs.get(entry.name, ids) for entry in model.graph.input}


def exact_settings() -> ort.SessionOptions:
    """Sums of products of bytes in 32 bits, as models are loaded on this processor."""
    settings = ort.SessionOptions()
    if not {"avx512_vnni", "avx_vnni"}.intersection(cpu_features()):
        settings.add_session_config_entry("session.x64quantprecision", "1")
    return settings


def run(model: ModelProto, inputs: dict[str, np.ndarray], *names: str) -> list[np.ndarray]:
    """Outputs of a graph, as it stands."""
    settings = exact_settings()
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), settings)
    return session.run(list(names) or None, inputs)


def in_bnb4(model: ModelProto) -> ModelProto:
    """A copy with its products in 4 bits, as bitsandbytes stores them."""
    quantizer = MatMulBnb4Quantizer(copy_model(model), MatMulBnb4Quantizer.NF4, 32)
    quantizer.process()
    return quantizer.model.model


def in_qoperators(model: ModelProto, path: Path) -> None:
    """Write it with products of bytes that give bytes, calibrated on the tokens of `feeds`."""

    class OneText(CalibrationDataReader):
        def __init__(self) -> None:
            self.left = [feeds(model)]

        def get_next(self) -> dict[str, np.ndarray] | None:
            return self.left.pop() if self.left else None

    quantize_static(
        split_ties(model),
        path,
        OneText(),
        quant_format=QuantFormat.QOperator,
        op_types_to_quantize=["MatMul"],
    )


class Forms:
    """Makes and keeps the forms of one test session."""

    def __init__(self, models: TinyModels, folder: Path) -> None:
        self.home, self.folder = models.folder("bert"), folder
        self.baseline = whole(self.home / "onnx" / "model.onnx", self.home)
        self._made: dict[str, ModelProto] = {}

    def __getitem__(self, name: str) -> ModelProto:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> ModelProto:
        if name == "dynamic-int8":
            return dynamic_int8(self.baseline)
        path = self.folder / f"{name}.onnx"
        if name == "bnb4":
            return in_bnb4(self.baseline)
        if name == "qoperator":
            in_qoperators(self.baseline, path)
            return onnx.load(path)
        with contextlib.redirect_stdout(io.StringIO()):
            write_variant(name, self.baseline, path, feeds=[feeds(self.baseline)])
        return onnx.load(path)


@pytest.fixture(scope="session")
def forms(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> Forms:
    """The forms, each made when it is first asked for."""
    return Forms(tiny_models, tmp_path_factory.mktemp("forms"))
