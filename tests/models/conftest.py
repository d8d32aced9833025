"""Loaded tiny models and folders with changed ONNX files, shared by the tests of this folder."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_models import Batch, TinyModels, batch_of, export_onnx, quiet, reference_model, texts_for


def plain_folder(tiny_models: TinyModels, family: str, target: Path) -> Path:
    """Config and tokenizer without weights."""
    target.mkdir(parents=True, exist_ok=True)
    for path in tiny_models.folder(family, onnx=False).iterdir():
        if path.is_file() and path.suffix != ".safetensors":
            shutil.copy(path, target)
    return target


def transformers_output(folder: Path, batch: Batch) -> Any:
    """What the model of transformers gives, called plainly."""
    import torch

    model = reference_model(folder)
    with torch.no_grad():
        return model(
            input_ids=torch.tensor(batch.input_ids),
            attention_mask=torch.tensor(batch.attention_mask),
            output_hidden_states=True,
        )


@pytest.fixture
def variant(tiny_models, tmp_path):
    """`variant(change, family)`: a folder whose model.onnx is the plain export, changed."""

    def make(change: Callable[[Path, Path], None], family: str = "bert") -> Path:
        folder = plain_folder(tiny_models, family, tmp_path / family)
        change(tiny_models.folder(family) / "onnx" / "model.onnx", folder / "model.onnx")
        return folder

    return make


@pytest.fixture
def quantize_qdq(loaded):
    """`quantize_qdq(source, target, **options)`: static int8, calibrated on a few texts."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    reference = loaded("bert", "torch")
    batch = batch_of(reference.vocabulary, texts_for("bert", "[MASK]"))

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            zeros = np.zeros_like(batch.input_ids)
            names = ("input_ids", "attention_mask", "token_type_ids")
            values = (batch.input_ids, batch.attention_mask, zeros)
            self.left = [dict(zip(names, values, strict=True))]

        def get_next(self):
            return self.left.pop() if self.left else None

    def change(source: Path, target: Path, **options) -> None:
        with quiet():
            quantize_static(source, target, Reader(), quant_format=QuantFormat.QDQ, **options)

    return change


@pytest.fixture
def exported(tiny_models, tmp_path):
    """`exported(family, **changes)`: a folder with an export of its own."""

    def make(family: str, **changes) -> Path:
        folder = plain_folder(tiny_models, family, tmp_path / family)
        export_onnx(tiny_models.folder(family, onnx=False), folder / "model.onnx", **changes)
        return folder

    return make


@pytest.fixture
def agrees(loaded):
    """`agrees(model, atol)`: equal to PyTorch on texts of different lengths."""

    def check(model, family: str = "bert", atol: float = 1e-4) -> None:
        reference = loaded(family, "torch")
        batch = batch_of(reference.vocabulary, texts_for(family, reference.vocabulary.mask_token))
        expected, logits = reference.logits_at(*batch), model.logits_at(*batch)
        assert logits.dtype == np.float32
        np.testing.assert_allclose(logits, expected, atol=atol)

    return check


@pytest.fixture
def copy(tiny_models, tmp_path):
    """`copy(family)`: a folder of one's own to break."""

    def make(family: str = "bert", *, onnx: bool = True):
        folder = tmp_path / "model"
        shutil.copytree(tiny_models.folder(family), folder)
        if not onnx:
            shutil.rmtree(folder / "onnx")
        return folder

    return make
